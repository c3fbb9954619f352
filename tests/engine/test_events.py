"""Events survive JSON, and the JSON never holds NaN or Infinity."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import events
from engine.errors import Damaged
from engine.events import (
    KIND_NAMES,
    KINDS,
    Cancelled,
    Event,
    Failed,
    Finished,
    Judged,
    Kept,
    Measured,
    Pictured,
    Round,
    Scored,
    Seen,
    Smoothed,
    Spent,
    Started,
    Step,
    Warned,
    decode,
    encode,
    finite,
)

PAYLOAD = {"server/w": np.zeros(3, dtype=np.float32)}
EVENTS: list[Event] = [
    Started("abc", {"method": {"name": "fedavg"}}, {"noise": 1.5, "sizes": [1, 2], "unit": None}),
    Round(1, 30, 10),
    Round(1, 30, 10, 0.25, {"loss": 0.5}),
    Measured(1, "accuracy", 0.5),
    Measured(1, "accuracy", None, "class 3"),
    Spent(
        1,
        "server",
        1.25,
        "user",
        "zero-out",
        1e-5,
        "exact",
        "poisson",
        "upper bound",
        "",
        7,
        (0.0, 0.5, 1.0, 1.1, 1.25),
    ),
    Spent(1, "server", None, "user", "zero-out", 1e-5, "none", "all", reason="it leaves without noise"),
    Smoothed(
        10,
        0.5,
        (3, 7),
        {"out.weight": ((4.0, 0.25), (1.0, 0.125))},
        {"out.weight": (1, 9)},
        (((0.5, 0.25),), ((0.125, 0.0625),)),
        (((1.0, None),), ((0.5, None),)),
    ),
    Step("replaying the rounds before", 0.5),
    Seen("server", 1, 3, {"steps": 1, "labels": (3,), "noise-to-signal": 0.5}, ("iVBOR",), {"psnr": (14.8,)}),
    Pictured("map", 10, 1500, 0, 0.5, ("iVBOR",), (0,), (21.5,)),
    Judged("map", "converged", "", 0, (0,), (3,), {"psnr": (31.5,)}, {"psnr": (14.8,)}, {}, ({"loss": 0.1},), 0.0),
    Scored("a", "outsider", "record", 3, None, 60, 60, 0.75, (0.7, 0.8), {"0.01": 0.125}, ((0.5, 0.75), (1.0, 1.0))),
    Warned("ε is large", "More noise helps", 3),
    Kept("exposure", "exposure-1-0-server", 1, {"client": 0}, PAYLOAD),
    Finished(30, 1.5),
    Failed("round 1: broken", "Fix it", "Traceback"),
    Cancelled(3),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_survives_json(event: Event) -> None:
    body = json.loads(json.dumps(encode(event), allow_nan=False))
    assert decode(body) == event
    assert encode(decode(body)) == encode(event)


def test_every_kind_has_a_name() -> None:
    assert set(KINDS.values()) == set(Event.__subclasses__()) == {type(event) for event in EVENTS}
    assert all(encode(event)["event"] == KIND_NAMES[type(event)] for event in EVENTS)


def test_the_payload_never_enters_the_record() -> None:
    for event in EVENTS:
        if "payload" in {declared.name for declared in fields(event)}:
            assert "payload" not in encode(event)
            assert decode(encode(event)).payload is None  # type: ignore[attr-defined]


def test_only_three_kinds_end_a_run() -> None:
    assert {kind for kind in KINDS.values() if kind.ends} == {Finished, Failed, Cancelled}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"event": "fell"},
        {"event": ["round"]},
        {"event": "finished", "rounds": 1, "seconds": 1.0, "planet": "Mars"},
        {"event": "finished", "rounds": 1},
    ],
)
def test_an_event_of_a_newer_version_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(Damaged, match="It may come from a newer LeakLens: update this one"):
        decode(body)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_a_number_that_is_not_finite_becomes_none_at_any_depth(value: float) -> None:
    event = Started("abc", {"deep": [{"er": (value, 1.0)}]}, {"noise": value})
    body = json.loads(json.dumps(encode(event), allow_nan=False))
    assert body["spec"] == {"deep": [{"er": [None, 1.0]}]} and body["facts"] == {"noise": None}


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)


@given(trees)
def test_finite_changes_nothing_else(tree: Any) -> None:
    text = json.dumps(finite(tree), allow_nan=False)
    expected = json.loads(json.dumps(tree), parse_constant=lambda word: None)
    assert json.loads(text) == expected


def test_the_docstring_names_every_kind() -> None:
    assert events.__doc__ is not None
    assert all(kind.__name__ in events.__doc__ for kind in KINDS.values())
