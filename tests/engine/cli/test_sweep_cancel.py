"""Cancelling a sweep: which runs Ctrl-C cancels, which continue, deleted runs, and why a run has no result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.cli.sweep import batch_of, ending, follow_points, point_line, stop
from engine.events import Event, Failed, Finished
from engine.jobs.batches import Batch
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store
from engine.jobs.supervisor import CANCEL_GRACE_S
from engine.specs.sweep import SweepGrid, SweepPoint, points
from tests.engine.makers import tiny_spec


@pytest.fixture
def store(home: Path) -> Store:
    return Store(home)


@pytest.fixture
def sweep() -> tuple[SweepPoint, ...]:
    return points(tiny_spec(sampling="poisson"), SweepGrid(({"name": "udp-fedavg"},), (1.0, 2.0, 3.0, 4.0)))


@dataclass
class SweepSupervisor:
    """A supervisor with a scripted status. It records that it was stopped."""

    actions: list[Callable[[], object]] = field(default_factory=list)  # one each time that `working` is read
    reads: int = 0
    stopped: bool = False
    at_stop: Callable[[], object] = lambda: None
    trouble: Exception | None = None

    @property
    def working(self) -> bool:
        assert not self.stopped, "it stopped before its workers ended"
        self.reads += 1
        if self.actions:
            self.actions.pop(0)()
        return bool(self.actions)

    def stop(self) -> None:
        self.stopped = True
        self.at_stop()

    def wake(self) -> None: ...


def submit(store: Store, point: SweepPoint, visitor: str = "machine") -> None:
    store.submit(point.id, point.spec.canonical(), {"device": "cpu"}, visitor)


def request(store: Store, points: Sequence[SweepPoint], visitor: str) -> Batch:
    """The batch of these points, requested by this visitor."""
    batch = batch_of("sweep", "a sweep", points, {})
    store.batches.request(batch, visitor)
    return batch


def append(store: Store, *events: Event) -> None:
    lease = store.take(ProcessId.me(), 9)
    assert lease
    store.append(lease, events)


def test_ctrl_c_cancels_the_runs_of_this_command(
    store: Store, sweep: tuple[SweepPoint, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    requested, done, first, second = sweep
    submit(store, done)
    append(store, Finished(2, 1.0))
    submit(store, requested, visitor="another")
    command = store.visits.command()
    batch = request(store, sweep, command)
    supervisor = SweepSupervisor([lambda: None] * 3)
    assert stop(store, supervisor, batch, command) == 130  # type: ignore[arg-type]
    statuses = store.statuses(point.id for point in sweep)
    assert statuses == {requested.id: "queued", done.id: "finished", first.id: "cancelled", second.id: "cancelled"}
    assert supervisor.stopped and supervisor.reads >= 3
    message = capsys.readouterr().err
    assert message == "Cancelled 2 runs; runs that others requested continue. Run the same command again to resume.\n"


def test_a_run_of_others_that_this_command_computed_is_queued_again(
    store: Store, sweep: tuple[SweepPoint, ...]
) -> None:
    submit(store, sweep[0], visitor="another")
    command = store.visits.command()
    batch = request(store, sweep, command)
    lease = store.take(ProcessId.me(), 9)
    assert lease and lease.run == sweep[0].id
    stop(store, SweepSupervisor(at_stop=lambda: store.release(lease)), batch, command)  # type: ignore[arg-type]
    row = store.run(sweep[0].id)
    assert (row.status, row.options) == ("queued", {"device": "cpu"})


def test_the_wait_for_workers_is_limited(
    store: Store, sweep: tuple[SweepPoint, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    monkeypatch.setattr("time.monotonic", lambda: sum(waited))
    supervisor = SweepSupervisor([lambda: None] * 10_000)
    command = store.visits.command()
    stop(store, supervisor, request(store, sweep, command), command)  # type: ignore[arg-type]
    assert supervisor.stopped and CANCEL_GRACE_S < sum(waited) < 4 * CANCEL_GRACE_S


def test_a_run_that_is_deleted_while_it_is_followed_did_not_finish(
    store: Store, sweep: tuple[SweepPoint, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for point in sweep[:2]:
        submit(store, point)
        append(store, Finished(2, 1.0))
    batch = batch_of("sweep", "a sweep", sweep[:2], {})
    ended = follow_points(store, SweepSupervisor(), sweep[:2], batch)  # type: ignore[arg-type]
    assert next(ended) == (sweep[0], None)  # it measured nothing
    store.delete(sweep[1].id)
    assert list(ended) == [(sweep[1], None)]
    assert "was deleted" in ending(store, sweep[1].id)


def test_device_and_threads_are_stored_with_a_run(store: Store, sweep: tuple[SweepPoint, ...]) -> None:
    supervisor = SweepSupervisor([lambda: None, lambda: append(store, Finished(2, 1.0))])
    options = {"device": "cpu", "threads": 2}
    batch = batch_of("sweep", "a sweep", sweep[:1], {})
    assert len(list(follow_points(store, supervisor, sweep[:1], batch, options))) == 1  # type: ignore[arg-type]
    assert store.run(sweep[0].id).options == {"device": "cpu", "threads": 2}


def test_the_line_of_a_point_that_failed_names_its_run_and_the_reason(
    store: Store, sweep: tuple[SweepPoint, ...]
) -> None:
    failed, cancelled, empty, deleted = sweep
    submit(store, failed)
    append(store, Failed("the loss is no number", "Lower lr"))
    for point in (cancelled, empty):
        submit(store, point)
    store.cancel(cancelled.id)
    append(store, Finished(2, 1.0))
    lines = [point_line(point, None, ending(store, point.id)) for point in sweep]
    assert lines[0].endswith(f"seed 0    did not finish: run {failed.id} failed: the loss is no number. Lower lr.")
    assert lines[1].endswith(f"did not finish: run {cancelled.id} was cancelled")
    assert lines[2].endswith(f"did not finish: run {empty.id} measured no accuracy")
    assert lines[3].endswith(f"did not finish: run {deleted.id} was deleted")
