"""The picture test: fair questions, honest scores."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.leak import settings as leak_settings
from app.screens.leak.blind_test import panel as blind_test
from app.screens.leak.blind_test import texts as blind_test_texts
from app.screens.leak.blind_test.panel import BlindAnswer, BlindQuestion, BlindScore, BlindTestState
from app.screens.leak.settings import FEW, LeakSettings
from engine.specs.attack_grid import NONE, RequestedAttack
from tests.app.reading import press, text
from tests.app.screens.leak.makers import tell, visit, whole

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]
LABELS = [place % 10 for place in range(200)]


@pytest.fixture
def small() -> LeakSettings:
    return replace(leak_settings.usual(), against=(NONE, "udp-fedavg:0.1", "udp-fedavg:1"), iterations=3)


def answer(right: bool, protected: bool, psnr: float) -> BlindAnswer:
    question = BlindQuestion("test-1", protected, "a", RequestedAttack("a", "map", None), ("test-2", "test-1"))
    return BlindAnswer(question, 1 if right else 0, psnr)


# --- the score ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "asked", "low", "high"),
    [  # worked by hand from the formula, as textbooks print them
        (5, 10, 0.2366, 0.7634),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (1, 1, 0.2065, 1.0),
        (81, 263, 0.2553, 0.3662),
        (0, 0, 0.0, 1.0),
    ],
)
def test_wilsons_interval(right: int, asked: int, low: float, high: float) -> None:
    assert blind_test.wilson(right, asked) == pytest.approx((low, high), abs=5e-5)


def test_protected_and_open_pictures_are_counted_apart() -> None:
    told = [answer(True, False, 30.0), answer(False, False, 20.0), answer(False, True, 14.0)]
    assert blind_test.score(told, False) == BlindScore(1, 2, 25.0)
    assert blind_test.score(told, True) == BlindScore(0, 1, 14.0)
    assert blind_test.score([], True) == BlindScore(0, 0, None)


def test_luck_is_not_called_skill() -> None:
    assert blind_test.luck(1, 1, 6) == pytest.approx(1 / 6) and blind_test.luck(2, 2, 6) == pytest.approx(1 / 36)
    assert blind_test.luck(0, 5, 6) == pytest.approx(1) and blind_test.luck(1, 2, 6) == pytest.approx(11 / 36)
    said = blind_test_texts.score(
        {"a": BlindScore(3, 3, 30.0), "b": BlindScore(1, 1, 14.0), "c": BlindScore(0, 0, None)}, 6
    )
    assert said.startswith("A you were right 3 of 3 times, more often than chance (1 in 6)")
    assert "b you were right 1 of 1 times, not surely more often" in said and "c you" not in said
    assert blind_test_texts.boxes(BlindScore(0, 0, None), 6) == ("–", "–", "17 %", "–")
    assert blind_test_texts.boxes(BlindScore(5, 10, 25.0), 6) == ("5 of 10, 50 %", "24 to 76 %", "17 %", "25.0 dB")


# --- the questions -----------------------------------------------------------------------------------------


def test_decoys_show_the_same_class() -> None:
    found = blind_test.choices("test-23", LABELS, "seed")
    assert len(set(found)) == blind_test.CHOICES and "test-23" in found
    assert {LABELS[int(name[5:])] for name in found} == {3}
    assert found == blind_test.choices("test-23", LABELS, "seed") != blind_test.choices("test-23", LABELS, "other")


def test_a_small_class_is_filled_up() -> None:
    found = blind_test.choices("test-0", [7, 7, *[1] * 20], "seed")
    assert {"test-0", "test-1"} < set(found) and len(set(found)) == blind_test.CHOICES


def test_the_place_of_the_original_tells_nothing() -> None:
    places = Counter(blind_test.choices(f"test-{at}", LABELS, "seed").index(f"test-{at}") for at in range(200))
    assert set(places) == set(range(blind_test.CHOICES)) and max(places.values()) < 60


def test_nothing_on_the_page_is_asked_and_sets_do_not_repeat() -> None:
    sets = [blind_test.hidden("seed", number, 100, ["test-50"]) for number in range(5)]
    names = [name for one in sets for name in one]
    assert len(set(names)) == len(names) == 5 * blind_test.SET
    assert "test-50" not in names and all(FEW <= int(name[5:]) < 100 for name in names)


def test_half_of_a_set_is_open_and_none_is_from_the_second_half(small: LeakSettings) -> None:
    found = blind_test.questions(small, 0)
    assert Counter(one.protected for one in found) == {True: 4, False: 4}
    assert Counter(one.asked.column for one in found) == {NONE: 4, "udp-fedavg:0.1": 2, "udp-fedavg:1": 2}
    public = blind_test.public(json.dumps(small.run["dataset"]))
    names = [name for one in found for name in one.choices]
    assert max(int(name[5:]) for name in names) < len(public)
    assert all(one.asked.spec and one.asked.spec.pictures == (one.name,) for one in found)
    order = [one.protected for one in found]
    assert order not in (sorted(order), sorted(order, reverse=True))
    assert found == blind_test.questions(replace(small, whose="test-5"), 0)  # whatever stands above
    only = blind_test.questions(replace(small, against=(NONE,)), 0)
    assert not any(one.protected for one in only) and len(only) == blind_test.SET


# --- the panel ---------------------------------------------------------------------------------------------


def ready(leak: LeakSettings) -> tuple[AppTest, list[BlindQuestion]]:
    page = press(visit(leak, "test"), "test-ask")
    found = blind_test.questions(leak, 0)
    for one in found:
        tell(one.asked.id, whole(one.asked.id, [14.0 if one.protected else 30.0]))
    page.run()
    assert not page.exception
    return page, found


def test_every_answer_is_told_and_counted(small: LeakSettings) -> None:
    page, found = ready(small)
    for number, one in enumerate(found):
        wrong = (one.truth + 1) % blind_test.CHOICES
        press(page, f"test-choose-{number}-{wrong if one.protected else one.truth}")
        said = f"Not {wrong + 1}: it was {one.truth + 1}." if one.protected else f"Right: it was {one.truth + 1}."
        assert said in text(page) and one.title in text(page)
    assert "<td>4 of 4, 100 %</td><td>51 to 100 %</td><td>17 %</td><td>30.0 dB</td>" in text(page)
    assert "<td>0 of 4, 0 %</td><td>0 to 49 %</td><td>17 %</td><td>14.0 dB</td>" in text(page)
    assert not [one for one in page.button if str(one.key).startswith("test-choose")]
    press(page, "test-more")
    sitting: BlindTestState = page.session_state["test-sitting"]
    assert (sitting.set, len(sitting.answers)) == (1, 8) and page.button(key="test-ask")
    press(page, "test-again")
    assert page.session_state["test-sitting"].answers == () and page.session_state["test-sitting"].set == 2


def test_the_page_does_not_give_the_answer_away(small: LeakSettings) -> None:
    page, found = ready(small)
    assert found[0].name not in text(page) and found[0].title not in text(page)
    alts = [blind_test_texts.CHOICE.format(number=number, of=6) for number in range(1, 7)]
    assert all(f'alt="{alt}"' in text(page) for alt in alts)
    assert " dB" not in text(page)
    labels = [one.label for one in page.button if str(one.key).startswith("test-choose")]
    assert labels == [blind_test_texts.CHOOSE.format(number=number) for number in range(1, 7)]


def test_other_settings_begin_another_score(small: LeakSettings) -> None:
    page, found = ready(small)
    press(page, f"test-choose-0-{found[0].truth}")
    assert len(page.session_state["test-sitting"].answers) == 1
    page.session_state["leak"] = replace(small, restarts=2)
    page.run()
    assert "Right" not in text(page) and page.button(key="test-ask")


def test_questions_come_as_soon_as_a_picture_is_rebuilt(small: LeakSettings) -> None:
    page = press(visit(small, "test"), "test-ask")
    assert blind_test_texts.WAIT in text(page)
    last = blind_test.questions(small, 0)[-1]
    tell(last.asked.id, whole(last.asked.id, [20.0]))
    page.run()
    press(page, f"test-choose-0-{last.truth}")
    assert "Right" in text(page) and blind_test_texts.WAIT in text(page)
