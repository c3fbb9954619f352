"""A team of threads that trains clients in parallel, and the torch settings of each thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

import torch

R = TypeVar("R")

_thread = threading.local()


class ThreadTeam:
    """Threads that train clients in parallel. With one intra-op thread each, any number gives bitwise equal results."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="client", initializer=set_thread_modes)
        self._background = ThreadPoolExecutor(1, thread_name_prefix="background", initializer=set_thread_modes)

    def each(
        self, work: Callable[..., R], *columns: Sequence[object], progress: Callable[[float], None] | None = None
    ) -> list[R]:
        """Call `work` for every row in parallel. The results have the order of the rows."""
        results: list[R] = []
        in_this_thread = self.threads == 1 and getattr(_thread, "training", False)  # the pool would gain nothing
        map_rows = map if in_this_thread else self._pool.map
        for result in map_rows(work, *columns):
            results.append(result)
            if progress:
                progress(len(results) / len(columns[0]))
        return results

    def begin(self, work: Callable[[], R]) -> Future[R]:
        """Start one long task in the background. The task may itself call `each`."""
        return self._background.submit(work)

    def __enter__(self) -> ThreadTeam:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pool in (self._background, self._pool):
            pool.shutdown(wait=True, cancel_futures=True)


def set_thread_modes() -> None:
    """Set this thread to train: one intra-op thread, and denormals as zero, which are fifty times slower."""
    _set_modes(1, True)


def restore_thread_modes(threads: int) -> None:
    """Set this thread back to its own number of intra-op threads, with denormals."""
    _set_modes(threads, False)


def _set_modes(threads: int, training: bool) -> None:
    torch.set_num_threads(threads)
    torch.set_flush_denormal(training)
    _thread.training = training
