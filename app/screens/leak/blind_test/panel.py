"""The blind test: you look for the original of a reconstruction among other pictures of its class."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from app.screens.leak import columns as leak_columns
from app.screens.leak import requests as leak_requests
from app.screens.leak import results as leak_results
from app.screens.leak import series
from app.screens.leak.blind_test import texts as blind_test_texts
from app.screens.leak.requests import STATE
from app.screens.leak.settings import LeakSettings
from app.session import services, session
from app.texts import attack_series as series_texts
from engine.jobs.thumbnails import thumbnails
from engine.results.attack_summary import AttackCell
from engine.specs import attack_series
from engine.specs.attack_series import CHOICES, SET, BlindQuestion

SIGNIFICANCE = 0.05  # a score with a smaller p-value is above chance
Z95 = 1.959964  # the quantile of the normal distribution for a 95 % interval
CSS = """
<style>
.ll-test img { image-rendering: pixelated; background: var(--hair); display: block; }
.ll-test img.ll-rebuilt { width: 184px; } .ll-test img.ll-choice { width: 100%; max-width: 120px; }
.ll-pair { display: flex; gap: .6rem; align-items: center; } .ll-pair img { width: 56px; }
</style>
"""


@dataclass(frozen=True)
class BlindAnswer:
    """The choice of a visitor."""

    question: BlindQuestion
    chosen: int
    psnr: float

    @property
    def right(self) -> bool:
        return self.chosen == self.question.truth


@dataclass(frozen=True)
class BlindTestState:
    """All answers of a visitor under one selection of settings."""

    signature: str  # of the settings
    set: int = 0  # number of the set; each set has its own pictures
    answers: tuple[BlindAnswer, ...] = ()


@dataclass(frozen=True)
class BlindScore:
    """The number of right answers, and the mean PSNR of the reconstructions."""

    right: int
    total: int
    psnr: float | None

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.right, self.total)

    def above_chance(self, choices: int) -> bool:
        """Whether a visitor who guesses at random would rarely score as well."""
        return self.total > 0 and p_value(self.right, self.total, choices) < SIGNIFICANCE


# --- the statistics ----------------------------------------------------------------------------------------


def wilson(right: int, total: int, z: float = Z95) -> tuple[float, float]:
    """Return Wilson's score interval of a share. It stays between 0 and 1, and works from one answer on."""
    if total < 1:
        return 0.0, 1.0
    share, weight = right / total, z * z / total
    middle = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / total + weight / (4 * total))
    return max(0.0, middle - half), min(1.0, middle + half)


def p_value(right: int, total: int, choices: int) -> float:
    """Return the probability that random guessing gives at least this many right answers."""
    share = 1 / choices
    return sum(math.comb(total, hits) * share**hits * (1 - share) ** (total - hits) for hits in range(right, total + 1))


def score(answers: Sequence[BlindAnswer], protected: bool) -> BlindScore:
    """Return the score of the answers with protection, or of those without."""
    selected = [answer for answer in answers if answer.question.protected == protected]
    psnr = sum(answer.psnr for answer in selected) / len(selected) if selected else None
    return BlindScore(sum(answer.right for answer in selected), len(selected), psnr)


# --- the questions -----------------------------------------------------------------------------------------


def questions(leak: LeakSettings, number: int) -> list[BlindQuestion]:
    """Return the questions of one set whose attack fits; none if no chosen attack fits the model."""
    attacks = series.attacks(leak)
    if not attacks:
        return []
    drawn = attack_series.questions(leak.grid, attack_series.main_attack(attacks), number)
    checked = leak_requests.with_refusals([question.request for question in drawn])
    return [question for question, request in zip(drawn, checked, strict=True) if request.spec]


# --- the page ----------------------------------------------------------------------------------------------


def saved_state(leak: LeakSettings) -> BlindTestState:
    """Return the state of this visitor. Other settings start a new test."""
    state: BlindTestState | None = session.recall("test-sitting")
    signature = attack_series.settings_text(leak.grid)
    return state if state and state.signature == signature else BlindTestState(signature)


def panel(leak: LeakSettings) -> None:
    series.title(blind_test_texts.TITLE)
    shown_set = questions(leak, saved_state(leak).set)
    if not shown_set:
        series.problem(series_texts.NO_ATTACK)
        return
    series.explain(blind_test_texts.LEAD)
    cells = leak_results.read_cells([question.request for question in shown_set])
    moving = any(cell.moving for cell in cells)
    series.draw_until_done(lambda: _draw(leak, shown_set), moving)


def _draw(leak: LeakSettings, shown_set: Sequence[BlindQuestion]) -> Sequence[AttackCell]:
    requests = [question.request for question in shown_set]
    state = saved_state(leak)
    cells = leak_results.read_cells(requests)
    series.progress_bar("test", requests, blind_test_texts.prepare)
    dataset = leak.run["dataset"]
    if state.answers:
        _last_answer(state.answers[-1], dataset)
    answered = {answer.question.name for answer in state.answers}
    unanswered = [pair for pair in zip(shown_set, cells, strict=True) if pair[0].name not in answered]
    ready = [pair for pair in unanswered if _has_picture(pair[1])]
    if ready:
        question, cell = ready[0]
        _question(question, cell, len(state.answers), dataset)
    elif any(cell.moving for _, cell in unanswered):
        series.explain(blind_test_texts.WAIT)
    if state.answers:
        _score(state.answers)
    set_is_over = not ready and not any(cell.id and not cell.done for _, cell in unanswered)
    _next_buttons(state, set_is_over)
    series.failures(cells)
    return cells


def _has_picture(cell: AttackCell) -> bool:
    return cell.done and bool(series.last_guess(cell)) and cell.psnr(0) is not None


def _question(question: BlindQuestion, cell: AttackCell, number: int, dataset: Any) -> None:
    source = _png_source(series.last_guess(cell))
    st.html(f'{CSS}<div class="ll-test"><img class="ll-rebuilt" alt="{blind_test_texts.REBUILT}" src="{source}"></div>')
    faces = thumbnails(dataset, list(question.choices), services.store().home)
    psnr = cell.psnr(0)
    assert psnr is not None
    for place, (column, face) in enumerate(zip(st.columns(CHOICES, gap="small"), faces, strict=False)):
        with column:
            alt = blind_test_texts.CHOICE.format(number=place + 1, of=len(faces))
            source = _png_source(face.png)
            st.html(f'<div class="ll-test"><img class="ll-choice" alt="{alt}" src="{source}"></div>')
            st.button(
                blind_test_texts.CHOOSE.format(number=place + 1), key=f"test-choose-{number}-{place}",
                on_click=_choose, args=(BlindAnswer(question, place, psnr),),
            )  # fmt: skip


def _png_source(png: str) -> str:
    return f"data:image/png;base64,{png}"


def _choose(answer: BlindAnswer) -> None:
    """Store an answer. A second click on the same question does not count."""
    state = saved_state(STATE.current())
    answered = {known.question.name for known in state.answers}
    if answer.question.name not in answered:
        session.remember("test-sitting", replace(state, answers=(*state.answers, answer)))
    session.rerun()


def _last_answer(answer: BlindAnswer, dataset: Any) -> None:
    """Show whether the last answer was right, next to the reconstruction and its original."""
    question = answer.question
    cell = leak_results.read_cells([question.request])[0]
    original = thumbnails(dataset, [question.name], services.store().home)[0]
    title = blind_test_texts.ORIGINAL.format(title=original.title)
    pictures = ""
    for png, alt in ((series.last_guess(cell), blind_test_texts.REBUILT), (original.png, title)):
        if png:
            pictures += f'<img alt="{html.escape(alt, quote=True)}" src="{_png_source(png)}">'
    assert question.request.spec is not None
    column = leak_columns.column_title(question.request.column, question.request.spec.run)
    text = blind_test_texts.answered(answer.right, answer.chosen + 1, question.truth + 1, column, answer.psnr)
    verdict = f'<p class="ll-lead" role="status" aria-live="polite">{html.escape(text)}</p>'
    st.html(f'{CSS}<div class="ll-test ll-pair">{pictures}{verdict}</div>')


def _score(answers: Sequence[BlindAnswer]) -> None:
    scores = {
        blind_test_texts.BASELINE: score(answers, False),
        blind_test_texts.PROTECTED: score(answers, True),
    }
    series.explain(blind_test_texts.score_sentence(scores, CHOICES))
    rows = {name: blind_test_texts.score_row(part, CHOICES) for name, part in scores.items()}
    st.html(blind_test_texts.table(rows))


def _next_buttons(state: BlindTestState, set_is_over: bool) -> None:
    """Offer the next set, and a restart. A restart also takes other pictures, since you have seen these originals."""
    if not state.answers:
        return
    more = replace(state, set=state.set + 1)
    restarted = BlindTestState(state.signature, state.set + 1)
    with st.container(horizontal=True, key="test-next"):
        if set_is_over:
            st.button(
                blind_test_texts.PREPARE_MORE.format(many=SET), key="test-more", type="primary",
                on_click=_set_state, args=(more,),
            )  # fmt: skip
        st.button(blind_test_texts.RESTART, key="test-again", on_click=_set_state, args=(restarted,))


def _set_state(state: BlindTestState) -> None:
    session.remember("test-sitting", state)
    session.rerun()
