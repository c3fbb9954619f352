"""The texts of the Machine screen. The findings come from engine/doctor."""

from __future__ import annotations

LOOKING = "LeakLens checks this machine. This takes a few seconds."
FINE = "Everything LeakLens needs works on this machine."
UNABLE = "LeakLens cannot run on this machine yet. Fix what the list marks."
HEADS = ("state", "check", "result")
SIGNS = {"ok": "✓ ok", "look": "! fix", "looking": "… checking"}
WHERE = "What runs where"
WHERE_HEADS = ("device", "work")
PROCESSOR = "processor"
SET = "{variable} chooses it. It holds for what starts from now on."
UNSET = "{variable}, which the owner of this machine sets, chooses a GPU. The check gpu lists those there are."
ALWAYS = "Always. A result that a GPU computed names it, because its last digits differ."
AGAIN = "Check again"
COPY = "The report as text"
STUCK = "No run can start now: {why}"
NOT_LOADED = "The shelves of methods and models could not be loaded: {why}"
WORKERS, RUNNING, WAITING, NEXT = "workers", "running", "waiting", "the next run begins"
AT_ONCE, SOON, LATER = "at once", "in a few seconds", "when a run ends"
WORKERS_NOTE = "runs at a time, at most"
NEXT_NOTES = {
    AT_ONCE: "a worker has everything loaded",
    SOON: "a worker is warming up",
    LATER: "every worker is busy",
}


def verdict(failed: int, able: bool) -> str:
    """All findings in one sentence. `able`: LeakLens can run on this machine."""
    if not able:
        return UNABLE
    if not failed:
        return FINE
    return "One check failed." if failed == 1 else f"{failed} checks failed."


def device(name: str | None) -> str:
    """A device in words: a card keeps its name."""
    return PROCESSOR if name in (None, "", "cpu") else str(name)


def looked(ago: str, took: float) -> str:
    """The time and the duration of the last examination."""
    return f"Checked {ago}, in {took:.1f} s."
