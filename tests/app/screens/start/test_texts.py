"""The sentences of Start follow from a verdict, an accuracy and an ε."""

from __future__ import annotations

import pytest

from app.screens.start import texts
from app.screens.start.texts import OWN_WORDS, PORTRAIT_WORDS, StopResult
from engine.epsilon import Epsilon
from engine.results.verdict import COMES_BACK, KIND, NOT_RECOGNISED, OUTLINES, Verdict


def result(
    verdict: Verdict | None, accuracy: float, epsilon: float | None, attacks: int = 3, view: str = "server"
) -> StopResult:
    known = None if epsilon is None else Epsilon(epsilon, view, "user", "zero-out", 1e-5, "prv", "poisson")
    return StopResult(verdict, accuracy, 0.838, known, attacks)


OFF = result(COMES_BACK, 0.838, None)
HIDDEN = result(NOT_RECOGNISED, 0.78, 520.0)
PROMISED = result(NOT_RECOGNISED, 0.352, 6.63)


@pytest.mark.parametrize(
    ("stop", "sentence"),
    [
        (OFF, "Without protection, the server can tell who she is."),
        (result(COMES_BACK, 0.83, 41200.0), "You can still tell who she is."),
        (result(OUTLINES, 0.829, 4850.0), "You can still see outlines of her face."),
        (HIDDEN, "None of 3 attackers brings her back; accuracy 78 %. Still no promise."),
        (PROMISED, "Now there is a weak promise (ε 6.63). Accuracy fell from 84 to 35 %."),
        (result(NOT_RECOGNISED, 0.835, 0.5), "Now there is a strong promise (ε 0.5). Accuracy stays at 84 %."),
        (
            result(COMES_BACK, 0.7, 2.0),
            "You can still tell who she is. Now there is a limited promise (ε 2). Accuracy fell from 84 to 70 %.",
        ),
        (result(NOT_RECOGNISED, 0.838, None), "None of our 3 attackers succeeded here. That is not a promise."),
        (result(None, 0.8, 5.0), ""),
    ],
)
def test_a_sentence_follows_from_the_numbers(stop: StopResult, sentence: str) -> None:
    assert texts.sentence(stop, PORTRAIT_WORDS, "server") == sentence


def test_one_instant_attack_is_named_as_such() -> None:
    sentence = texts.sentence(result(NOT_RECOGNISED, 0.78, 520.0, attacks=1), OWN_WORDS, "server")
    assert sentence == "The instant attack no longer brings it back; accuracy 78 %. Still no promise."


def test_the_easiest_case_is_said_where_something_comes_back() -> None:
    assert texts.note(OFF, easiest=True) == texts.EASIEST
    assert texts.note(OFF, easiest=False) == ""
    assert texts.note(PROMISED, easiest=True).startswith(
        "None of our 3 attackers succeeded here. That is not a promise"
    )


def test_the_lesson_is_said_only_if_the_numbers_say_so() -> None:
    assert texts.lesson([OFF, HIDDEN, PROMISED]) == texts.LESSON
    assert texts.lesson([OFF, result(NOT_RECOGNISED, 0.6, 520.0), PROMISED]) == ""  # hiding it is dear
    assert texts.lesson([OFF, HIDDEN, result(NOT_RECOGNISED, 0.75, 6.63)]) == ""  # a promise is cheap
    assert texts.lesson([result(NOT_RECOGNISED, 0.838, None), HIDDEN, PROMISED]) == ""  # nothing comes back anyway
    assert texts.lesson([OFF, HIDDEN]) == ""  # no promise at all


def test_a_headline_says_where_the_photo_is() -> None:
    assert texts.headline("client", False, True).endswith(
        "This is what another participant could rebuild from what did."
    )
    assert "never left" not in texts.headline("server", True, False)
    assert "on this computer" not in texts.headline("server", True, False)
    assert "Instant attack only" in texts.headline("server", True, False)


def test_a_promise_is_never_shown_smaller_than_it_is() -> None:
    assert "ε 450,000 per client" in texts.terms(result(OFF.verdict, 0.8, 448_100.0).epsilon)
    assert "ε 42,000 per client" in texts.terms(result(OFF.verdict, 0.8, 41_200.0).epsilon)
    assert texts.terms(None) == ""


def test_one_attacker_is_no_crowd() -> None:
    promised = result(NOT_RECOGNISED, 0.352, 6.63, attacks=1)
    assert texts.note(promised, easiest=False).startswith("Our one attacker did not succeed here.")
    hidden = texts.sentence(result(NOT_RECOGNISED, 0.78, 520.0, attacks=1), PORTRAIT_WORDS, "server")
    assert hidden.startswith("The one attacker no longer brings her back")


def test_the_text_of_a_picture_says_recognisable_only_where_it_is() -> None:
    seen = {verdict: texts.alt(verdict, PORTRAIT_WORDS, "") for verdict in (COMES_BACK, OUTLINES, KIND, NOT_RECOGNISED)}
    assert seen[COMES_BACK] == "Her face, rebuilt from numbers alone. Recognisable."
    assert seen[OUTLINES] == "Outlines of her face, rebuilt from numbers alone."
    assert seen[KIND] == "A picture of the same kind of thing, rebuilt from numbers alone."
    assert seen[NOT_RECOGNISED] == "A picture rebuilt from numbers alone. Her face is not recognisable."
