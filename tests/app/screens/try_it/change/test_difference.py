"""The sentence that says how side B differs from side A."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.screens.try_it import texts as try_texts
from app.screens.try_it.change import difference
from app.screens.try_it.change.difference import SideResult
from engine.epsilon import Epsilon
from engine.results.verdict import COMES_BACK, NOT_RECOGNISED, OUTLINES

SERVER = Epsilon(6.0, "server", "user", "zero-out", 1e-5, "exact", "all")
A = SideResult("UDP-FedAvg", SERVER, 0.35, verdict=NOT_RECOGNISED)


def with_epsilon(value: float, unit: str = "user") -> Epsilon:
    return replace(SERVER, value=value, unit=unit)


@pytest.mark.parametrize(
    ("b", "sentence"),
    [
        (
            replace(A, epsilon=with_epsilon(3.0), accuracy=0.27),
            "B has half the ε: 8 points less accuracy, and the picture stays hidden.",
        ),
        (
            replace(A, epsilon=with_epsilon(1.0), accuracy=0.349),
            "B has a smaller ε (ε 1, a strong promise): about the same accuracy, and the picture stays hidden.",
        ),
        (
            replace(A, epsilon=with_epsilon(40.0), accuracy=0.7, verdict=OUTLINES),
            "B has no meaningful promise: 35 points more accuracy, and outlines of the picture come back.",
        ),
        (
            replace(A, protection="FedCEO", epsilon=None, accuracy=0.36, verdict=COMES_BACK),
            "B has FedCEO in place of UDP-FedAvg and no promise: 1 point more accuracy, and the picture comes back.",
        ),
        (
            replace(A, protection="FedCEO", accuracy=0.4),
            "B has FedCEO in place of UDP-FedAvg: 5 points more accuracy, and the picture stays hidden.",
        ),
    ],
)
def test_the_sentence_says_only_what_differs(b: SideResult, sentence: str) -> None:
    assert difference.difference(A, b) == sentence


def test_the_picture_may_be_hidden_in_b_alone() -> None:
    leaking = replace(A, epsilon=None, accuracy=0.8, verdict=COMES_BACK)
    assert difference.difference(leaking, A).endswith("the picture is no longer recognised.")


def test_two_units_are_never_compared_as_one_number() -> None:
    per_record = replace(A, protection="DP-FedAvg", epsilon=with_epsilon(3.0, "record"))
    sentence = difference.difference(A, per_record)
    assert "half" not in sentence and "per record" in sentence and "does not compare" in sentence


def test_estimates_and_what_is_missing_are_named() -> None:
    estimated = replace(A, epsilon=with_epsilon(3.0), accuracy=0.3, estimated=True, verdict=None)
    assert difference.difference(A, estimated) == (
        "B has half the ε: about 5 points less accuracy by estimate. The picture of B is not known yet."
    )
    unknown = replace(A, accuracy=None, verdict=None)
    assert difference.difference(A, unknown, ("1,000 people",)) == (
        "B has 1,000 people. The accuracy and picture of B are not known yet."
    )


def test_an_epsilon_that_means_nothing_has_no_number() -> None:
    huge = replace(A, epsilon=with_epsilon(448_000.0), accuracy=0.84)
    assert "448" not in difference.difference(A, huge)


NONE = SideResult("UDP-FedAvg", None, 0.8, verdict=COMES_BACK, noise=0.1, step=0.3)


@pytest.mark.parametrize(
    ("b", "cause"),
    [
        (replace(NONE, noise=0.01), "10 times less noise"),
        (replace(NONE, noise=0.03), "noise 0.03 in place of 0.1"),
        (replace(NONE, noise=0.2, step=0.1), "twice the noise"),
        (replace(NONE, noise=0.0), "no noise in place of noise 0.1"),
        (replace(NONE, step=0.1), "server step 0.1 in place of 0.3"),
        (replace(NONE, epsilon=with_epsilon(400.0), noise=0.05), "half the noise"),
        (replace(NONE, protection="FedCEO", noise=1.0), "FedCEO in place of UDP-FedAvg"),
        (NONE, "the same settings"),
    ],
)
def test_without_a_promise_the_noise_and_the_server_step_are_named(b: SideResult, cause: str) -> None:
    assert difference.difference(NONE, b).startswith(f"B has {cause}: ")


def test_promises_of_about_the_same_size_are_distinguished_by_the_noise() -> None:
    a = replace(A, noise=2.0, step=0.03)
    b = replace(a, epsilon=with_epsilon(5.95), noise=2.01)
    assert difference.difference(a, b).startswith("B has noise 2.01 in place of 2: ")
    assert difference.difference(a, replace(a, step=0.1)).startswith("B has server step 0.1 in place of 0.03: ")


@pytest.mark.parametrize(
    "epsilon", [replace(with_epsilon(3.0), adjacency="replace"), replace(with_epsilon(3.0), delta=1e-4)]
)
def test_promises_of_another_kind_are_never_compared_as_one_number(epsilon: Epsilon) -> None:
    b = replace(A, epsilon=epsilon)
    sentence = difference.difference(A, b)
    assert "half" not in sentence and "ε 3, a limited promise" in sentence and "does not compare" in sentence


@pytest.mark.parametrize(
    ("value", "words"), [(6.0724, "ε 6.08, a weak promise"), (1.0001, "ε 1.01, a limited promise")]
)
def test_an_epsilon_is_never_shown_smaller_than_it_is(value: float, words: str) -> None:
    a = replace(A, epsilon=with_epsilon(9.0))
    assert words in difference.difference(a, replace(a, epsilon=with_epsilon(value)))


def test_the_observer_of_a_run_is_a_setting_only_with_a_budget() -> None:
    a = {"method": "fedceo", "budget": 4.0, "view": "server"}
    assert difference.changed(a, {**a, "view": "outsider"}) == ("view outsider",)
    assert difference.changed(a, {**a, "budget": None, "view": None}) == ("budget none",)
    target = {"method": "fedceo", "target-epsilon": 4.0, "view": "server"}
    assert difference.changed(target, {**target, "view": "outsider"}) == ()


def test_the_line_about_the_settings_has_what_differs_from_a_first_visit() -> None:
    run = {"dataset": "fashion-mnist", "clients": 1000, "sampled": 10, "rounds": 30, "model": "mlp", "epochs": 2}
    titles = {"dataset": "Fashion-MNIST", "model": "ConvNet"}
    assert try_texts.settings(run, titles, run) == "Clothes, 1,000 people, 10 a round, 30 rounds"
    changed = {**run, "model": "convnet", "epochs": 5}
    assert try_texts.settings(changed, titles, run).endswith("30 rounds, ConvNet, epochs 5")
