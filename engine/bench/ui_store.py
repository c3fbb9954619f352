"""A store with many finished runs, attacks and sweeps: the events of the stored examples, under ids for other seeds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from engine.events import Event, Started
from engine.examples.attacks import attack_examples
from engine.examples.files import RunExample, example, examples
from engine.jobs.batches import Batch, BatchKind, BatchMember
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec

SHARE = 5  # one in five is of a sweep, and one in five is an attack
TOGETHER = 10  # members of a batch
LATER_SEED = 5000  # of sweeps: other runs than those that were requested by themselves

Stored = tuple[RunSpec | AttackSpec, Sequence[Event]]


def full_store(home: Path, count: int) -> tuple[Store, list[str]]:
    """A store with this many runs and attacks, and the ids of the runs that were requested by themselves.

    These are the newest, so that the first page of the list has runs that a visitor can open.
    """
    more = count // SHARE
    store = Store(home)
    add_batches(store, "sweep", itertools.islice(_runs(LATER_SEED), more))
    add_batches(store, "leak grid", itertools.islice(_attacks(), more))
    store.close()
    return used_store(home, count - 2 * more)


def used_store(home: Path, count: int) -> tuple[Store, list[str]]:
    """A store with this many finished runs, and their ids."""
    store = Store(home)
    ids = []
    for spec, events in itertools.islice(_runs(), count):
        store.submit(spec.id, spec.canonical())
        _finish(store, spec, events)
        ids.append(spec.id)
    return store, ids


def add_batches(store: Store, kind: BatchKind, members: Iterator[Stored]) -> None:
    """Add finished batches of these runs or attacks."""
    for batch in iter(lambda: tuple(itertools.islice(members, TOGETHER)), ()):
        specs = tuple(BatchMember(spec.id, spec.canonical()) for spec, _ in batch)
        screen = "tradeoff" if kind == "sweep" else "leak"
        store.batches.request(Batch(kind, f"{kind} {specs[0].run}", specs, {"screen": screen}), "bench")
        for spec, events in batch:
            _finish(store, spec, events)


def _finish(store: Store, spec: RunSpec | AttackSpec, events: Sequence[Event]) -> None:
    """Store the events of an example as those of a waiting run."""
    started = events[0]
    assert isinstance(started, Started)
    lease = store.take(ProcessId.me(), 1, {spec.id})
    assert lease and lease.run == spec.id
    store.append(lease, [replace(started, run=spec.id, spec=spec.canonical()), *events[1:]])


def _runs(first_seed: int = 1) -> Iterator[Stored]:
    for seed, source in zip(itertools.count(first_seed), itertools.cycle(example_runs())):
        fields = {key: value for key, value in source.spec.items() if key != "format"}
        yield RunSpec(**{**fields, "seed": seed}), source.events


def _attacks() -> Iterator[Stored]:
    for seed, source in zip(itertools.count(1), itertools.cycle(attack_examples())):
        yield AttackSpec(**{**source.spec, "seed": seed}), source.events


def example_runs() -> list[RunExample]:
    """Each example, followed by its baseline if that is stored."""
    runs = []
    for run in examples():
        runs.append(run)
        baseline = example(run.baseline)
        if baseline:
            runs.append(baseline)
    return runs
