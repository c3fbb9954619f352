"""Where a client or the server works: its seat, its own chance, a way to show progress, and the crew of threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import TypeVar

import torch
from torch import Tensor

from engine.events import ByClass, Event
from engine.records import Seat, World
from engine.seeds import Seeds

R = TypeVar("R")
_here = threading.local()
Judge = Callable[[Mapping[str, Tensor]], ByClass]  # models (clients, ...) to the accuracy of each, by class
Said = Event | Callable[[Judge], Event]  # what needs a judge meets one after the round: nothing flows back to a method


class Crew:
    """Threads that train clients side by side; one intra-op thread each, so that any number gives the same bits."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="client", initializer=steady)
        self._clerk = ThreadPoolExecutor(1, thread_name_prefix="clerk", initializer=steady)

    def each(
        self, work: Callable[..., R], *columns: Sequence[object], tell: Callable[[float], None] | None = None
    ) -> list[R]:
        """Call `work` for every row, side by side; answers come in the order of the rows."""
        answers: list[R] = []
        alone = self.threads == 1 and getattr(_here, "steady", False)  # then there is nothing to hand over
        for answer in (map if alone else self._pool.map)(work, *columns):
            answers.append(answer)
            if tell:
                tell(len(answers) / len(columns[0]))
        return answers

    def begin(self, work: Callable[[], R]) -> Future[R]:
        """Begin one long work beside whoever asks; the work itself may call `each`."""
        return self._clerk.submit(work)

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pool in (self._clerk, self._pool):
            pool.shutdown(wait=True, cancel_futures=True)


def steady() -> None:
    """Settings that hold per thread: one intra-op thread, and denormals as zero (they are fifty times slower)."""
    _settle(1, True)


def unsteady(threads: int) -> None:
    """As a thread of somebody else was before."""
    _settle(threads, False)


def _settle(threads: int, steady: bool) -> None:
    torch.set_num_threads(threads)
    torch.set_flush_denormal(steady)
    _here.steady = steady


@dataclass
class Desk:
    """What `train` and `merge` may use: nothing here leaves the client but what an Upload carries."""

    world: World
    seat: Seat
    seeds: Seeds
    crew: Crew
    note: Callable[[float, dict[str, float]], None] = field(default=lambda fraction, numbers: None)
    used: Tensor | None = None  # the places of the pictures that entered; None: all of them
    phase: str = ""  # of local training in several parts: each has a chance of its own
    say: Callable[[Said], None] = field(default=lambda said: None)  # what is worth knowing: told after the round

    def rng(self, purpose: str) -> torch.Generator:
        """A generator of this seat alone."""
        return self.seeds.rng(self.phase + purpose, self.seat.round, self.seat.client, self.seat.exchange)

    def tell(self, fraction: float, **numbers: float) -> None:
        """Show that long work moves; call it at fixed places, so that a replay says the same."""
        self.note(fraction, numbers)


def rngs(desks: Sequence[Desk], purpose: str) -> list[torch.Generator]:
    return [desk.rng(purpose) for desk in desks]
