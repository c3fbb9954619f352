"""A stopwatch for noisy machines: our code and the peer run alternately, and each comparison uses neighbouring runs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class PairedTimes:
    """The seconds of each repeat, for our code and for the peer."""

    ours: tuple[float, ...]
    peer: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """How many times faster our code is: the median over repeats, so that both ran on an equally busy machine."""
        return statistics.median(peer / ours for ours, peer in zip(self.ours, self.peer, strict=True))


def time_pair(
    ours: Callable[[], object], peer: Callable[[], object], repeats: int = 5, warm_ups: int = 1
) -> PairedTimes:
    """Warm both up, then run and time them alternately."""
    for _ in range(warm_ups):
        ours()
        peer()
    our_times: list[float] = []
    peer_times: list[float] = []
    for _ in range(repeats):
        our_times.append(seconds(ours))
        peer_times.append(seconds(peer))
    return PairedTimes(tuple(our_times), tuple(peer_times))


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
