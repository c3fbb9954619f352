"""The sentences about ε, odds, costs and durations."""

from __future__ import annotations

from typing import Any

import pytest

from app.texts import numbers, privacy
from engine.epsilon import Epsilon
from engine.methods import METHODS
from engine.records import VIEWS
from engine.specs.run import RunSpec
from engine.training.plan import make_plan


def epsilon_of(value: float | None, **terms: Any) -> Epsilon:
    known = {"view": "outsider", "unit": "user", "adjacency": "zero-out", "delta": 1e-5, "accountant": "exact"}
    return Epsilon(**{"value": value, "sampling": "all", **known, **terms})


def test_a13_the_words_are_those_of_the_methods() -> None:
    declared = {}
    for method in METHODS:
        for variant in method.variants:
            if "noise-split" in variant.fields:
                declared[variant.fields["noise-split"]] = variant.title
    assert declared == privacy.SPLITS


def test_a13_only_noise_is_split() -> None:
    assert privacy.noise_split({"noise": 0.5, "noise-split": "paper"}) == "the clients share the noise"
    assert privacy.noise_split({"noise": 0.0, "noise-split": "paper"}) == ""
    assert privacy.noise_split({"noise": 0.5}) == privacy.noise_split({"noise": 0.5, "noise-split": "new"}) == ""


def test_a09_the_sentence_says_how_sure_and_how_often_not() -> None:
    assert privacy.odds(epsilon_of(1.0)).endswith("at most 74 in 100 sure, either way, except in 1 of 6,200 cases.")
    by_prv = privacy.odds(epsilon_of(1.0, accountant="prv", sampling="poisson"))
    assert by_prv.endswith(
        "whether you took part can become at most 85 in 100 sure, either way, except in 1 of 50,000 cases."
    )


@pytest.mark.parametrize(
    ("terms", "what"),
    [
        ({"sampling": "poisson"}, privacy.PARTICIPATION),
        ({"sampling": "all"}, privacy.UPLOAD),
        ({"view": "client", "sampling": "all + poisson"}, privacy.UPLOAD),
        ({"view": "server"}, privacy.UPLOAD),
        ({"view": "aggregate"}, privacy.UPLOAD),
        ({"view": "server", "unit": "record", "adjacency": "add-remove", "sampling": "poisson"}, privacy.RECORD),
        ({"view": "outsider", "unit": "record", "adjacency": "add-remove", "sampling": "poisson"}, privacy.RECORD),
        ({"view": "server", "unit": "record", "adjacency": "replace"}, privacy.REPLACED),
    ],
)
def test_a09_what_is_hidden_follows_the_release(terms: dict[str, Any], what: str) -> None:
    assert what in privacy.odds(epsilon_of(1.0, **terms))


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("unit", ["user", "record"])
def test_every_size_has_its_sentence(view: str, unit: str) -> None:
    sentences = [privacy.odds(epsilon_of(value, view=view, unit=unit)) for value in (None, 0.0, 1.0, 6.0, 11.0, 1e6)]
    assert len(set(sentences)) == 5 and sentences[4] == sentences[5]
    assert "nothing is promised" in sentences[0] and "learns nothing" in sentences[1] and "1 of 100,000" in sentences[1]
    assert "rules out almost nothing" in sentences[3] and "no meaningful promise" in sentences[4]


def test_the_terms_of_an_epsilon() -> None:
    terms = privacy.terms(Epsilon(2.0, "server", "record", "add-remove", 1e-5, "prv", "poisson", "upper bound"))
    for word in ("per record", "seen by the server", "add-remove", "δ = 1e-5", "prv", "worst record", "upper bound"):
        assert word in terms


@pytest.mark.parametrize(
    ("accuracy", "baseline", "message"),
    [
        (0.5, 0.8, "costs 30 points"),
        (0.8, 0.801, "almost nothing"),
        (0.82, 0.80, "almost nothing"),
        (None, 0.8, ""),
        (0.5, None, ""),
    ],
)
def test_the_cost_is_the_difference(accuracy: float | None, baseline: float | None, message: str) -> None:
    assert message in privacy.cost(accuracy, baseline)
    assert bool(message) == bool(privacy.cost(accuracy, baseline))


@pytest.mark.parametrize(
    ("seconds", "duration"),
    [(None, ""), (0.2, "under a second"), (12.4, "12 s"), (600.0, "10 min"), (7200.0, "2.0 h")],
)
def test_durations(seconds: float | None, duration: str) -> None:
    assert numbers.duration(seconds) == duration


def test_numbers_are_short() -> None:
    assert [numbers.epsilon(value) for value in (None, 4.8512, 90.39, 684.2, 12345.6)] == [
        "∞",
        "4.86",
        "90.4",
        "685",
        "13,000",
    ]
    assert numbers.percent(0.5684) == "56.8 %" and numbers.percent(None) == "–"


def test_a08_only_noise_inside_the_client_is_covered_against_a_server_that_lies() -> None:
    (sentence,) = (text for text in privacy.NOT_COVERED if "breaks the rules" in text)
    assert "covered only where each client adds a whole portion of noise itself" in sentence
    assert "a server that lies gets uploads that are nearly bare" in sentence
    plan = make_plan(RunSpec(method="udp-fedavg"))
    assert "share one portion of noise" in plan.guarantee.reason


@pytest.mark.parametrize(
    ("value", "text", "side"),
    [
        (0.8, "✓ ε 0.8 per client: strong promise", "private"),
        (3.0, "· ε 3 per client: limited promise", "ink"),
        (9.9, "! ε 9.9 per client: weak promise", "weak"),
        (280.0, "✗ no meaningful promise", "leaking"),  # the number would look like one
        (None, "no promise", "leaking"),
    ],
)
def test_b03_the_size_of_a_promise(value: float | None, text: str, side: str) -> None:
    assert privacy.promise(epsilon_of(value)) == (text, side)


def test_b03_a_promise_is_never_shown_smaller_than_it_is() -> None:
    assert privacy.promise(epsilon_of(1.004)) == ("· ε 1.01 per client: limited promise", "ink")
    assert privacy.promise(epsilon_of(10.0001))[0] == "✗ no meaningful promise"


def test_b03_an_approximation_is_no_proven_promise() -> None:
    text, side = privacy.promise(epsilon_of(0.9, bound="approximation"))
    assert text == "≈ ε 0.9 per client: an approximation, which can be far too low" and side == "ink"
    assert privacy.promise(epsilon_of(90.0, bound="approximation"))[1] == "leaking"


def test_b03_the_kind_of_a_promise_is_never_teal() -> None:
    assert {side for _, side, _ in privacy.STATUSES.values()} == {"ink", "leaking"}
