"""What a run said, boiled down to the one object that `run --json` prints and a result card shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.events import Event, Failed, Finished, Measured, Spent, Started, finite


def report(events: Iterable[Event]) -> dict[str, Any]:
    """One pass over the events; the last word on each thing counts."""
    facts: dict[str, Any] = {}
    accuracies: list[tuple[int, float]] = []
    personal: float | None = None
    bills: dict[str, Spent] = {}
    ending: dict[str, Any] = {"rounds-done": 0, "seconds": None}
    for event in events:
        if isinstance(event, Started):
            facts = {
                "id": event.run,
                "guarantee": event.facts["guarantee"],
                "delta": event.facts["delta"],
                **_unit(event),
            }
        elif isinstance(event, Measured) and event.name == "accuracy" and event.value is not None:
            ending["rounds-done"] = event.round  # a run that did not finish has done these
            if event.who == "global":
                accuracies.append((event.round, event.value))
            elif event.who == "personal":
                personal = event.value
        elif isinstance(event, Spent):
            bills[event.view] = event
        elif isinstance(event, Finished):
            ending = {"rounds-done": event.rounds, "seconds": event.seconds}
        elif isinstance(event, Failed):
            ending |= {"error": event.reason, "remedy": event.remedy}
    body: dict[str, Any] = finite(
        {
            **facts,
            "accuracy": accuracies[-1][1] if accuracies else None,
            "accuracy-best": max((value for _, value in accuracies), default=None),
            "accuracy-personal": personal,
            **privacy(bills),
            **ending,
        }
    )
    return body


def privacy(bills: dict[str, Spent]) -> dict[str, Any]:
    """ε per view with the words that must stand beside it."""
    first = next(iter(bills.values()), None)
    return {
        "epsilon": {view: bill.epsilon for view, bill in bills.items()},
        "accountant": {view: bill.accountant for view, bill in bills.items()},
        "sampling": {view: bill.sampling for view, bill in bills.items()},
        "reason": {view: bill.reason for view, bill in bills.items() if bill.reason},
        "bound": {view: bill.bound for view, bill in bills.items() if bill.bound},
        "adjacency": first.adjacency if first else None,
    }


def _unit(event: Started) -> dict[str, Any]:
    return {"unit": event.facts["unit"]}


def epsilon_words(
    view: str,
    epsilon: float | None,
    unit: str,
    adjacency: str | None,
    delta: float,
    accountant: str,
    reason: str,
    bound: str,
) -> str:
    """An ε never stands without its view, unit, adjacency, δ and accountant."""
    if epsilon is None:
        return f"no finite ε in the {view} view: {reason}"
    note = f", {bound}" if bound else ""
    return f"ε = {epsilon:.4g} in the {view} view (per {unit}, {adjacency}, δ = {delta:.2g}, {accountant}, worst {unit}{note})"
