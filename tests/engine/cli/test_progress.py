"""Progress of a run in a terminal: one line that fits, warnings, and runs of lost workers."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.cli import progress
from engine.cli.progress import BAR, ERASE, Progress, follow
from engine.errors import HomeFull, RunFailed
from engine.events import Cancelled, Event, Finished, Measured, Round, Spent, Started, Warned
from engine.jobs.leases import Lease
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store

SPENT = Spent(1, "outsider", 2.5, "user", "add-remove", 1e-3, "rdp", "poisson")
EVENTS: tuple[Event, ...] = (Started("r", {}, {}), Round(1, 4, 3), Measured(1, "accuracy", 0.5), SPENT, Round(2, 4, 3))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        """Every text that the progress line showed, in order."""
        return self.getvalue().split(ERASE)


@dataclass
class StubSupervisor:
    """The two attributes of a supervisor that `follow` reads."""

    working: bool = False
    trouble: Exception | None = None


@dataclass
class FollowedRun:
    """A store with one run, and the calls that happen between two polls."""

    store: Store
    terminal: Terminal
    supervisor: StubSupervisor = field(default_factory=StubSupervisor)
    submitted: int = 0

    def take(self) -> Lease:
        lease = self.store.take(ProcessId.me(), 9)
        assert lease
        return lease

    def append(self, *events: Event) -> None:
        self.store.append(self.take(), events)

    def submit(self) -> None:
        self.submitted += 1
        self.store.submit("r", {})

    def follow(self, quiet: bool = False) -> list[str]:
        with contextlib.redirect_stderr(self.terminal):
            follow(self.store, "r", self.supervisor, self.submit, quiet)  # type: ignore[arg-type]
        return self.terminal.lines


@pytest.fixture
def followed_run(home: Path) -> FollowedRun:
    store = Store()
    store.submit("r", {})
    return FollowedRun(store, Terminal())


def on_each_poll(monkeypatch: pytest.MonkeyPatch, *actions: Callable[[], object]) -> None:
    """Do one action at each sleep of `follow`."""
    remaining: Iterator[Callable[[], object]] = iter(actions)
    monkeypatch.setattr(time, "sleep", lambda _: next(remaining)())


def test_a_run_from_the_queue_to_its_end(followed_run: FollowedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    leases: list[Lease] = []
    on_each_poll(
        monkeypatch,
        lambda: leases.append(followed_run.take()),
        lambda: followed_run.store.append(leases[0], EVENTS),
        lambda: followed_run.store.append(leases[0], [Finished(4, 1.0)]),
    )
    _, queued, starting, running, ended = followed_run.follow()
    assert queued == "waiting: place 1 in the queue"
    assert starting == "preparing the data"
    assert running == f"[{'#' * (BAR // 4)}{'-' * (3 * BAR // 4)}] round 2 of 4  accuracy 50.0 %  ε 2.5 outsider"
    assert ended == ""


def test_a_finished_run_shows_no_progress(followed_run: FollowedRun) -> None:
    followed_run.append(*EVENTS, Finished(4, 1.0))
    assert followed_run.follow() == [""]


def test_a_warning_has_its_own_line_without_a_bar(followed_run: FollowedRun) -> None:
    followed_run.append(*EVENTS, Warned("it is slow", "Wait"), Finished(4, 1.0))
    assert followed_run.follow() == ["it is slow. Wait.\n"]


def test_quiet_prints_nothing(followed_run: FollowedRun) -> None:
    followed_run.append(*EVENTS, Warned("it is slow", "Wait"), Cancelled(2))
    assert followed_run.follow(quiet=True) == [""]


def test_a_line_never_wraps(followed_run: FollowedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = followed_run.take()
    followed_run.store.append(lease, EVENTS)
    monkeypatch.setattr(progress, "width", lambda: 30)
    on_each_poll(monkeypatch, lambda: followed_run.store.append(lease, [Finished(4, 1.0)]))
    assert all(len(line) <= 29 for line in followed_run.follow())


def test_a_run_of_a_lost_worker_is_submitted_again(followed_run: FollowedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    followed_run.store.release(followed_run.take())
    on_each_poll(monkeypatch, lambda: followed_run.append(*EVENTS, Finished(4, 1.0)))
    assert followed_run.follow()[0] == "Run r was interrupted in another process. Resuming it here.\n"
    assert followed_run.submitted == 1
    assert followed_run.store.status("r") == "finished"


def test_a_run_of_a_working_supervisor_is_not_submitted_again(
    followed_run: FollowedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed_run.store.release(followed_run.take())
    followed_run.supervisor.working = True
    on_each_poll(monkeypatch, lambda: followed_run.submit(), lambda: followed_run.append(Cancelled(0)))
    followed_run.follow()
    assert followed_run.submitted == 1  # by the action of this test alone


@pytest.mark.parametrize(
    ("trouble", "raised", "message"),
    [
        (HomeFull("no space is left", "Delete runs"), HomeFull, "no space is left"),
        (ValueError("odd"), RunFailed, "ValueError: odd"),
    ],
)
def test_the_trouble_of_a_supervisor_without_workers_is_raised(
    followed_run: FollowedRun, trouble: Exception, raised: type[Exception], message: str
) -> None:
    followed_run.supervisor.trouble = trouble
    with pytest.raises(raised, match=message):
        followed_run.follow()
    followed_run.store.release(followed_run.take())
    with pytest.raises(raised, match=message):
        followed_run.follow()
    assert followed_run.submitted == 0


def test_the_time_left_is_estimated_from_the_first_line(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    progress = Progress()
    assert progress.line() == ""
    progress.add(Round(51, 101, 3))  # resumed from a checkpoint
    assert not progress.line().endswith("left")
    now[0] += 10.0
    progress.add(Round(61, 101, 3))
    assert progress.line().endswith("round 61 of 101  41 s left")


def test_the_width_without_a_terminal_is_80(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert progress.width() == 80
    with open(os.devnull, "w") as null_file:
        monkeypatch.setattr(sys, "stderr", null_file)
        assert progress.width() == 80
