"""The dashboard with one visitor and with thirty, over HTTP (Linux). The peer is a plain page with one chart."""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from engine.bench import BenchRow
from engine.bench.clock import PairedTimes
from engine.bench.ui_server import BenchServer, Page, start_dashboard, start_peer
from engine.bench.ui_store import full_store
from engine.bench.ui_visitors import VISITORS, run_class, unfinished_runs
from engine.jobs.store import Store

STORED = 1000  # runs and attacks
STARTS = 3
BLOCKS = 10  # each block has every kind of rerun
RERUNS = {"Start": 7, "Leak": 7, "Try": 7, "Trade-off": 7, "Runs": 7, "Machine": 7, "noise": 8}  # per block: 50
LAST = {"ε": 5}  # runs last, because the memory that its accountant frees leaves a large gap
WARM = 2  # blocks that are not counted
PROMISES = {
    "first chart s": 3.0,
    **{f"{screen} p95 ms": 250.0 for screen in ("Start", "Leak", "Try", "Trade-off", "Runs", "Machine")},
    **{f"{slider} p95 ms": 150.0 for slider in ("noise", "ε")},
    "growth MB": 20.0,
    "visitors p95 s": 1.0,
    "failures": 0,
}
PROMISE = (
    "first chart in 3 s; p95 of a screen 250 ms and of a slider 150 ms; 500 reruns grow by 20 MB; "
    f"{VISITORS} visitors p95 1 s, none fails"
)

NOISES = (0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 1.0, 1.5, 3.0, 4.0)
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
Reruns = Iterator[Callable[[], float]]  # each function does one rerun and returns its seconds


@dataclass
class RerunTimes:
    """Seconds of the reruns of one kind, and the processor time that the server used for all of them."""

    server: BenchServer
    wall: list[float] = field(default_factory=list)
    cpu: float = 0.0

    def measure(self, reruns: Sequence[Callable[[], float]]) -> None:
        before = self.server.cpu_s
        self.wall += [rerun() for rerun in reruns]
        self.cpu += self.server.cpu_s - before

    def row(self, name: str) -> dict[str, float]:
        """Median, 95th percentile and processor time, in milliseconds."""
        numbers = {"": statistics.median(self.wall), "p95 ": p95(self.wall), "cpu ": self.cpu / len(self.wall)}
        return {f"{name} {kind}ms".strip(): 1000 * seconds for kind, seconds in numbers.items()}


def measure() -> BenchRow:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        store, ids = full_store(folder / "home", STORED)
        ours, peer, ratio = measure_one_visitor(folder, ids)
        class_row, class_peer_row = measure_class(folder, store)
        store.close()
    ours = {**ours, **class_row}
    peer = {**peer, **class_peer_row}
    broken = [name for name, most in PROMISES.items() if ours[name] > most]
    promise = f"{PROMISE}; broken: {', '.join(broken)}" if broken else PROMISE
    return BenchRow("ui", ours, peer, ratio, promise, not broken)


def p95(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=20, method="inclusive")[-1]


# --- one visitor -----------------------------------------------------------------------------------------


def measure_one_visitor(folder: Path, ids: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any], float]:
    """Cold starts of the peer and the dashboard in alternation. Then reruns of every kind on the last two servers."""
    our_starts: list[float] = []
    peer_starts: list[float] = []
    with ExitStack() as running:
        for _ in range(STARTS):
            running.close()
            peer = running.enter_context(start_peer(folder / "peer"))
            peer_page, seconds = peer.first_chart()
            peer_starts.append(seconds)
            server = running.enter_context(start_dashboard(folder / "ours", folder / "home"))
            page, seconds = server.first_chart()
            our_starts.append(seconds)
        page.interact(page="try")
        page.wait_for("try-change")
        form = time.perf_counter() - server.began
        page.interact(page="machine")
        page.wait_for("look")  # the doctor has finished, so it does not disturb the measurement
        reruns = dashboard_reruns(server.port, ids)
        peer_reruns = slider_reruns(peer_page)
        times, sizes = measure_blocks(server, peer, reruns, peer_reruns, RERUNS)
        last_times, last_sizes = measure_blocks(server, peer, reruns, peer_reruns, LAST)
    ours = {"first chart s": statistics.median(our_starts), "first chart worst s": max(our_starts), "form s": form}
    for name, kind_times in {**times, **last_times}.items():
        if name != "peer":
            ours |= kind_times.row(name)
    ours |= {"growth MB": growth(sizes), "ε keeps MB": min(last_sizes) - max(sizes)}
    peer_row = {"first chart s": statistics.median(peer_starts), **times["peer"].row("")}
    ratio = PairedTimes(tuple(times["Try"].wall), tuple(times["peer"].wall)).ratio
    return ours, peer_row, ratio


def measure_blocks(
    server: BenchServer,
    peer: BenchServer,
    reruns: Mapping[str, Reruns],
    peer_reruns: Reruns,
    counts: Mapping[str, int],
) -> tuple[dict[str, RerunTimes], list[float]]:
    """The times of every kind of rerun, and the memory of the server in MB after each kind in each block."""
    times: dict[str, RerunTimes] = {}
    sizes: list[float] = []
    for block in range(WARM + BLOCKS):
        if block == WARM:
            times = {}
            sizes = []
        for name, count in counts.items():
            times.setdefault(name, RerunTimes(server)).measure(list(itertools.islice(reruns[name], count)))
            if name == "Try":
                times.setdefault("peer", RerunTimes(peer)).measure(list(itertools.islice(peer_reruns, count)))
            sizes.append(server.memory_mb)
    return times, sizes


def growth(sizes: Sequence[float]) -> float:
    """Twice the difference between the minima of both halves. Freed memory varies, but a leak raises the minimum."""
    half = len(sizes) // 2
    return 2 * (min(sizes[half:]) - min(sizes[:half]))


def dashboard_reruns(port: int, ids: Sequence[str]) -> dict[str, Reruns]:
    """An endless supply of reruns of each kind. Each kind has its own page."""
    start, leak, try_it, tradeoff, runs, machine, noise, epsilon = (Page(port) for _ in (*RERUNS, *LAST))
    leak.interact(page="leak")
    try_it.interact(page="try", query_params={"run": [ids[0]]})
    tradeoff.interact(page="tradeoff")
    runs.interact(page="runs")
    machine.interact(page="machine")
    for page in (noise, epsilon):
        page.interact(page="try")
        page.click("try-change")
    return {
        "Start": itertools.repeat(start.interact),
        "Leak": itertools.repeat(leak.interact),
        "Try": itertools.repeat(try_it.interact),
        "Trade-off": itertools.repeat(tradeoff.interact),
        "Runs": itertools.repeat(runs.interact),
        "Machine": itertools.repeat(machine.interact),
        "noise": field_moves(noise, "try-A-method.noise", NOISES),
        "ε": field_moves(epsilon, "try-A-target-epsilon", EPSILONS),
    }


def slider_reruns(page: Page) -> Reruns:
    """Move the peer's slider one step further each time."""
    return (partial(page.set, value=value) for value in itertools.count(1))


def field_moves(page: Page, field: str, values: Sequence[float]) -> Reruns:
    """Give a field of Try a new value each time: for every new seed, all these values."""
    for seed in itertools.count(1):
        page.set(**{"try-A-seed": seed})
        for value in values:
            yield partial(page.set, **{field: value})


# --- thirty visitors -------------------------------------------------------------------------------------


def measure_class(folder: Path, store: Store) -> tuple[dict[str, Any], dict[str, Any]]:
    """A class on a server in class mode: the time of every answer that a visitor waited for, and all failures.

    Meanwhile one visitor moves the peer's slider. Its times show how busy the machine was.
    """
    with start_peer(folder / "peer") as peer:
        peer_page, _ = peer.first_chart()
        with start_dashboard(folder / "class", folder / "home", LEAKLENS_CLASS="1") as server:
            page, _ = server.first_chart()
            page.interact(page="leak")
            page.wait_for("leak-live")  # the engine is loaded
            start = time.perf_counter()
            cpu_before = server.cpu_s
            peer_reruns = slider_reruns(peer_page)
            visitors, peer_times = run_class(server.port, lambda: next(peer_reruns)())
            cores = (server.cpu_s - cpu_before) / (time.perf_counter() - start)
            failures = [failure for visitor in visitors for failure in visitor.failures]
            failures += unfinished_runs(store, visitors)
    waits = [seconds for visitor in visitors for seconds in visitor.waits]
    row: dict[str, Any] = {
        "visitors s": statistics.median(waits),
        "visitors p95 s": p95(waits),
        "answers": len(waits),
        "runs": 2 * sum(len(visitor.seeds) for visitor in visitors),
        "server cores": cores,
        "failures": len(failures),
    }
    if failures:
        row["the first"] = failures[0]
    return row, {"beside visitors p95 s": p95(peer_times)}
