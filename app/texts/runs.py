"""The texts of the Runs screen, and functions that put a request, a time, a size and a state into words."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from app.texts import numbers, privacy, states

NOTHING_YET = "You have no runs yet. These examples are stored with LeakLens. Start a run in Try."
UNREADABLE = "A run whose request cannot be read"
NO_MATCH = "No run matches. Choose other states or other words."
MOVING, ENDED, EXAMPLES = "Running and waiting", "Ended", "Stored examples"
FIND, FIND_HELP = "Find", "words of a run, or the start of its id"
STATE = "State"
HEADS = ("run", "state", "accuracy", "ε", "submitted", "disk")
OPEN, CANCEL, RESUME, PIN, UNPIN, DELETE = "Open", "Cancel", "Resume", "Pin", "Unpin", "Delete"
EXPORT = "Export"
PINS_FULL = "{many} runs are pinned, and more would be hard to tell apart: unpin one first"
DELETE_ALL = "Delete these {many}…"
CANCEL_ALL, RESUME_ALL, RENAME, NAME = "Cancel all", "Resume all", "Rename", "Name"
NAME_HELP = "Everyone who sees this page reads the name. Press Enter to keep it."
RUNS_OF_GROUP, MORE_ROWS = "Show {many}", "And {many} more: find them with the filter."
REFUSED = "One could not be requested: {why}"
SCREENS = ("leak", "try", "lab", "tradeoff")
BUSY = ("another request of yours is still under way", "Wait for it, or cancel it")
SORT, SORTS = "Sort by", {"newest": "newest", "name": "name", "accuracy": "accuracy", "size": "size on disk"}
MORE_WAIT = "and {many} more"
NAMED, AND_MORE = 5, "and {many} more"
SURE, SURE_ALL = "Delete this run?", "Delete {many} runs?"
FREES = "This frees {size}. Curves, checkpoints and pictures are deleted for good. A new request starts again."
YES, NO = "Delete for good", "Keep"
DELETED = "Deleted {many}. {size} are free again."
NOT_YOURS = "Another visitor requested run {run}", "Only that visitor may {deed} it"
STUCK = "No run can start now: {why}"
AGAIN = "Try again"
SETTLED = (
    "dataset",
    "model",
    "method",
    "method.noise",
    "partition",
    "rounds",
    "clients",
    "sampled",
    "seed",
    "target-epsilon",
    "view",
)  # fmt: skip  (the sentence names these)

Title = Callable[[str, str], str]


DAMAGED = "A run whose request is damaged"


def sentence(spec: Mapping[str, Any], title: Title) -> str:
    """One sentence that describes a run, different from the sentences of most other runs."""
    if not spec:
        return UNREADABLE
    name = {part: title(part, _name(spec.get(part))) for part in ("method", "model", "dataset", "partition")}
    learns = f"{name['method'] or 'A method'}{_protection(spec)} trains {name['model'] or 'a model'}"
    clients = _clients(spec, name["partition"])
    rounds = f"{spec['rounds']} rounds" if "rounds" in spec else ""
    where = f" on {name['dataset']}" if name["dataset"] else ""
    seed = f"seed {spec['seed']}" if spec.get("seed") else ""
    size = ", ".join(filter(None, [clients, rounds, seed]))
    return f"{learns}{where}{': ' if size else ''}{size}"


def _clients(spec: Mapping[str, Any], partition: str) -> str:
    """The number of clients, their partition and the cohort of a round."""
    if "clients" not in spec:
        return ""
    terms = ", ".join([partition, *_own(spec.get("partition"))])
    how = f" ({terms})" if partition else ""
    cohort = f", {spec['sampled']} a round" if "sampled" in spec else ""
    return f"{spec['clients']:,} clients{how}{cohort}"


def _name(part: Any) -> str:
    return str(part.get("name", "") if isinstance(part, Mapping) else part or "")


def _own(part: Any) -> list[str]:
    if not isinstance(part, Mapping):
        return []
    return [f"{name.replace('-', ' ')} {plain(value)}" for name, value in part.items() if name != "name"]


def _protection(spec: Mapping[str, Any]) -> str:
    target = spec.get("target-epsilon")
    if target is not None:
        seen_by = privacy.SEEN_BY.get(spec.get("view") or "", "seen by an outsider")
        return f" at ε {plain(target)} ({seen_by})"
    method = spec.get("method")
    noise = method.get("noise") if isinstance(method, Mapping) else None
    if noise is None:
        return ""
    return f" with noise {plain(noise)}" if noise else " without noise"


def plain(value: Any) -> str:
    """A setting for people to read."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value)


def state(status: str, round: int, of: int | None, place: int | None) -> tuple[str, str]:
    """The word for a state, and the progress."""
    word = states.STATES[status]
    if status == "queued":
        return word, f"place {place} in the queue" if place else ""
    if round:
        return word, f"round {round} of {of}" if of else f"round {round}"
    return word, "preparing" if status == "running" else "not begun"


def epsilon(value: float | None, unit: str, recorded: bool) -> tuple[str, str]:
    """The ε so far, and what it promises. `recorded`: the run has an event with this ε.

    Above `VACUOUS` the number is left out: it would look like a promise.
    """
    if not recorded:
        return "–", ""
    if value is None or value > privacy.VACUOUS:
        return "–", privacy.size(value).word
    return numbers.epsilon(value), f"{privacy.size(value).word}, {privacy.PER[unit]}"


def head(name: str, observer: str) -> str:
    """The heading of a column. That of ε names the observer."""
    return f"ε, {privacy.OBSERVERS[observer]}" if name == "ε" else name


def ago(then: float, now: float | None = None) -> str:
    """A past time in words, and as a date if it is more than 26 days ago."""
    passed = max(0.0, (time.time() if now is None else now) - then)
    steps = (
        (45, "just now"),
        (90, "a minute ago"),
        (45 * 60, f"{passed / 60:.0f} minutes ago"),
        (90 * 60, "an hour ago"),
        (22 * 3600, f"{passed / 3600:.0f} hours ago"),
        (36 * 3600, "yesterday"),
        (26 * 86400, f"{passed / 86400:.0f} days ago"),
    )
    for limit, words in steps:
        if passed < limit:
            return words
    date = time.localtime(then)
    return f"{date.tm_mday} {time.strftime('%b %Y', date)}"


def size(count: float) -> str:
    """A number of bytes with three digits and a unit."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= 0.9995 * scale:
            rounded = float(f"{count / scale:.3g}")
            return f"{rounded:g} {unit}"
    return f"{count:.0f} bytes"


def runs(number: int) -> str:
    """A number of runs in words."""
    return "1 run" if number == 1 else f"{number:,} runs"


def device(name: str | None) -> str:
    """The device of a run where it is not the processor."""
    return f"on {name}" if name and name != "cpu" else ""


def moving_title(moving: int, together: int) -> str:
    """The title over the unfinished groups. A group stays there as a whole, so some of its runs may have ended."""
    ended = together - moving
    if not ended:
        return f"{MOVING} ({runs(moving)})"
    return f"{MOVING} ({runs(moving)}, and {ended:,} ended {'run' if ended == 1 else 'runs'} of the same batches)"


def store_summary(counts: Mapping[str, int], used: float, limit: float) -> str:
    """The contents of the store, in one sentence or two."""
    each = ", ".join(f"{counts[status]:,} {word}" for status, word in states.STATES.items() if counts.get(status))
    total = sum(counts.values())
    held = f"The home holds {size(used)} of the {size(limit)} allowed"
    tight = ": delete some runs, or raise LEAKLENS_QUOTA_GB." if used > 0.9 * limit else "."
    return f"{runs(total)}: {each}. {held}{tight}" if total else f"{held}{tight}"


def group_summary(counts: Mapping[Any, int], total: int, stored: int) -> str:
    """How many runs of a group are in each state, and what they hold on disk."""
    words = [f"{counts[state]:,} {states.STATES[state]}" for state in states.STATES if counts.get(state)]
    return f"{runs(total)}: {', '.join(words)}; {size(stored)}."
