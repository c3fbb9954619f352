"""The lines of a worker: events and messages are parsed, and anything else is refused."""

from __future__ import annotations

import pytest

from engine.events import Cancelled
from engine.jobs.backends.local import parsed_line


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"{\n", b"[]\n", b"7\n", b"\xff\xfe\n", b'{"event": "nothing"}\n', b'{"event": "round"}\n', b"{}\n"],
)
def test_a_line_that_is_no_message_is_not_parsed(line: bytes) -> None:
    assert parsed_line(line) is None


def test_an_event_and_a_message_are_parsed() -> None:
    assert parsed_line(b'{"event": "cancelled", "round": 3}\n') == Cancelled(3)
    assert parsed_line(b'{"done": "a"}\n') == {"done": "a"}
