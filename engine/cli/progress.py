"""Progress of a run in a terminal: one line that is redrawn, and separate lines for warnings."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from engine.errors import LeakLensError, RunFailed, UnknownName
from engine.events import Event, Measured, Pictured, Round, Spent, Step, Warned
from engine.open_files import limit_error

if TYPE_CHECKING:
    from engine.jobs.batches import Withdrawal
    from engine.jobs.status import ListedRun
    from engine.jobs.store import Store
    from engine.jobs.supervisor import Supervisor
    from engine.specs.attack import BaseAttackSpec
    from engine.specs.run import RunSpec

BAR = 24  # characters
ERASE = "\r\033[K"  # erases the line of the bar
POLL_S = 0.05


@contextmanager
def supervised() -> Iterator[tuple[Store, Supervisor, set[str]]]:
    """The store, and a supervisor that preloads at once. It claims only runs whose ids are added to the set."""
    from engine.jobs.store import Store
    from engine.jobs.supervisor import Supervisor

    store = Store()
    run_ids: set[str] = set()
    with Supervisor(store, preload=("engine.jobs.backends.preload",), only=run_ids) as supervisor:
        yield store, supervisor, run_ids


def submit_and_follow(
    store: Store, supervisor: Supervisor, spec: RunSpec | BaseAttackSpec, options: Mapping[str, object], quiet: bool
) -> bool:
    """Submit a run and follow it to its end. False if Ctrl-C ended the following and the run continues."""
    visitor = store.visits.command()

    def submit() -> str:
        status = store.submit(spec.id, spec.canonical(), options, visitor)
        supervisor.wake()
        return status

    submit()
    try:
        follow(store, spec.id, supervisor, submit, quiet=quiet)
    except KeyboardInterrupt:
        return _cancel(store, spec.id, supervisor, visitor)
    return True


def _cancel(store: Store, run: str, supervisor: Supervisor, visitor: str) -> bool:
    """On Ctrl-C: cancel the run if no one else wants it, and no other process computes it."""
    if store.status(run) == "running" and not supervisor.working:
        say(f"Run {run} continues: another command or the dashboard computes it.")
        return False
    withdrawal = store.withdraw([run], visitor, owns_machine=True)
    leave(store, supervisor, withdrawal)
    if withdrawal.cancelled:
        say(f"Cancelled run {run}. Run the same command again to resume it.")
    if withdrawal.kept:
        say(f"Run {run} continues: someone else requested it.")
    return not withdrawal.kept


def leave(store: Store, supervisor: Supervisor, withdrawal: Withdrawal) -> list[str]:
    """End the workers of this command, and return the runs that continue. Those return to the queue."""
    wait_for_workers(supervisor, withdrawal.cancelled)
    supervisor.stop()
    for run, status in store.statuses(withdrawal.kept).items():
        if status == "interrupted":  # a worker of this command was computing it
            with suppress(UnknownName):  # the run was deleted meanwhile
                row = store.run(run)
                store.batches.submit({run: row.spec}, row.options)
    statuses = store.statuses(withdrawal.kept)
    return [run for run, status in statuses.items() if status in ("queued", "running", "interrupted")]


def wait_for_workers(supervisor: Supervisor, cancelled: Sequence[str]) -> None:
    """Wait until cancelled runs have written their checkpoints, for as long as the workers may take."""
    from engine.jobs.supervisor import CANCEL_GRACE_S

    if not cancelled:
        return

    deadline = time.monotonic() + 2 * CANCEL_GRACE_S  # twice: polling and writing take time, too
    while supervisor.working and time.monotonic() < deadline:
        time.sleep(0.02)


def follow(store: Store, run: str, supervisor: Supervisor, submit: Callable[[], object], quiet: bool = False) -> None:
    """Show progress until the run ends. Submit it again if it was interrupted; raise if no worker can start."""
    after = 0
    progress = Progress()
    screen = ProgressScreen(quiet)
    try:
        while True:
            listed = store.run(run)
            for number, event in store.events(run, after):
                after = number
                progress.add(event)
                if isinstance(event, Warned):
                    screen.say(f"{event.reason}. {event.remedy}.")
            if listed.status in ("finished", "failed", "cancelled"):
                return
            if listed.status in ("queued", "interrupted") and not supervisor.working:
                _raise_trouble(supervisor.trouble)
            if listed.status == "interrupted" and not supervisor.working:
                screen.say(f"Run {run} was interrupted in another process. Resuming it here.")
                submit()
            screen.show(status_line(listed, progress))
            time.sleep(POLL_S)
    finally:
        screen.clear()


def _raise_trouble(trouble: Exception | None) -> None:
    limit = limit_error(trouble)
    if limit:
        raise limit from trouble
    if isinstance(trouble, LeakLensError):
        raise trouble
    if trouble:
        remedy = "Run the same command again: it resumes from the checkpoint"
        raise RunFailed(f"{type(trouble).__name__}: {trouble}", remedy)


def status_line(listed: ListedRun, progress: Progress) -> str:
    """The progress line for the current status."""
    if listed.status == "queued":
        return f"waiting: place {listed.place} in the queue" if listed.place else "waiting"
    return progress.line() or "preparing the data"


class Progress:
    """The progress of a run or an attack, read from its events."""

    def __init__(self) -> None:
        self._round: Round | None = None
        self._attack: tuple[str, float] | None = None  # the current step, and the share of the attack that is done
        self._start: tuple[float, float] | None = None  # the time of the first line, and the share done by then
        self._accuracy = ""
        self._epsilon = ""

    def add(self, event: Event) -> None:
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
        """The bar with the numbers; empty before the first round."""
        if self._attack is not None:
            step = self._attack[0]
        elif self._round is not None:
            step = f"round {self._round.round} of {self._round.of}"
        else:
            return ""
        full = round(BAR * self.done)
        bar = "#" * full + "-" * (BAR - full)
        parts = (f"[{bar}] {step}", self._accuracy, self._epsilon, self._left())
        return "  ".join(filter(None, parts))

    def _left(self) -> str:
        """The estimated time left, from the pace since the first line; empty below 2 % of progress."""
        now = time.monotonic()
        done = self.done
        if self._start is None:
            self._start = now, done
        start, before = self._start
        if done - before < 0.02:
            return ""
        return f"{(now - start) * (1 - done) / (done - before):.0f} s left"


class ProgressScreen:
    """The progress line on stderr. It is redrawn in a terminal only; other streams get the messages alone."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._redraws = sys.stderr.isatty() and not quiet
        self._shown = ""

    def show(self, line: str) -> None:
        line = line[: width() - 1]  # a line that wraps cannot be erased
        if self._redraws and line != self._shown:
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
    """The width of the terminal in characters; 80 if stderr is no terminal."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def say(text: str, end: str = "\n") -> None:
    print(text, end=end, file=sys.stderr, flush=True)
