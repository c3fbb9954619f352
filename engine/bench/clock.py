"""A stopwatch for noisy machines: ours and the peer take turns, and the best of each counts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Race:
    """Seconds of each turn."""

    ours: tuple[float, ...]
    peer: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """How many times faster: the median over the turns, in each of which both met the same machine."""
        return statistics.median(peer / ours for ours, peer in zip(self.ours, self.peer, strict=True))


def race(ours: Callable[[], object], peer: Callable[[], object], turns: int = 5, warm: int = 1) -> Race:
    """Let both run in turns, after a warm-up."""
    for _ in range(warm):
        ours()
        peer()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for work, kept in zip((ours, peer), times, strict=True):
            start = time.perf_counter()
            work()
            kept.append(time.perf_counter() - start)
    return Race(tuple(times[0]), tuple(times[1]))
