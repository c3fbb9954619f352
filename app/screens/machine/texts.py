"""The texts of the Machine screen. The findings come from engine/doctor."""

from __future__ import annotations

LOOKING = "LeakLens looks at this machine: a few seconds."
FINE = "Everything LeakLens needs works on this machine."
UNABLE = "LeakLens cannot run on this machine as it is: see what wants a look."
HEADS = ("state", "what", "found")
SIGNS = {"ok": "✓ ok", "look": "! look", "looking": "… looking"}
AGAIN = "Look again"
COPY = "The report as text, to copy"
STUCK = "Why nothing moves: {why}"
NOT_LOADED = "The shelves of methods and models could not be loaded: {why}"
WORKERS, RUNNING, WAITING, NEXT = "workers", "running", "waiting", "the next run begins"
AT_ONCE, SOON, LATER = "at once", "in a few seconds", "when one ends"
WORKERS_NOTE = "runs at a time, at most"
NEXT_NOTES = {
    AT_ONCE: "a worker waits with everything loaded",
    SOON: "a worker is warming up",
    LATER: "every worker is busy",
}


def verdict(failed: int, able: bool) -> str:
    """All findings in one sentence. `able`: LeakLens can run on this machine."""
    if not able:
        return UNABLE
    if not failed:
        return FINE
    return "One thing wants a look." if failed == 1 else f"{failed} things want a look."


def looked(ago: str, took: float) -> str:
    """The time and the duration of the last examination."""
    return f"Looked {ago}, in {took:.1f} s."
