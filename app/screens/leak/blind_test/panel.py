"""The picture test: a visitor looks for the original of a rebuilt picture among others of its class."""

from __future__ import annotations

import html
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import streamlit as st

from app.screens.leak import requests as leak_requests
from app.screens.leak import results as leak_results
from app.screens.leak import series
from app.screens.leak import settings as leak_settings
from app.screens.leak.blind_test import texts as blind_test_texts
from app.screens.leak.settings import FEW, LeakSettings
from app.session import services, session
from app.texts import attack_series as series_texts
from engine.jobs.thumbnails import Thumbnail, thumbnails
from engine.results.attack_summary import AttackCell
from engine.specs.attack_grid import NONE, RequestedAttack

SET = 8  # rebuilt pictures at a time: half of them without protection
CHOICES = 6
Z95 = 1.959964  # the normal's quantile of a 95 % interval
CSS = """
<style>
.ll-test img { image-rendering: pixelated; background: var(--hair); display: block; }
.ll-test img.ll-rebuilt { width: 184px; } .ll-test img.ll-choice { width: 100%; max-width: 120px; }
.ll-pair { display: flex; gap: .6rem; align-items: center; } .ll-pair img { width: 56px; }
</style>
"""


@dataclass(frozen=True)
class BlindQuestion:
    """One rebuilt picture, and those its original hides among."""

    name: str  # of the original
    protected: bool
    title: str  # of the protection
    asked: RequestedAttack
    choices: tuple[str, ...]  # names in the order shown

    @property
    def truth(self) -> int:
        return self.choices.index(self.name)


@dataclass(frozen=True)
class BlindAnswer:
    """What a visitor chose."""

    question: BlindQuestion
    chosen: int
    psnr: float

    @property
    def right(self) -> bool:
        return self.chosen == self.question.truth


@dataclass(frozen=True)
class BlindTestState:
    """Everything that one visitor has answered about one grid."""

    of: str  # the settings it belongs to
    set: int = 0  # each set has pictures of its own
    answers: tuple[BlindAnswer, ...] = ()


@dataclass(frozen=True)
class BlindScore:
    """Hits among answers, beside how near the pictures came."""

    right: int
    asked: int
    psnr: float | None

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.right, self.asked)

    def skilled(self, choices: int) -> bool:
        """Whether guessing alone would hardly do as well."""
        return self.asked > 0 and luck(self.right, self.asked, choices) < 0.05


# --- pure --------------------------------------------------------------------------------------------------


def wilson(right: int, asked: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval of a share: it keeps within 0 and 1, and is of use from one answer on."""
    if asked < 1:
        return 0.0, 1.0
    share, weight = right / asked, z * z / asked
    middle = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / asked + weight / (4 * asked))
    return max(0.0, middle - half), min(1.0, middle + half)


def luck(right: int, asked: int, choices: int) -> float:
    """How likely somebody who only guesses is right at least so often."""
    share = 1 / choices
    return sum(math.comb(asked, hits) * share**hits * (1 - share) ** (asked - hits) for hits in range(right, asked + 1))


def score(answers: Sequence[BlindAnswer], protected: bool) -> BlindScore:
    mine = [one for one in answers if one.question.protected == protected]
    near = sum(one.psnr for one in mine) / len(mine) if mine else None
    return BlindScore(sum(one.right for one in mine), len(mine), near)


def hidden(of: str, number: int, most: int, shown: Sequence[str]) -> list[str]:
    """The originals of one set: of the first half of the test pictures, none that the page shows."""
    names = [name for place in range(FEW, most) if (name := f"test-{place}") not in shown]
    random.Random(of).shuffle(names)
    start = number * SET % max(1, len(names))
    return [*names[start:], *names[:start]][:SET]


def choices(name: str, labels: Sequence[int], of: str) -> tuple[str, ...]:
    """The original among decoys of its class, filled up with others where its class is small."""
    chance, own = random.Random(f"{of}/{name}"), int(name.partition("-")[2])
    places = [place for place in range(len(labels)) if place != own]
    chance.shuffle(places)
    alike = [place for place in places if labels[place] == labels[own]]
    others = [place for place in places if labels[place] != labels[own]]
    found = [name, *(f"test-{place}" for place in (alike + others)[: CHOICES - 1])]
    chance.shuffle(found)
    return tuple(found)


def questions(leak: LeakSettings, number: int) -> list[BlindQuestion]:
    """One set: half without protection, half under the other columns in turn, in an order that tells nothing."""
    attacks = series.attacks(leak)
    if not attacks:
        return []
    of, labels = signature(leak), public(json.dumps(leak.run["dataset"]))
    columns = leak_settings.columns(leak)
    there, guarded = list(columns[:1]), [one for one in columns if one.key != NONE] or list(columns[:1])
    found = []
    for place, name in enumerate(hidden(of, number, len(labels) - leak.many + 1, leak.pictures)):
        column = there[0] if place % 2 else guarded[(number * SET + place) // 2 % len(guarded)]
        asked = _cell(replace(leak, whose=name, attacks=(series.steady(attacks),)), column.key)
        found.append(
            BlindQuestion(name, column.spec.method.unit() is not None, column.title, asked, choices(name, labels, of))
        )
    random.Random(f"{of}/{number}").shuffle(found)
    return [one for one in found if one.asked.spec]


def _cell(leak: LeakSettings, key: str) -> RequestedAttack:
    cells = leak_requests.fitted(leak_settings.cells(replace(leak, against=(key,))))
    return next(one for one in cells if one.column == key)


def signature(leak: LeakSettings) -> str:
    """The settings that a score belongs to: all but whose picture stands above."""
    return json.dumps({**leak_settings.link(leak), "whose": ""}, sort_keys=True)


@lru_cache(maxsize=16)
def public(dataset: str) -> tuple[int, ...]:
    """The classes of the first half of the test pictures: attacks may have learnt from the second."""
    from engine.specs.run import SHELVES

    labels: list[int] = SHELVES["dataset"].make(json.loads(dataset)).facts().test_y.tolist()
    return tuple(labels[: len(labels) // 2])


# --- the page ----------------------------------------------------------------------------------------------


def sitting(leak: LeakSettings) -> BlindTestState:
    """As the visitor left it; other settings begin a new one."""
    found: BlindTestState | None = session.recall("test-sitting")
    of = signature(leak)
    return found if found and found.of == of else BlindTestState(of)


def panel(leak: LeakSettings) -> None:
    series.title(blind_test_texts.TEST)
    now = sitting(leak)
    found = questions(leak, now.set)
    if not found:
        series.problem(series_texts.NO_ATTACK)
        return
    series.why(blind_test_texts.TEST_LEAD)
    moving = any(cell.moving for cell in leak_results.read([one.asked for one in found]))
    series.followed(lambda: _drawn(leak, found), moving)


def _drawn(leak: LeakSettings, found: Sequence[BlindQuestion]) -> Sequence[AttackCell]:
    asked, now = [one.asked for one in found], sitting(leak)
    cells = leak_results.read(asked)
    series.bar("test", asked, cells, blind_test_texts.prepare)
    dataset = leak.run["dataset"]
    if now.answers:
        _told(now.answers[-1], dataset)
    known = {one.question.name for one in now.answers}
    open_ = [(one, cell) for one, cell in zip(found, cells, strict=True) if one.name not in known]
    ready = [(one, cell) for one, cell in open_ if cell.done and series.last(cell) and cell.psnr(0) is not None]
    if ready:
        _question(*ready[0], len(now.answers), dataset)
    elif any(cell.moving for _, cell in open_):
        series.why(blind_test_texts.WAIT)
    if now.answers:
        _score(now.answers)
    _next(now, whole=not ready and not any(cell.id and not cell.done for _, cell in open_))
    series.failures(cells)
    return cells


def _question(one: BlindQuestion, cell: AttackCell, number: int, dataset: Any) -> None:
    shown = series.last(cell)
    alt = blind_test_texts.REBUILT
    st.html(f'{CSS}<div class="ll-test"><img class="ll-rebuilt" alt="{alt}" src="data:image/png;base64,{shown}"></div>')
    faces = thumbnails(dataset, list(one.choices), services.store().home)
    psnr = cell.psnr(0)
    assert psnr is not None
    for place, (column, face) in enumerate(zip(st.columns(CHOICES, gap="small"), faces, strict=False)):
        with column:
            alt = blind_test_texts.CHOICE.format(number=place + 1, of=len(faces))
            source = f"data:image/png;base64,{face.png}"
            st.html(f'<div class="ll-test"><img class="ll-choice" alt="{alt}" src="{source}"></div>')
            st.button(
                blind_test_texts.CHOOSE.format(number=place + 1), key=f"test-choose-{number}-{place}",
                on_click=_choose, args=(BlindAnswer(one, place, psnr),),
            )  # fmt: skip


def _choose(answer: BlindAnswer) -> None:
    now = sitting(leak_requests.leak())
    if answer.question.name not in {one.question.name for one in now.answers}:
        session.remember("test-sitting", replace(now, answers=(*now.answers, answer)))
    session.again()


def _told(last: BlindAnswer, dataset: Any) -> None:
    """Whether the last answer was right, beside the two pictures."""
    question = last.question
    told = blind_test_texts.answered(last.right, last.chosen + 1, question.truth + 1, question.title, last.psnr)
    cell = leak_results.read([question.asked])[0]
    pair: list[tuple[str, str]] = [(series.last(cell), blind_test_texts.REBUILT)]
    original: Thumbnail = thumbnails(dataset, [question.name], services.store().home)[0]
    pair.append((original.png, blind_test_texts.ORIGINAL.format(title=original.title)))
    pictures = "".join(
        f'<img alt="{html.escape(alt, quote=True)}" src="data:image/png;base64,{png}">' for png, alt in pair if png
    )
    said = f'<p class="ll-said" role="status" aria-live="polite">{html.escape(told)}</p>'
    st.html(f'{CSS}<div class="ll-test ll-pair">{pictures}{said}</div>')


def _score(answers: Sequence[BlindAnswer]) -> None:
    found: Mapping[str, BlindScore] = {
        blind_test_texts.OPEN: score(answers, False),
        blind_test_texts.DEFENDED: score(answers, True),
    }
    series.why(blind_test_texts.score(found, CHOICES))
    st.html(blind_test_texts.table({name: blind_test_texts.boxes(one, CHOICES) for name, one in found.items()}))


def _next(now: BlindTestState, whole: bool) -> None:
    """On with other pictures, or from the beginning: with other pictures, too, since these are known by now."""
    if not now.answers:
        return
    with st.container(horizontal=True, key="test-next"):
        if whole:
            st.button(
                blind_test_texts.PREPARE_MORE.format(many=SET), key="test-more", type="primary",
                on_click=_turn, args=(replace(now, set=now.set + 1),),
            )  # fmt: skip
        st.button(blind_test_texts.AGAIN, key="test-again", on_click=_turn, args=(BlindTestState(now.of, now.set + 1),))


def _turn(then: BlindTestState) -> None:
    session.remember("test-sitting", then)
    session.again()
