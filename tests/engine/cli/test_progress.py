"""A run followed in a terminal: one line that fits, words where they are needed, no run left behind."""

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
TOLD: tuple[Event, ...] = (Started("r", {}, {}), Round(1, 4, 3), Measured(1, "accuracy", 0.5), SPENT, Round(2, 4, 3))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        """Everything that the moving line said in turn."""
        return self.getvalue().split(ERASE)


@dataclass
class StubSupervisor:
    """A supervisor of whom only this is asked."""

    working: bool = False
    trouble: Exception | None = None


@dataclass
class FollowedRun:
    """A store with one run, and what happens at each look."""

    store: Store
    terminal: Terminal
    boss: StubSupervisor = field(default_factory=StubSupervisor)
    asked: int = 0

    def take(self) -> Lease:
        lease = self.store.take(ProcessId.me(), 9)
        assert lease
        return lease

    def tell(self, *events: Event) -> None:
        self.store.append(self.take(), events)

    def submit(self) -> None:
        self.asked += 1
        self.store.submit("r", {})

    def follow(self, quiet: bool = False) -> list[str]:
        with contextlib.redirect_stderr(self.terminal):
            follow(self.store, "r", self.boss, self.submit, quiet)  # type: ignore[arg-type]
        return self.terminal.lines


@pytest.fixture
def followed_run(home: Path) -> FollowedRun:
    store = Store()
    store.submit("r", {})
    return FollowedRun(store, Terminal())


def in_turn(monkeypatch: pytest.MonkeyPatch, *deeds: Callable[[], object]) -> None:
    """One deed each time that the follower rests."""
    left: Iterator[Callable[[], object]] = iter(deeds)
    monkeypatch.setattr(time, "sleep", lambda _: next(left)())


def test_a_run_from_the_queue_to_its_end(followed_run: FollowedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[Lease] = []
    in_turn(
        monkeypatch,
        lambda: held.append(followed_run.take()),
        lambda: followed_run.store.append(held[0], TOLD),
        lambda: followed_run.store.append(held[0], [Finished(4, 1.0)]),
    )
    _, waits, begins, moves, after = followed_run.follow()
    assert waits == "waiting: place 1 in the queue"
    assert begins == "preparing the data"
    assert moves == f"[{'#' * (BAR // 4)}{'-' * (3 * BAR // 4)}] round 2 of 4  accuracy 50.0 %  ε 2.5 outsider"
    assert after == ""


def test_a_finished_run_is_not_played_again(followed_run: FollowedRun) -> None:
    followed_run.tell(*TOLD, Finished(4, 1.0))
    assert followed_run.follow() == [""]


def test_warnings_stand_alone_and_leave_no_bar_behind(followed_run: FollowedRun) -> None:
    followed_run.tell(*TOLD, Warned("it is slow", "Wait"), Finished(4, 1.0))
    assert followed_run.follow() == ["it is slow. Wait.\n"]


def test_quiet_says_nothing(followed_run: FollowedRun) -> None:
    followed_run.tell(*TOLD, Warned("it is slow", "Wait"), Cancelled(2))
    assert followed_run.follow(quiet=True) == [""]


def test_a_line_never_wraps(followed_run: FollowedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[Lease] = [followed_run.take()]
    followed_run.store.append(held[0], TOLD)
    monkeypatch.setattr(progress, "width", lambda: 30)
    in_turn(monkeypatch, lambda: followed_run.store.append(held[0], [Finished(4, 1.0)]))
    assert all(len(line) <= 29 for line in followed_run.follow())


def test_a_run_whose_holder_was_lost_is_taken_over(followed_run: FollowedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    followed_run.store.release(followed_run.take())
    in_turn(monkeypatch, lambda: followed_run.tell(*TOLD, Finished(4, 1.0)))
    assert followed_run.follow()[0] == "Run r was interrupted elsewhere: taking it over.\n"
    assert followed_run.asked == 1
    assert followed_run.store.status("r") == "finished"


def test_a_run_in_our_own_hands_is_waited_for(followed_run: FollowedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    held = followed_run.take()
    followed_run.store.release(held)
    followed_run.boss.working = True
    in_turn(monkeypatch, lambda: followed_run.submit(), lambda: followed_run.tell(Cancelled(0)))
    followed_run.follow()
    assert followed_run.asked == 1  # by the deed alone


@pytest.mark.parametrize(
    ("trouble", "raised", "words"),
    [
        (HomeFull("no space is left", "Delete runs"), HomeFull, "no space is left"),
        (ValueError("odd"), RunFailed, "ValueError: odd"),
    ],
)
def test_where_nothing_can_move_the_reason_is_told(
    followed_run: FollowedRun, trouble: Exception, raised: type[Exception], words: str
) -> None:
    followed_run.boss.trouble = trouble
    with pytest.raises(raised, match=words):
        followed_run.follow()
    followed_run.store.release(followed_run.take())
    with pytest.raises(raised, match=words):
        followed_run.follow()
    assert followed_run.asked == 0


def test_time_left_counts_from_what_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    progress = Progress()
    assert progress.line() == ""
    progress.hear(Round(51, 101, 3))  # gone on from a checkpoint
    assert not progress.line().endswith("left")
    now[0] += 10.0
    progress.hear(Round(61, 101, 3))
    assert progress.line().endswith("round 61 of 101  41 s left")


def test_the_width_of_what_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert progress.width() == 80
    with open(os.devnull, "w") as nothing:
        monkeypatch.setattr(sys, "stderr", nothing)
        assert progress.width() == 80
