"""The blind test: you look for the original of a reconstruction among other pictures of its class."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from app.batch import attack_cells
from app.screens.leak import columns as leak_columns
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

SIGNIFICANCE = 0.05  # a score with a smaller p-value is above guessing
Z95 = 1.959964  # the quantile of the normal distribution for a 95 % interval
CSS = """
<style>
.ll-test { display: flex; flex-wrap: wrap; gap: 1rem; }
.ll-test figure { margin: 0; font-size: .9rem; } .ll-test figcaption { margin-top: .2rem; }
.ll-test img { width: 160px; aspect-ratio: 1; image-rendering: pixelated; background: var(--hair); display: block; }
.st-key-test-choices { display: grid !important; grid-template-columns: repeat(6, minmax(44px, 120px)); gap: .6rem; }
.st-key-test-choices > div, .st-key-test-choices > div > div { width: 100% !important; }
.st-key-test-choices button { width: 100%; aspect-ratio: 1; height: auto; padding: 0; border-radius: 3px;
  background-size: cover; image-rendering: pixelated; border: 1px solid var(--hair); }
.st-key-test-choices button p { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.st-key-test-choices button:hover { outline: 2px solid var(--ink); outline-offset: 1px; }
.st-key-test-choices button:focus-visible { outline: 3px solid var(--ink); outline-offset: 2px; }
@media (max-width: 640px) {
  .st-key-test-choices { grid-template-columns: repeat(3, minmax(44px, 1fr)); }
  .ll-test { gap: .5rem; } .ll-test figure { flex: 0 1 31%; } .ll-test figure:only-child { flex: none; }
  .ll-test figure:not(:only-child) img { width: 100%; }
}
"""


@dataclass(frozen=True)
class BlindAnswer:
    """The choice of a visitor."""

    question: BlindQuestion
    chosen: int

    @property
    def right(self) -> bool:
        return self.chosen == self.question.truth


@dataclass(frozen=True)
class BlindTestState:
    """All answers of a visitor under one selection of settings."""

    signature: str  # of the settings
    set: int = 0  # number of the set; each set has its own pictures
    answers: tuple[BlindAnswer, ...] = ()
    reviewing: bool = False  # whether the last answer is shown in place of a question


@dataclass(frozen=True)
class BlindScore:
    """The number of right answers."""

    right: int
    total: int

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.right, self.total)

    def above_guessing(self, choices: int) -> bool:
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
    return BlindScore(sum(answer.right for answer in selected), len(selected))


# --- the questions -----------------------------------------------------------------------------------------


def questions(leak: LeakSettings, number: int) -> list[BlindQuestion]:
    """Return the questions of one set whose attack fits; none if no chosen attack fits the model."""
    attacks = series.attacks(leak)
    if not attacks:
        return []
    drawn = attack_series.questions(leak.grid, attack_series.main_attack(attacks), number)
    checked = attack_cells.with_refusals([question.request for question in drawn])
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
    compared = any(question.protected for question in shown_set)
    series.explain(f"{blind_test_texts.LEAD} {blind_test_texts.HALF if compared else series_texts.ONLY_BASELINE}")
    cells = attack_cells.read_cells([question.request for question in shown_set])
    moving = any(cell.moving for cell in cells)
    series.draw_until_done(lambda: _draw(leak, shown_set), moving)


def _draw(leak: LeakSettings, shown_set: Sequence[BlindQuestion]) -> Sequence[AttackCell]:
    requests = [question.request for question in shown_set]
    state = saved_state(leak)
    cells = attack_cells.read_cells(requests)
    series.progress_bar("test", requests, blind_test_texts.prepare)
    dataset = leak.run["dataset"]
    answered = {answer.question.name for answer in state.answers}
    unanswered = [pair for pair in zip(shown_set, cells, strict=True) if pair[0].name not in answered]
    ready = [pair for pair in unanswered if _has_picture(pair[1])]
    moving = any(cell.moving for _, cell in unanswered)
    if state.reviewing:
        _review(state.answers[-1], dataset)
    elif ready:
        place = len(shown_set) - len(unanswered) + 1
        _question(*ready[0], blind_test_texts.place(place, len(shown_set)), dataset)
    elif moving:
        series.explain(blind_test_texts.WAIT)
    set_is_over = not ready and not any(cell.id and not cell.done for _, cell in unanswered)
    _next_buttons(state, bool(ready) or moving, set_is_over)
    if state.answers:
        _score(state.answers)
    series.failures(cells)
    return cells


def _has_picture(cell: AttackCell) -> bool:
    return cell.done and bool(series.last_guess(cell)) and cell.psnr(0) is not None


def _question(question: BlindQuestion, cell: AttackCell, caption: str, dataset: Any) -> None:
    """Show a rebuilt picture, and the pictures to choose from. Each picture is a button."""
    faces = thumbnails(dataset, question.choices, services.store().home)
    number = len(saved_state(STATE.current()).answers)
    rules = []
    for place, face in enumerate(faces):
        rules.append(f".st-key-test-choose-{number}-{place} button {{ background-image: url({_source(face.png)}); }}")
    rebuilt = _figure(series.last_guess(cell), caption)
    which = f'<p class="ll-why">{blind_test_texts.WHICH}</p>'
    st.html(f'{CSS}{" ".join(rules)}</style><div class="ll-test">{rebuilt}</div>{which}')
    with st.container(horizontal=True, key="test-choices"):
        for place, face in enumerate(faces):
            st.button(
                blind_test_texts.choice(place + 1, len(faces), face.title), key=f"test-choose-{number}-{place}",
                on_click=_choose, args=(BlindAnswer(question, place),),
            )  # fmt: skip


def _source(png: str) -> str:
    return f"data:image/png;base64,{png}"


def _figure(png: str, caption: str, hover: str = "") -> str:
    text = html.escape(caption, quote=True)
    title = f' title="{html.escape(hover, quote=True)}"' if hover else ""
    return f'<figure><img alt="{text}"{title} src="{_source(png)}"><figcaption>{text}</figcaption></figure>'


def _choose(answer: BlindAnswer) -> None:
    """Store an answer. A second click on the same question does not count."""
    state = saved_state(STATE.current())
    answered = {known.question.name for known in state.answers}
    if answer.question.name not in answered:
        session.remember("test-sitting", replace(state, answers=(*state.answers, answer), reviewing=True))
    session.rerun()


def _review(answer: BlindAnswer, dataset: Any) -> None:
    """Show the rebuilt picture next to its original, the visitor's choice if it was another, and the protection."""
    question = answer.question
    assert question.request.spec is not None
    cell = attack_cells.read_cells([question.request])[0]
    names = [question.name] if answer.right else [question.name, question.choices[answer.chosen]]
    captions = (blind_test_texts.ORIGINAL, blind_test_texts.CHOSEN)
    psnr = cell.psnr(0)
    hover = "" if psnr is None else series_texts.score(psnr, cell.trivial(0))
    figures = [_figure(series.last_guess(cell), blind_test_texts.REBUILT, hover)]
    for face, caption in zip(thumbnails(dataset, names, services.store().home), captions, strict=False):
        figures.append(_figure(face.png, caption))
    column = leak_columns.column_title(question.request.column, question.request.spec.run)
    series.announce(blind_test_texts.answered(answer.right, column))
    st.html(f'{CSS}</style><div class="ll-test">{"".join(figures)}</div>')


def _score(answers: Sequence[BlindAnswer]) -> None:
    scores = {
        blind_test_texts.BASELINE: score(answers, False),
        blind_test_texts.PROTECTED: score(answers, True),
    }
    series.explain(blind_test_texts.score_sentence(scores, CHOICES))
    rows = {name: blind_test_texts.score_row(part, CHOICES) for name, part in scores.items()}
    st.html(blind_test_texts.table(rows))
    series.explain(blind_test_texts.INTERVAL)


def _next_buttons(state: BlindTestState, more_pictures: bool, set_is_over: bool) -> None:
    """Offer the next picture or the next set, and a restart, which takes other pictures than those you have seen."""
    if not state.answers:
        return
    steps = []
    if state.reviewing and more_pictures:
        steps.append((blind_test_texts.NEXT, "test-next", replace(state, reviewing=False)))
    if set_is_over:
        more = replace(state, set=state.set + 1, reviewing=False)
        steps.append((blind_test_texts.PREPARE_MORE.format(many=SET), "test-more", more))
    with st.container(horizontal=True, key="test-steps"):
        for label, key, state_after in steps:
            st.button(label, key=key, type="primary", on_click=_set_state, args=(state_after,))
        restarted = BlindTestState(state.signature, state.set + 1)
        st.button(blind_test_texts.RESTART, key="test-again", on_click=_set_state, args=(restarted,))


def _set_state(state: BlindTestState) -> None:
    session.remember("test-sitting", state)
    session.rerun()
