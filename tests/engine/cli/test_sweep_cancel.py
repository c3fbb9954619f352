"""A sweep among others: what Ctrl-C stops and what it spares, runs that vanish, and why one came to nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.cli.sweep import ending, followed, line, stop, under_way
from engine.events import Event, Failed, Finished
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store
from engine.jobs.supervisor import CANCEL_S
from engine.specs.sweep import SweepGrid, SweepPoint, points
from tests.engine.makers import tiny


@pytest.fixture
def store(home: Path) -> Store:
    return Store(home)


@pytest.fixture
def todo() -> tuple[SweepPoint, ...]:
    return points(tiny(sampling="poisson"), SweepGrid(({"name": "udp-fedavg"},), (1.0, 2.0, 3.0, 4.0)))


@dataclass
class SweepSupervisor:
    """A supervisor that is asked how it stands, and told to stop."""

    deeds: list[Callable[[], object]] = field(default_factory=list)  # one each time that it is asked
    looks: int = 0
    stopped: bool = False
    at_stop: Callable[[], object] = lambda: None
    trouble: Exception | None = None

    @property
    def working(self) -> bool:
        assert not self.stopped, "it went before its workers had left"
        self.looks += 1
        if self.deeds:
            self.deeds.pop(0)()
        return bool(self.deeds)

    def stop(self) -> None:
        self.stopped = True
        self.at_stop()

    def wake(self) -> None: ...


def submit(store: Store, point: SweepPoint, **options: object) -> None:
    store.submit(point.id, point.spec.canonical(), options)


def tell(store: Store, *events: Event) -> None:
    lease = store.take(ProcessId.me(), 9)
    assert lease
    store.append(lease, events)


def test_ctrl_c_stops_what_was_asked_for_here(
    store: Store, todo: tuple[SweepPoint, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    theirs, done, mine, gone = todo
    submit(store, done)
    tell(store, Finished(2, 1.0))
    submit(store, theirs, visitor="somebody")
    known = under_way(store, todo)
    assert known == {theirs.id}
    for point in (mine, gone):
        submit(store, point)
    boss = SweepSupervisor([lambda: None] * 3)
    assert stop(store, boss, todo, known) == 130  # type: ignore[arg-type]
    standing = store.statuses(point.id for point in todo)
    assert standing == {theirs.id: "queued", done.id: "finished", mine.id: "cancelled", gone.id: "cancelled"}
    assert boss.stopped and boss.looks >= 3
    said = capsys.readouterr().err
    assert said == "Cancelled 2 runs; what others asked for stays. Ask the same again and it goes on.\n"


def test_what_others_asked_for_waits_again_after_it_was_in_our_hands(
    store: Store, todo: tuple[SweepPoint, ...]
) -> None:
    submit(store, todo[0], visitor="somebody")
    known = under_way(store, todo)
    lease = store.take(ProcessId.me(), 9)
    assert lease
    stop(store, SweepSupervisor(at_stop=lambda: store.release(lease)), todo, known)  # type: ignore[arg-type]
    row = store.run(todo[0].id)
    assert (row.status, row.options) == ("queued", {"visitor": "somebody"})


def test_nobody_waits_for_ever(store: Store, todo: tuple[SweepPoint, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    monkeypatch.setattr("time.monotonic", lambda: sum(waited))
    boss = SweepSupervisor([lambda: None] * 10_000)
    stop(store, boss, todo, set())  # type: ignore[arg-type]
    assert boss.stopped and CANCEL_S < sum(waited) < 4 * CANCEL_S


def test_a_run_that_is_deleted_while_it_is_looked_at_did_not_finish(
    store: Store, todo: tuple[SweepPoint, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for point in todo[:2]:
        submit(store, point)
        tell(store, Finished(2, 1.0))
    ends = followed(store, SweepSupervisor(), todo[:2])  # type: ignore[arg-type]
    assert next(ends) == (todo[0], None)  # it measured nothing
    store.delete(todo[1].id)
    assert list(ends) == [(todo[1], None)]
    assert "was deleted" in ending(store, todo[1].id)


def test_what_runs_are_told_of_the_machine_goes_with_them(store: Store, todo: tuple[SweepPoint, ...]) -> None:
    boss = SweepSupervisor([lambda: None, lambda: tell(store, Finished(2, 1.0))])
    assert len(list(followed(store, boss, todo[:1], {"device": "cpu", "threads": 2}))) == 1  # type: ignore[arg-type]
    assert store.run(todo[0].id).options == {"device": "cpu", "threads": 2}


def test_the_line_of_a_point_that_failed_names_its_run_and_the_reason(
    store: Store, todo: tuple[SweepPoint, ...]
) -> None:
    failed, cancelled, bare, gone = todo
    submit(store, failed)
    tell(store, Failed("the loss is no number", "Lower lr"))
    for point in (cancelled, bare):
        submit(store, point)
    store.cancel(cancelled.id)
    tell(store, Finished(2, 1.0))
    said = [line(point, None, ending(store, point.id)) for point in todo]
    assert said[0].endswith(f"seed 0    did not finish: run {failed.id} failed: the loss is no number. Lower lr.")
    assert said[1].endswith(f"did not finish: run {cancelled.id} was cancelled")
    assert said[2].endswith(f"did not finish: run {bare.id} measured no accuracy")
    assert said[3].endswith(f"did not finish: run {gone.id} was deleted")
