"""Texts of the list *Details* on the screen Try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.texts import numbers, privacy
from engine.epsilon import Epsilon
from engine.errors import plain_number

LIST = "Details"
ENTRIES = {
    "privacy": "Privacy, view by view",
    "epsilon": "ε by round",
    "classes": "Accuracy by class",
    "inside": "Inside {title}",
    "partition": "Who holds what",
    "seeds": "Runs and seeds",
    "table": "Table of pinned runs",
    "take": "Take it away",
}
SIDE = "Side {side}: {title}"
OF_SIDE = "Side"
FORECAST = "From the forecast: this run is not finished."
SHARED = "Both sides divide the data in the same way."
NO_PARTITION = "Run it to see who holds what."
NO_PINS = "Pin a result to compare it here with later ones."
UNPIN = "Unpin {name}"
GONE = "Unpin {id}, which is not on this machine"
SAME = "the same settings"
TABLE_ALT = "The shown and the pinned runs, and what differs between them"
COMMAND, PYTHON = "Command line", "Python"
CSV, RECEIPT = "Every number as CSV", "Receipt as JSON"
RECEIPT_HELP = "What was run, with every setting, and what came out."
SAVE_CHART = "Save this chart"
NOT_SAVED = "The other charts have these buttons below them."


def run_name(differences: Mapping[str, str], of_a: Mapping[str, str]) -> str:
    """A run by the settings in which it differs from side A, such as `noise 1`: first its protection and its noise.

    What only one of two methods has is named for the noise alone: the method says the rest.
    """
    words = [differences["method"]] if "method" in differences else []
    for name in sorted(differences, key=lambda name: name not in FIRST):
        known = differences[name] != NOTHING and (of_a.get(name) != NOTHING or name in FIRST)
        if name != "method" and known:
            words.append(f"{name} {differences[name]}")
    return ", ".join(words[:MOST_WORDS]) or SAME


FIRST = ("noise",)
MOST_WORDS = 3
NOTHING = "–"


def value(setting: Any) -> str:
    """A setting in a table."""
    if setting is None:
        return NOTHING
    if isinstance(setting, bool):
        return "on" if setting else "off"
    return plain_number(setting) if isinstance(setting, float) else str(setting)


def field_name(path: str) -> str:
    """A setting without the part it belongs to: `noise`, not `method.noise`."""
    return path.rpartition(".")[2].replace("-", " ")


def epsilon(known: Epsilon | None) -> str:
    """ε in a table, rounded up: a promise is never shown smaller than it is."""
    if known is None or known.value is None:
        return NOTHING
    return privacy.rounded_text(known)


def column(view: str, unit: str, kind: str = "") -> str:
    """The head of a column of ε. Two units never share one: their ε do not compare. Nor do two kinds of one unit."""
    return f"ε {privacy.AGAINST[view]}, {privacy.PER[unit]}{kind and ', '}{kind}"


def kind(known: Epsilon) -> str:
    """What makes ε of one unit comparable."""
    return f"{known.adjacency}, δ = {numbers.tiny(known.delta)}"


def seed_row(side: str, seed: Any, body: Mapping[str, Any], spent: Epsilon | None) -> dict[str, str]:
    """The result of one run with its seed."""
    row = {"side": side, "seed": str(seed), "accuracy": numbers.percent(body["accuracy"])}
    if body["accuracy-personal"] is not None:
        row["personal accuracy, mean over clients"] = numbers.percent(body["accuracy-personal"])
    if spent is not None and spent.value is not None:
        row[column(spent.view, spent.unit)] = epsilon(spent)
    return {**row, "rounds": str(body["rounds-done"]), "time": numbers.duration(body["seconds"])}


def spread(side: str, accuracies: Sequence[float]) -> str:
    """The accuracies of several seeds in one sentence."""
    mean = sum(accuracies) / len(accuracies)
    ends = f"{numbers.percent(min(accuracies))} to {numbers.percent(max(accuracies))}"
    return f"{side}: {len(accuracies)} seeds reach {numbers.percent(mean)} in the mean, {ends}."


def noise(method: Mapping[str, Any], target: float | None) -> str:
    """The noise of a run and who adds it: equal noise protects differently. Empty without noise."""
    split = privacy.noise_split(method)
    if not split:
        return ""
    size = f"noise {plain_number(method['noise'])}" if target is None else f"noise for ε {plain_number(target)}"
    return f"{size}: {split}"
