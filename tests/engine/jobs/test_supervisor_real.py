"""The real loop under kill -9: whatever dies on the way, the answer is the same to the bit and ε never falls."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from engine.events import Event, Kept, Spent
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from engine.training import loop
from tests.engine.jobs.conftest import ended
from tests.engine.jobs.real import KILLS, MARKS
from tests.engine.makers import tiny, told

ENTRY = "tests.engine.jobs.real:run"
ROUNDS = 12


@pytest.mark.slow
@pytest.mark.parametrize("method", ["udp-fedavg", "dp-fedavg"])
def test_killed_three_times_it_says_the_same(
    method: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = tiny(method=method, model={"name": "mlp", "dropout": 0.4}, rounds=ROUNDS)
    undisturbed = list(loop.run(spec, threads=1))
    moments = sorted(Random(method).sample(range(2, ROUNDS + 1), 3))
    monkeypatch.setenv(KILLS, ",".join(map(str, moments)))
    monkeypatch.setenv(MARKS, str(tmp_path))
    store.submit(spec.id, spec.canonical(), {"threads": 2})
    with Supervisor(store, workers=1, entry=ENTRY, preload=("engine.training.loop",)):
        assert ended(store, spec.id) == "finished"
    assert sorted(int(mark.name) for mark in tmp_path.iterdir()) == moments
    events = [event for _, event in store.events(spec.id)]
    assert told(events) == told(bare(undisturbed))
    for kept in (event for event in undisturbed if isinstance(event, Kept)):
        assert kept.payload is not None
        stored = store.payload(spec.id, kept.name)
        assert {name: array.tobytes() for name, array in stored.items()} == {
            name: array.tobytes() for name, array in kept.payload.items()
        }
    for view in {event.view for event in events if isinstance(event, Spent)}:
        rising = [event for event in events if isinstance(event, Spent) and event.view == view]
        values = [event.epsilon for event in rising if event.epsilon is not None and event.accountant != "prv"]
        assert values == sorted(values)


def bare(events: list[Event]) -> list[Event]:
    """As the store tells them: payloads lie beside the events."""
    return [Kept(one.kind, one.name, one.round, one.facts) if isinstance(one, Kept) else one for one in events]
