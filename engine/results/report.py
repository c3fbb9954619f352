"""What a run said, boiled down to the one object that `run --json` prints and a result card shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.events import Event, Failed, Finished, Measured, Spent, Started, finite


def report(events: Iterable[Event]) -> dict[str, Any]:
    """The last word on each thing counts."""
    told = list(events)
    begun = next((event for event in told if isinstance(event, Started)), None)
    facts = begun.facts if begun else {}
    scores = [event for event in told if isinstance(event, Measured) and event.name == "accuracy"]
    overall = [event.value for event in scores if event.who == "global" and event.value is not None]
    personal = [event.value for event in scores if event.who == "personal"]
    body: dict[str, Any] = finite(
        {
            "id": begun.run if begun else None,
            **{name: facts.get(name) for name in ("guarantee", "delta", "unit")},
            "accuracy": overall[-1] if overall else None,
            "accuracy-best": max(overall, default=None),
            "accuracy-personal": personal[-1] if personal else None,
            **privacy({event.view: event for event in told if isinstance(event, Spent)}),
            **_ending(told[-1] if told else None, scores[-1].round if scores else 0),
        }
    )
    return body


def _ending(last: Event | None, done: int) -> dict[str, Any]:
    """How it ended; a run that did not finish has done the rounds that were measured."""
    if isinstance(last, Finished):
        return {"rounds-done": last.rounds, "seconds": last.seconds}
    failure = {"error": last.reason, "remedy": last.remedy} if isinstance(last, Failed) else {}
    return {"rounds-done": done, "seconds": None, **failure}


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


def lines(body: dict[str, Any]) -> list[str]:
    """The report as a person reads it."""
    said = [f"run {body['id']}: {body['status']}, {body['rounds-done']} rounds"]
    if body["accuracy"] is not None:
        said.append(f"  accuracy {100 * body['accuracy']:.1f} % (best {100 * body['accuracy-best']:.1f} %)")
    if body["accuracy-personal"] is not None:
        said.append(f"  personal accuracy {100 * body['accuracy-personal']:.1f} %")
    for view, epsilon in body["epsilon"].items():
        words = epsilon_words(
            view, epsilon, body["unit"] or "user", body["adjacency"], body["delta"], body["accountant"][view],
            body["reason"].get(view, ""), body["bound"].get(view, ""),
        )  # fmt: skip
        said.append(f"  {words}")
    if guarantee := body["guarantee"]:
        said.append(f"  guarantee: {guarantee['status']}: {guarantee['reason']}")
    return said


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
    terms = f"per {unit}, {adjacency}, δ = {delta:.2g}, {accountant}, worst {unit}{note}"
    return f"ε = {epsilon:.4g} in the {view} view ({terms})"
