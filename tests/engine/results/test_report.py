"""The report of a run is one JSON object. Where a value occurs several times, the last one counts."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from engine.epsilon import Epsilon
from engine.events import Cancelled, Event, Failed, Finished, Measured, Round, Spent, Started
from engine.results.report import report

KEYS = {
    "id", "accuracy", "accuracy-best", "accuracy-personal", "rounds-done", "epsilon", "unit", "adjacency", "delta",
    "accountant", "guarantee", "seconds", "device",
}  # fmt: skip
GUARANTEE = {"status": "formal", "reason": "noise", "absent": {"aggregate": "n/a, because every slice is returned"}}
STARTED = Started("abc", {"rounds": 3}, {"guarantee": GUARANTEE, "delta": 1e-5, "unit": "user", "noise": 1.0})


def spent(round: int, view: str, epsilon: float | None, accountant: str = "rdp", **fields: Any) -> Spent:
    return Spent(round, view, epsilon, "user", "zero-out", 1e-5, accountant, "poisson", **fields)


RUN: list[Event] = [
    STARTED,
    Round(1, 3, 10),
    Measured(1, "accuracy", 0.3),
    Measured(1, "loss", 2.0),
    Measured(1, "accuracy", 0.4, "personal"),
    spent(1, "server", 2.0, "exact"),
    spent(1, "outsider", 1.0),
    Measured(2, "accuracy", 0.8),
    Measured(2, "accuracy", 0.9, "personal"),
    spent(2, "server", 4.0, "exact"),
    spent(2, "outsider", 2.0),
    Measured(3, "accuracy", 0.7),
    Measured(3, "accuracy", 0.1, "class 4"),
    Measured(3, "accuracy", 0.85, "personal"),
    spent(3, "server", None, "none", reason="it leaves without noise"),
    spent(3, "outsider", 3.0),
    spent(3, "outsider", 2.75, "prv", bound="upper bound"),
    Finished(3, 1.25),
]


def test_a_finished_run() -> None:
    body = report(iter(RUN))
    assert set(body) >= KEYS
    assert {key: body[key] for key in KEYS} == {
        "id": "abc",
        "device": "cpu",
        "accuracy": 0.7,
        "accuracy-best": 0.8,
        "accuracy-personal": 0.85,
        "rounds-done": 3,
        "epsilon": {"server": None, "outsider": 2.75},
        "unit": "user",
        "adjacency": "zero-out",
        "delta": 1e-5,
        "accountant": {"server": "none", "outsider": "prv"},
        "guarantee": GUARANTEE,
        "seconds": 1.25,
    }
    assert body["reason"] == {"server": "it leaves without noise"}
    assert body["bound"] == {"outsider": "upper bound"}


def test_the_last_value_counts() -> None:
    assert report([*RUN[:-1], Measured(3, "accuracy", 0.2), RUN[-1]])["accuracy"] == 0.2


def test_a_run_without_protection_has_no_unit() -> None:
    started = Started(
        "abc", {}, {"guarantee": {"status": "none", "reason": "clear", "absent": {}}, "delta": 1e-5, "unit": None}
    )
    body = report(
        [started, Measured(1, "accuracy", 0.5), spent(1, "server", None, "none", reason="clear"), Finished(1, 0.5)]
    )
    assert body["unit"] is None and body["epsilon"] == {"server": None} and body["guarantee"]["status"] == "none"
    assert body["accuracy-personal"] is None


@pytest.mark.parametrize("ending", [Cancelled(2), Failed("round 3: broken", "Fix it"), None])
def test_a_run_that_did_not_finish_has_done_the_rounds_it_measured(ending: Event | None) -> None:
    body = report([*RUN[:11], Round(3, 3, 10, 0.5), *([ending] if ending else [])])
    assert (body["rounds-done"], body["accuracy"], body["epsilon"]) == (2, 0.8, {"server": 4.0, "outsider": 2.0})
    assert body["seconds"] is None
    failed = isinstance(ending, Failed)
    assert (body.get("error"), body.get("remedy")) == (("round 3: broken", "Fix it") if failed else (None, None))


def test_a_run_of_no_rounds() -> None:
    body = report([STARTED, Finished(0, 0.0)])
    assert (body["accuracy"], body["accuracy-best"], body["rounds-done"], body["epsilon"]) == (None, None, 0, {})
    assert body["adjacency"] is None


def test_no_events_are_no_error() -> None:
    assert report([])["rounds-done"] == 0


def test_json_never_holds_nan_or_infinity() -> None:
    events = [STARTED, Measured(1, "accuracy", math.nan), spent(1, "server", math.inf), Finished(1, math.nan)]
    body = json.loads(json.dumps(report(events), allow_nan=False))
    assert (body["accuracy"], body["epsilon"], body["seconds"]) == (None, {"server": None}, None)


def test_an_epsilon_always_has_its_terms() -> None:
    words = Epsilon(12.4129, "outsider", "user", "zero-out", 1e-5, "prv", "poisson", "upper bound").sentence()
    assert words == "ε = 12.41 in the outsider view (per user, zero-out, δ = 1e-05, prv, worst user, upper bound)"
    none = Epsilon(None, "server", "user", "", 1e-5, "none", "all", reason="it leaves without noise")
    assert none.sentence() == "no finite ε in the server view: it leaves without noise"
