"""A team of threads that trains clients side by side, and the settings each thread needs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

import torch

R = TypeVar("R")


_here = threading.local()


class ThreadTeam:
    """Threads that train clients side by side; one intra-op thread each, so that any number gives the same bits."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="client", initializer=set_thread_modes)
        self._clerk = ThreadPoolExecutor(1, thread_name_prefix="clerk", initializer=set_thread_modes)

    def each(
        self, work: Callable[..., R], *columns: Sequence[object], progress: Callable[[float], None] | None = None
    ) -> list[R]:
        """Call `work` for every row, side by side; answers come in the order of the rows."""
        answers: list[R] = []
        alone = self.threads == 1 and getattr(_here, "steady", False)  # then there is nothing to hand over
        for answer in (map if alone else self._pool.map)(work, *columns):
            answers.append(answer)
            if progress:
                progress(len(answers) / len(columns[0]))
        return answers

    def begin(self, work: Callable[[], R]) -> Future[R]:
        """Begin one long work beside whoever asks; the work itself may call `each`."""
        return self._clerk.submit(work)

    def __enter__(self) -> ThreadTeam:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pool in (self._clerk, self._pool):
            pool.shutdown(wait=True, cancel_futures=True)


def set_thread_modes() -> None:
    """Settings that hold per thread: one intra-op thread, and denormals as zero (they are fifty times slower)."""
    _settle(1, True)


def restore_thread_modes(threads: int) -> None:
    """As a thread of somebody else was before."""
    _settle(threads, False)


def _settle(threads: int, steady: bool) -> None:
    torch.set_num_threads(threads)
    torch.set_flush_denormal(steady)
    _here.steady = steady
