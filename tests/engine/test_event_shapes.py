"""An event whose value has another type than its class declares is damaged, and is never misread."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import Damaged
from engine.events import Judged, Measured, Round, Seen, Spent, decode, encode

EVENTS = [
    Round(1, 3, 10, 0.5, {"loss": 0.25}),
    Measured(2, "accuracy", None),
    Spent(1, "server", 2.0, "user", "zero-out", 1e-5, "exact", "all", worst=3, quantiles=(1.0, 2.0)),
    Seen("server", 1, None, {"labels": [1]}, ("cGlj",), {"psnr": (12.0,)}),
    Judged("map", "converged", "", 0, (0,), (3,), {"psnr": (20.0,)}, {"psnr": (12.0,)}, {}, ({"loss": 1.0},), 0.0),
]
WRONG: tuple[Any, ...] = ([], {}, "text", 3.5, True, None, [[1]], {"a": []}, 7)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_read_as_it_was_or_is_damaged(event: Any) -> None:
    """c01: a number in place of an object, or a text in place of a number, was a TypeError in every list."""
    body = encode(event)
    refused = 0
    for name in body:
        for value in WRONG:
            changed = {**body, name: value}
            try:
                again = decode(changed)
            except Damaged:
                refused += 1
            else:
                assert encode(again) == changed
    assert refused > 5 * len(body)


@pytest.mark.parametrize("body", [3, None, "started", ["event"], True])
def test_an_event_is_an_object(body: Any) -> None:
    with pytest.raises(Damaged, match="must be an object"):
        decode(body)


def test_a_whole_number_is_a_number_and_a_truth_value_is_not() -> None:
    assert decode({"event": "measured", "round": 1, "name": "accuracy", "value": 1}) == Measured(1, "accuracy", 1)
    with pytest.raises(Damaged, match="event measured: value has another type"):
        decode({"event": "measured", "round": 1, "name": "accuracy", "value": True})
