"""The name of the product, the titles of its screens, and the texts that several screens share."""

from __future__ import annotations

from app.texts import numbers

PRODUCT = "LeakLens"
PROMISE = "What does federated learning leak, and what does protection cost?"
BROKEN_SHELVES = (
    "The engine could not be loaded ({error}). Delete .venv and start `python3 -m app`: it installs everything again."
)
GETTING_READY = "Getting ready: the form is here in a moment."
START, HOME = "Start", "Home"
LEAK = "Leak"
TRY = "Try"
TRADEOFF = "Trade-off"
RUNS = "Runs and machine"
MORE = "More"
RUNS_TAB, MACHINE_TAB = "Runs", "Machine"


SHARED = "This dashboard is shared. One visitor may ask for at most: {limits}."
CLASS_MOST = "This dashboard is shared: at most {most}."
LESS_PROTECTION, MORE_PROTECTION = "less protection", "more protection"
NO_PROTECTION = "no protection"
EXPORT, EXPORT_PAGE, EXPORT_PNG = "Export", "One HTML page", "One PNG of the grid"
EXPORT_HELP = "A file that opens in any browser without a network, and prints to A4."
EXPORT_SLIDES, EXPORT_SLIDES_HELP = "Slides", "The same file. It opens as slides: the arrow keys turn them."


def expected(seconds: float | None, alone: float, runs: int, with_baseline: bool, waiting: int) -> str:
    """The time until all runs of a request would have ended, and what it counts.

    Without the seconds of what waits before them, `alone` is the time of these runs by themselves.
    """
    if seconds == 0:
        return "Finished here before: the result appears at once."
    counts = []
    if runs > 1:
        counts.append(f"{runs} runs{', one without protection' if with_baseline else ''}")
    if waiting:
        counts.append(f"{waiting:,} in the queue now")
    what = f": {'; '.join(counts)}" if counts else ""
    if seconds is None:
        return f"Expected time here, without the queue: {numbers.duration(alone)}{what}."
    return f"Expected time here: {numbers.duration(seconds)}{what}."
