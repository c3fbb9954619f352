"""The events in a store can be read for ever: a kind keeps its name, and a later field has a default."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contracts.doors import KINDS, decode, encode
from tests.contracts.goldens import compact, entries

BODIES = entries("events", "kinds")


def test_the_kinds_are_these() -> None:
    assert set(KINDS) == set(BODIES)
    assert all(body["event"] == name for name, body in BODIES.items())


@pytest.mark.parametrize("name", BODIES)
def test_an_event_with_the_keys_of_then_is_read_and_written_again(name: str) -> None:
    body: dict[str, Any] = BODIES[name]
    event = decode(body)
    assert type(event) is KINDS[name]
    written = json.loads(compact(encode(event)))
    assert {key: written[key] for key in body if key in written} == body  # a later version may add keys
    assert decode(written) == event
