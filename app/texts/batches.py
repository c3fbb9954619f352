"""The texts of batches: many runs or attacks requested as one."""

from __future__ import annotations

from app.texts import numbers

CANCEL = "Cancel"
JOIN = "Request these, too"
OF_OTHERS = "someone else requested these"
TITLES = {
    "sweep": "Sweep",
    "table": "Paper table",
    "leak grid": "Attacks",
    "cliff": "Cliff",
    "ladder": "Who sees what",
    "blind test": "Blind test",
    "seeds": "Run",
    "photo": "Photo",
    "try": "Run and attacks",
}


def progress(done: int, of: int, noun: str, left: float | None) -> str:
    """What has ended, and the time left if it is known. The time counts everything that runs before."""
    return f"{done:,} of {of:,} {noun} done{remaining(left)}"


def remaining(seconds: float | None) -> str:
    """The time left, as the end of a sentence. Empty while it is not known."""
    if not seconds:
        return ""
    return f" · about {numbers.duration(seconds)} left" if seconds >= 1 else " · less than a second left"
