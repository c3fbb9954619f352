"""The real training loop under kill -9: the result stays the same to the bit, and ε never falls."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from engine.events import Event, Kept, Spent
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from engine.training import loop
from tests.engine.jobs.conftest import wait_for_end
from tests.engine.jobs.real import KILLS, MARKS
from tests.engine.makers import replayable, tiny_spec

ENTRY = "tests.engine.jobs.real:run"
ROUNDS = 12


@pytest.mark.slow
@pytest.mark.parametrize("method", ["udp-fedavg", "dp-fedavg"])
def test_a_run_killed_three_times_has_the_same_events_and_payloads(
    method: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = tiny_spec(method=method, model={"name": "mlp", "dropout": 0.4}, rounds=ROUNDS)
    undisturbed = list(loop.run(spec, threads=1))
    moments = sorted(Random(method).sample(range(2, ROUNDS + 1), 3))
    monkeypatch.setenv(KILLS, ",".join(map(str, moments)))
    monkeypatch.setenv(MARKS, str(tmp_path))
    store.submit(spec.id, spec.canonical(), {"threads": 2})
    with Supervisor(store, workers=1, entry=ENTRY, preload=("engine.training.loop",)):
        assert wait_for_end(store, spec.id) == "finished"
    assert sorted(int(mark.name) for mark in tmp_path.iterdir()) == moments
    events = [event for _, event in store.events(spec.id)]
    assert replayable(events) == replayable(without_payloads(undisturbed))
    for kept in undisturbed:
        if not isinstance(kept, Kept):
            continue
        assert kept.payload is not None
        stored = store.payload(spec.id, kept.name)
        expected = {name: array.tobytes() for name, array in kept.payload.items()}
        assert {name: array.tobytes() for name, array in stored.items()} == expected
    for view in {event.view for event in events if isinstance(event, Spent)}:
        spent = [event for event in events if isinstance(event, Spent) and event.view == view]
        values = [event.epsilon for event in spent if event.epsilon is not None and event.accountant != "prv"]
        assert values == sorted(values)


def without_payloads(events: list[Event]) -> list[Event]:
    """The events as the store returns them: payloads are stored in files."""
    stored: list[Event] = []
    for event in events:
        if isinstance(event, Kept):
            event = Kept(event.kind, event.name, event.round, event.facts)
        stored.append(event)
    return stored
