"""The states of a run, in words."""

from __future__ import annotations

STATES = {
    "queued": "waiting",
    "running": "running",
    "finished": "finished",
    "failed": "failed",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
    "stored": "stored example",
}


STORED = "A stored example, run on {made}."


def shared(many: int, what: str) -> str:
    """What a click on Cancel leaves alone."""
    it = "it: it goes" if many == 1 else "them: they go"
    return f"Somebody else asked for {many:,} of these {what} or watches {it} on."
