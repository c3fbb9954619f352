"""The dashboard under one visitor and under thirty, over HTTP (Linux). The peer is a bare page with one chart."""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from engine.bench import BenchRow
from engine.bench.clock import Race
from engine.bench.ui_server import BenchServer, Page, bare, dashboard
from engine.bench.ui_visitors import MANY, lesson, unfinished
from engine.events import Started
from engine.examples.files import example, examples
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store
from engine.specs.run import RunSpec

STORED = 200  # runs
STARTS = 3
BLOCKS = 10  # in each of which every kind of rerun has its turn
RERUNS = {"Leak": 10, "Lab": 10, "Runs": 10, "Machine": 10, "noise": 10}  # of a block: 50
LAST = {"ε": 5}  # comes after them: what its accountant sets free leaves a large gap in memory
WARM = 2  # blocks that are not counted
PROMISES = {
    "first chart s": 3.0,
    **{f"{screen} p95 ms": 250.0 for screen in ("Leak", "Lab", "Runs", "Machine")},
    **{f"{slider} p95 ms": 150.0 for slider in ("noise", "ε")},
    "growth MB": 20.0,
    "visitors p95 s": 1.5,
    "failures": 0,
}
SAID = (
    "first chart in 3 s; p95 of a screen 250 ms and of a slider 150 ms; 500 reruns grow by 20 MB; "
    f"{MANY} visitors p95 1.5 s, none fails"
)

Deeds = Iterator[Callable[[], float]]  # each one rerun, which tells its seconds


@dataclass
class Times:
    """Seconds of the reruns of one kind, and the seconds of processor time that the server took for all of them."""

    server: BenchServer
    wall: list[float] = field(default_factory=list)
    cpu: float = 0.0

    def take(self, deeds: Sequence[Callable[[], float]]) -> None:
        before = self.server.cpu_s
        self.wall += [deed() for deed in deeds]
        self.cpu += self.server.cpu_s - before

    def told(self, name: str) -> dict[str, float]:
        found = {"": statistics.median(self.wall), "p95 ": p95(self.wall), "cpu ": self.cpu / len(self.wall)}
        return {f"{name} {what}ms".strip(): 1000 * seconds for what, seconds in found.items()}


def measure() -> BenchRow:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        store, ids = stored(folder / "home", STORED)
        ours, peer, ratio = alone(folder, ids)
        class_of_ours, beside = together(folder, store)
        store.close()
    ours, peer = {**ours, **class_of_ours}, {**peer, **beside}
    broken = [one for one, most in PROMISES.items() if ours[one] > most]
    promise = f"{SAID}; broken: {', '.join(broken)}" if broken else SAID
    return BenchRow("ui", ours, peer, ratio, promise, not broken)


def p95(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=20, method="inclusive")[-1]


# --- a home that was used --------------------------------------------------------------------------------


def stored(home: Path, many: int) -> tuple[Store, list[str]]:
    """A store with finished runs: what the examples told, under the names of the same questions with other seeds."""
    store, ids = Store(home), []
    shown = [one for run in examples() for one in (run, example(run.twin)) if one]
    for seed, one in zip(range(1, many + 1), itertools.cycle(shown), strict=False):
        begun = one.events[0]
        assert isinstance(begun, Started)
        spec = RunSpec(**{**{key: value for key, value in one.spec.items() if key != "format"}, "seed": seed})
        store.submit(spec.id, spec.canonical())
        lease = store.take(ProcessId.me(), 1)
        assert lease and lease.run == spec.id
        store.append(lease, [replace(begun, run=spec.id, spec=spec.canonical()), *one.events[1:]])
        ids.append(spec.id)
    return store, ids


# --- one visitor -----------------------------------------------------------------------------------------


def alone(folder: Path, ids: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any], float]:
    """Cold starts in turn with the peer's, and reruns of every kind on the servers that were started last."""
    ours, peers = list[float](), list[float]()
    with ExitStack() as running:
        for _ in range(STARTS):
            running.close()
            plain = running.enter_context(bare(folder / "peer"))
            other, seconds = plain.first_chart()
            peers.append(seconds)
            server = running.enter_context(dashboard(folder / "ours", folder / "home"))
            page, seconds = server.first_chart()
            ours.append(seconds)
        page.ask(page="lab")
        page.wait_for("run")
        form = time.perf_counter() - server.began
        page.ask(page="machine")
        page.wait_for("look")  # the doctor has looked, and does not disturb
        deeds, others = deeds_of(server.port, ids), turned(other)
        found, sizes = reruns(server, plain, deeds, others, RERUNS)
        last, after = reruns(server, plain, deeds, others, LAST)
    told = {"first chart s": statistics.median(ours), "first chart worst s": max(ours), "form s": form}
    for name, times in {**found, **last}.items():
        told |= times.told(name) if name != "peer" else {}
    ratio = Race(tuple(found["Lab"].wall), tuple(found["peer"].wall)).ratio
    return (
        {**told, "growth MB": growth(sizes), "ε keeps MB": min(after) - max(sizes)},
        {"first chart s": statistics.median(peers), **found["peer"].told("")},
        ratio,
    )


def reruns(
    server: BenchServer, plain: BenchServer, deeds: Mapping[str, Deeds], others: Deeds, kinds: Mapping[str, int]
) -> tuple[dict[str, Times], list[float]]:
    """The times of every kind, and the MB of the server after each turn."""
    found, sizes = dict[str, Times](), list[float]()
    for block in range(WARM + BLOCKS):
        if block == WARM:
            found, sizes = {}, []
        for name, many in kinds.items():
            found.setdefault(name, Times(server)).take(list(itertools.islice(deeds[name], many)))
            if name == "Lab":
                found.setdefault("peer", Times(plain)).take(list(itertools.islice(others, many)))
            sizes.append(server.memory_mb)
    return found, sizes


def growth(sizes: Sequence[float]) -> float:
    """Twice what lies between the floors of the two halves: freed memory comes and goes, a leak lifts the floor."""
    half = len(sizes) // 2
    return 2 * (min(sizes[half:]) - min(sizes[:half]))


def deeds_of(port: int, ids: Sequence[str]) -> dict[str, Deeds]:
    """What makes each kind of rerun, without end; each kind on a page of its own."""
    leak, lab, runs, machine, noise, epsilon = (Page(port) for _ in (*RERUNS, *LAST))
    lab.ask(page="lab", query_params={"run": [ids[0]], "twin": [ids[1]]})
    runs.ask(page="runs")
    machine.ask(page="machine")
    noise.ask(page="lab")
    epsilon.ask(page="lab")
    epsilon.set(**{"w:protect": "by ε"})
    again = {
        name: itertools.repeat(page.ask)
        for name, page in (("Leak", leak), ("Lab", lab), ("Runs", runs), ("Machine", machine))
    }
    return {**again, "noise": moves(noise, "w:method.noise:slider"), "ε": moves(epsilon, "w:target-epsilon:slider")}


def turned(page: Page) -> Deeds:
    """The peer's slider, one step further each time."""
    return (partial(page.set, value=value) for value in itertools.count(1))


def moves(page: Page, slider: str) -> Deeds:
    """Moves of a slider to where it has not been: at each new seed, all its stops."""
    for seed in itertools.count(1):
        page.set(**{"w:seed": seed})
        for stop in page.options(slider):
            yield partial(page.set, **{slider: stop})


# --- thirty ----------------------------------------------------------------------------------------------


def together(folder: Path, store: Store) -> tuple[dict[str, Any], dict[str, Any]]:
    """A class on a server in class mode: all answers that a visitor waited for, and what went wrong.

    One visitor of the peer acts meanwhile: how long that takes tells how busy the machine was.
    """
    with bare(folder / "peer") as plain:
        other, _ = plain.first_chart()
        with dashboard(folder / "class", folder / "home", LEAKLENS_CLASS="1") as server:
            page, _ = server.first_chart()
            page.wait_for("leak-live")
            start, before = time.perf_counter(), server.cpu_s
            moves_beside = turned(other)
            visitors, beside = lesson(server.port, lambda: next(moves_beside)())
            cores = (server.cpu_s - before) / (time.perf_counter() - start)
            failures = [said for one in visitors for said in one.failures] + unfinished(store, visitors)
    took = [seconds for one in visitors for seconds in one.took]
    found = {
        "visitors s": statistics.median(took),
        "visitors p95 s": p95(took),
        "answers": len(took),
        "runs": 2 * sum(len(one.asked) for one in visitors),
        "server cores": cores,
        "failures": len(failures),
    }
    return found | ({"the first": failures[0]} if failures else {}), {"beside visitors p95 s": p95(beside)}
