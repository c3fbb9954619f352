"""The report of a run: the one JSON object that `run --json` prints and a result card shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from engine.epsilon import Epsilon, of_report
from engine.events import Event, Failed, Finished, Measured, Spent, Started, finite


def report(events: Iterable[Event]) -> dict[str, Any]:
    """The report of these events. Where a value occurs several times, the last one counts."""
    events = list(events)
    started = next((event for event in events if isinstance(event, Started)), None)
    facts = started.facts if started else {}
    accuracies = [event for event in events if isinstance(event, Measured) and event.name == "accuracy"]
    overall = [event.value for event in accuracies if event.who == "global" and event.value is not None]
    personal = [event.value for event in accuracies if event.who == "personal"]
    spent = {event.view: event for event in events if isinstance(event, Spent)}
    body: dict[str, Any] = finite(
        {
            "id": started.run if started else None,
            "guarantee": facts.get("guarantee"),
            "delta": facts.get("delta"),
            "unit": facts.get("unit"),
            "device": facts.get("device", "cpu"),
            "accuracy": overall[-1] if overall else None,
            "accuracy-best": max(overall, default=None),
            "accuracy-personal": personal[-1] if personal else None,
            **privacy(spent),
            **_ending(events[-1] if events else None, accuracies[-1].round if accuracies else 0),
        }
    )
    return body


def _ending(last: Event | None, measured_rounds: int) -> dict[str, Any]:
    """The rounds and seconds of a finished run; else the rounds that were measured, and the error of a failed run."""
    if isinstance(last, Finished):
        return {"rounds-done": last.rounds, "seconds": last.seconds}
    failure = {"error": last.reason, "remedy": last.remedy} if isinstance(last, Failed) else {}
    return {"rounds-done": measured_rounds, "seconds": None, **failure}


def privacy(spent: dict[str, Spent]) -> dict[str, Any]:
    """ε by view, with the terms that make it meaningful."""
    first = next(iter(spent.values()), None)
    return {
        "epsilon": {view: event.epsilon for view, event in spent.items()},
        "accountant": {view: event.accountant for view, event in spent.items()},
        "sampling": {view: event.sampling for view, event in spent.items()},
        "reason": {view: event.reason for view, event in spent.items() if event.reason},
        "bound": {view: event.bound for view, event in spent.items() if event.bound},
        "adjacency": first.adjacency if first else None,
    }


def lines(body: dict[str, Any]) -> list[str]:
    """The report as text for a person."""
    rounds = body["rounds-done"]
    text = [f"run {body['id']}: {body['status']}, {rounds} round{'' if rounds == 1 else 's'}"]
    if body["accuracy"] is not None:
        text.append(f"  accuracy {100 * body['accuracy']:.1f} % (best {100 * body['accuracy-best']:.1f} %)")
    if body["accuracy-personal"] is not None:
        text.append(f"  personal accuracy {100 * body['accuracy-personal']:.1f} %")
    if body.get("device", "cpu") != "cpu":
        text.append(f"  computed on {body['device']}")
    of_view = of_report({name: value for name, value in body.items() if name != "guarantee"})
    text += [f"  {epsilon.sentence()}" for epsilon in of_view.values()]
    guarantee = body["guarantee"]
    if guarantee:
        text.append(f"  guarantee: {guarantee['status']}: {guarantee['reason']}")
    return text


def last_epsilons(events: Iterable[Event]) -> dict[str, Epsilon]:
    """The last ε of every view with its terms."""
    return {event.view: event.total for event in events if isinstance(event, Spent)}


def run_facts(events: Iterable[Event]) -> Mapping[str, Any]:
    """The facts that a run recorded at its start."""
    return next((event.facts for event in events if isinstance(event, Started)), {})


def guarantee(events: Iterable[Event]) -> Mapping[str, Any] | None:
    """The guarantee that a run recorded at its start."""
    return run_facts(events).get("guarantee")
