"""Following a run in a terminal: one line that moves, and a word where something must be known."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.errors import LeakLensError, RunFailed
from engine.events import Event, Measured, Pictured, Round, Spent, Step, Warned

if TYPE_CHECKING:
    from engine.jobs.status import ListedRun
    from engine.jobs.store import Store
    from engine.jobs.supervisor import Supervisor
    from engine.specs.attack import AttackSpec
    from engine.specs.run import RunSpec

BAR = 24  # characters
ERASE = "\r\033[K"  # the line of the bar
LOOK_S = 0.05


@contextmanager
def at_work() -> Iterator[tuple[Store, Supervisor, set[str]]]:
    """The store, and a supervisor that warms up at once and claims no run but those that are put into the set."""
    from engine.jobs.store import Store
    from engine.jobs.supervisor import Supervisor

    store, mine = Store(), set[str]()
    with Supervisor(store, preload=("engine.jobs.preload",), only=mine) as supervisor:
        yield store, supervisor, mine


def watched(
    store: Store, supervisor: Supervisor, spec: RunSpec | AttackSpec, options: Mapping[str, object], quiet: bool
) -> bool:
    """Ask for it and watch it end; false where somebody else's work was only watched, and no longer is."""

    def submit() -> str:
        status = store.submit(spec.id, spec.canonical(), options)
        supervisor.wake()
        return status

    submit()
    try:
        follow(store, spec.id, supervisor, submit, quiet=quiet)
    except KeyboardInterrupt:
        return _cancel(store, spec.id, supervisor)
    return True


def _cancel(store: Store, run: str, supervisor: Supervisor) -> bool:
    """Ctrl-C stops the run that is ours; of others it only stops watching."""
    if store.status(run) == "running" and not supervisor.working:
        say(f"Run {run} goes on: another command or the dashboard computes it.")
        return False
    if store.cancel(run) == "cancelled":
        until_left(supervisor)
        say(f"Cancelled. Ask the same again and it goes on: its id is {run}.")
    return True


def until_left(supervisor: Supervisor) -> None:
    """What was cancelled leaves a checkpoint first: its workers are given as long as they may take, and no longer."""
    from engine.jobs.supervisor import CANCEL_S

    ends = time.monotonic() + 2 * CANCEL_S  # also for looking, and for writing it down
    while supervisor.working and time.monotonic() < ends:
        time.sleep(0.02)


def follow(store: Store, run: str, supervisor: Supervisor, submit: Callable[[], object], quiet: bool = False) -> None:
    """Until the run has ended. Where its holder is lost it is asked again; where nothing can move, that is raised."""
    after, progress, screen = 0, Progress(), ProgressScreen(quiet)
    try:
        while True:
            known = store.run(run)
            for number, event in store.events(run, after):
                after = number
                progress.hear(event)
                if isinstance(event, Warned):
                    screen.say(f"{event.reason}. {event.remedy}.")
            if known.status in ("finished", "failed", "cancelled"):
                return
            if known.status in ("queued", "interrupted") and not supervisor.working:
                _give_up(supervisor.trouble)
            if known.status == "interrupted" and not supervisor.working:
                screen.say(f"Run {run} was interrupted elsewhere: taking it over.")
                submit()
            screen.show(standing(known, progress))
            time.sleep(LOOK_S)
    finally:
        screen.clear()


def _give_up(trouble: Exception | None) -> None:
    if isinstance(trouble, LeakLensError):
        raise trouble
    if trouble:
        raise RunFailed(f"{type(trouble).__name__}: {trouble}", "Ask again: it goes on from its checkpoint")


def standing(known: ListedRun, progress: Progress) -> str:
    """The line of this moment."""
    if known.status == "queued":
        return f"waiting: place {known.place} in the queue" if known.place else "waiting"
    return progress.line() or "preparing the data"


class Progress:
    """How far a run is, from what it told."""

    def __init__(self) -> None:
        self._round: Round | None = None
        self._attack: tuple[str, float] | None = None  # what it does, and how much of that is done
        self._began: tuple[float, float] | None = None  # when we first saw it move, and how far it was then
        self._accuracy = self._epsilon = ""

    def hear(self, event: Event) -> None:
        if isinstance(event, Measured) and event.name == "accuracy" and event.who == "global":
            self._accuracy = "" if event.value is None else f"accuracy {100 * event.value:.1f} %"
        elif isinstance(event, Spent) and event.view == "outsider":
            self._epsilon = "" if event.epsilon is None else f"ε {event.epsilon:.3g} outsider"
        elif isinstance(event, Round):
            self._round = event
        elif isinstance(event, Step):
            self._attack = (event.what, event.fraction)
        elif isinstance(event, Pictured):
            psnr = sum(event.psnr) / max(1, len(event.psnr))
            self._attack = (f"iteration {event.iteration} of {event.of}", event.iteration / max(1, event.of))
            self._accuracy = f"PSNR {psnr:.1f} dB"

    @property
    def done(self) -> float:
        """The share of all rounds, or of an attack's iterations."""
        if self._attack:
            return self._attack[1]
        last = self._round
        return (last.round - 1 + last.fraction) / max(1, last.of) if last else 0.0

    def line(self) -> str:
        """Empty before the first round."""
        if self._attack is not None:
            what = self._attack[0]
        elif self._round is not None:
            what = f"round {self._round.round} of {self._round.of}"
        else:
            return ""
        bar = "#" * round(BAR * self.done) + "-" * (BAR - round(BAR * self.done))
        words = (f"[{bar}] {what}", self._accuracy, self._epsilon, self._left())
        return "  ".join(filter(None, words))

    def _left(self) -> str:
        now, done = time.monotonic(), self.done
        if self._began is None:
            self._began = now, done
        start, before = self._began
        if done - before < 0.02:
            return ""
        return f"{(now - start) * (1 - done) / (done - before):.0f} s left"


class ProgressScreen:
    """The one moving line of a terminal, on stderr; other streams get the words alone."""

    def __init__(self, quiet: bool) -> None:
        self._quiet, self._moves = quiet, sys.stderr.isatty() and not quiet
        self._shown = ""

    def show(self, line: str) -> None:
        line = line[: width() - 1]  # a line that wraps cannot be erased
        if self._moves and line != self._shown:
            self._shown = line
            say(f"{ERASE}{line}", end="")

    def say(self, sentence: str) -> None:
        self.clear()
        if not self._quiet:
            say(sentence)

    def clear(self) -> None:
        if self._shown:
            self._shown = ""
            say(ERASE, end="")


def width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def say(text: str, end: str = "\n") -> None:
    print(text, end=end, file=sys.stderr, flush=True)
