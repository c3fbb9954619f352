"""The blind test: its questions do not reveal the answer, and its scores are correct."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.leak import columns as leak_columns
from app.screens.leak.blind_test import panel as blind_test
from app.screens.leak.blind_test import texts as blind_test_texts
from app.screens.leak.blind_test.panel import BlindAnswer, BlindScore, BlindTestState
from app.screens.leak.settings import LeakSettings
from app.session import services
from engine.jobs.thumbnails import thumbnails
from engine.specs import attack_series
from engine.specs.attack_grid import NONE, RequestedAttack
from engine.specs.attack_series import CHOICES, BlindQuestion
from tests.app.reading import press, text
from tests.app.screens.leak.makers import append_events, finished_attack, visit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]


@pytest.fixture
def small() -> LeakSettings:
    return LeakSettings.default().with_(against=(NONE, "udp-fedavg:0.1", "udp-fedavg:1"), iterations=3)


def answer(right: bool, protected: bool) -> BlindAnswer:
    question = BlindQuestion("test-1", protected, RequestedAttack("a", "map", None), ("test-2", "test-1"))
    return BlindAnswer(question, 1 if right else 0)


# --- the score ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    [  # computed by hand from the formula in textbooks
        (5, 10, 0.2366, 0.7634),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (1, 1, 0.2065, 1.0),
        (81, 263, 0.2553, 0.3662),
        (0, 0, 0.0, 1.0),
    ],
)
def test_wilsons_interval(right: int, total: int, low: float, high: float) -> None:
    assert blind_test.wilson(right, total) == pytest.approx((low, high), abs=5e-5)


def test_protected_and_baseline_pictures_are_counted_separately() -> None:
    answers = [answer(True, False), answer(False, False), answer(False, True)]
    assert blind_test.score(answers, False) == BlindScore(1, 2)
    assert blind_test.score(answers, True) == BlindScore(0, 1)
    assert blind_test.score([], True) == BlindScore(0, 0)


def test_a_score_that_random_guessing_reaches_is_not_above_guessing() -> None:
    assert blind_test.p_value(1, 1, 6) == pytest.approx(1 / 6) and blind_test.p_value(2, 2, 6) == pytest.approx(1 / 36)
    assert blind_test.p_value(0, 5, 6) == pytest.approx(1) and blind_test.p_value(1, 2, 6) == pytest.approx(11 / 36)
    scores = {"a": BlindScore(3, 3), "b": BlindScore(1, 1), "c": BlindScore(0, 0)}
    assert blind_test_texts.score_sentence(scores, 6) == (
        "A you were right 3 of 3 times. Guessing rarely does as well. "
        "B you were right 1 of 1 time. Guessing may do as well."
    )
    assert blind_test_texts.score_row(BlindScore(0, 0), 6) == ("–", "–", "1 in 6, 17 %")
    assert blind_test_texts.score_row(BlindScore(5, 10), 6) == ("5 of 10, 50 %", "24 to 76 %", "1 in 6, 17 %")


# --- the questions -----------------------------------------------------------------------------------------


def test_no_original_is_among_the_pictures_that_the_form_offers() -> None:
    grid = LeakSettings.default().grid
    for number in range(10):
        assert not {*attack_series.originals(grid, number, 500)} & {*attack_series.offered("test-0")}


# --- the panel ---------------------------------------------------------------------------------------------


def title_of(question: BlindQuestion) -> str:
    assert question.request.spec
    return leak_columns.column_title(question.request.column, question.request.spec.run)


def ready(leak: LeakSettings) -> tuple[AppTest, list[BlindQuestion]]:
    page = press(visit(leak, "test"), "test-ask")
    questions = blind_test.questions(leak, 0)
    for question in questions:
        run = question.request.id
        append_events(run, finished_attack(run, [14.0 if question.protected else 30.0]))
    page.run()
    assert not page.exception
    return page, questions


def test_every_answer_is_reported_and_counted(small: LeakSettings) -> None:
    page, questions = ready(small)
    for number, question in enumerate(questions):
        if number:
            press(page, "test-next")
        assert f"Rebuilt picture {number + 1} of 8" in text(page)
        wrong = (question.truth + 1) % CHOICES
        press(page, f"test-choose-{number}-{wrong if question.protected else question.truth}")
        verdict = blind_test_texts.WRONG if question.protected else blind_test_texts.RIGHT
        assert f"{verdict} The upload had {title_of(question)}." in text(page)
        # The original is next to the rebuilt picture, and a wrong choice next to both.
        assert text(page).count("<figure>") == (3 if question.protected else 2)
        assert f'alt="{blind_test_texts.ORIGINAL}"' in text(page)
    assert "<td>4 of 4, 100 %</td><td>51 to 100 %</td><td>1 in 6, 17 %</td>" in text(page)
    assert "<td>0 of 4, 0 %</td><td>0 to 49 %</td><td>1 in 6, 17 %</td>" in text(page)
    keys = [str(button.key) for button in page.button]
    assert not [key for key in keys if key.startswith("test-choose") or key == "test-next"]
    press(page, "test-more")
    state: BlindTestState = page.session_state["test-sitting"]
    assert (state.set, len(state.answers)) == (1, 8) and page.button(key="test-ask")
    press(page, "test-again")
    assert page.session_state["test-sitting"].answers == () and page.session_state["test-sitting"].set == 2


def test_the_page_does_not_reveal_the_answer(small: LeakSettings) -> None:
    page, questions = ready(small)
    assert questions[0].name not in text(page) and title_of(questions[0]) not in text(page)
    assert " dB" not in text(page)


def test_b30_the_pictures_themselves_are_the_buttons(small: LeakSettings) -> None:
    page, questions = ready(small)
    buttons = [button for button in page.button if str(button.key).startswith("test-choose")]
    faces = thumbnails(small.run["dataset"], questions[0].choices, services.store().home)
    labels = [blind_test_texts.choice(number, CHOICES, face.title) for number, face in enumerate(faces, 1)]
    assert [button.label for button in buttons] == labels
    for place, face in enumerate(faces):
        assert f".st-key-test-choose-0-{place} button {{ background-image: url(data:image/png;base64,{face.png})" in (
            text(page)
        )


def test_a_test_without_protection_does_not_claim_that_half_is_protected(small: LeakSettings) -> None:
    assert blind_test_texts.HALF in text(visit(small, "test"))
    assert blind_test_texts.HALF not in text(visit(small.with_(against=(NONE,)), "test"))


def test_other_settings_start_another_score(small: LeakSettings) -> None:
    page, questions = ready(small)
    press(page, f"test-choose-0-{questions[0].truth}")
    assert len(page.session_state["test-sitting"].answers) == 1
    page.session_state["leak"] = small.with_(restarts=2, closer="test")
    page.run()
    assert blind_test_texts.RIGHT not in text(page) and page.button(key="test-ask")


def test_a_question_appears_as_soon_as_its_picture_is_rebuilt(small: LeakSettings) -> None:
    page = press(visit(small, "test"), "test-ask")
    assert blind_test_texts.WAIT in text(page)
    last = blind_test.questions(small, 0)[-1]
    append_events(last.request.id, finished_attack(last.request.id, [20.0]))
    page.run()
    press(page, f"test-choose-0-{last.truth}")
    assert blind_test_texts.RIGHT in text(page)
    press(page, "test-next")
    assert blind_test_texts.WAIT in text(page)
