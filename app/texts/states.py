"""The words for the states of a run."""

from __future__ import annotations

STATES = {
    "queued": "waiting",
    "running": "running",
    "finished": "finished",
    "failed": "failed",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
    "damaged": "damaged",
    "stored": "stored example",
}


EARLIER = "made by an earlier version"
EARLIER_RUN = (
    "An earlier version of LeakLens made this run, with other noise. It stays as it is and cannot be resumed or "
    "attacked. The same settings give a new run, with an id of its own."
)
STORED = "A stored example, run on {made}."


def shared(number: int, noun: str) -> str:
    """A note about the runs that Cancel does not stop, because another visitor requested them."""
    return f"Someone else requested {number:,} of these {noun}: {'it continues' if number == 1 else 'they continue'}."
