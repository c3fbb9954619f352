"""A class of visitors, each with its own page. They move sliders, open runs, and sometimes submit a small run."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.bench.ui_server import Page
from engine.errors import RunFailed
from engine.jobs.store import Store

VISITORS = 30
EVERY_S = 5.0
ACTIONS = 6
POLL_S = 0.5  # a page with a running run polls by itself, as in a browser
SMALL = {"try-A-rounds": 5}
NOISES = (0.1, 0.3, 0.5, 1.0, 3.0, 4.0)
FIRST_SEED = 10_000  # of the submitted runs: no stored run has these seeds
END_S = 60.0  # at most, for the last small runs
ORDER = ("slide", "open", "slide", "submit", "slide", "open", "slide", "slide", "open", "slide")

Action = Callable[[Page, random.Random], None]


@dataclass
class BenchVisitor:
    """One visitor of the class, with the seconds of each answer."""

    number: int
    port: int
    waits: list[float] = field(default_factory=list)
    polls: list[float] = field(default_factory=list)  # no visitor waits for these
    failures: list[str] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)  # of the submitted runs

    def visit(self, begin: float, visitors: int, actions: int) -> None:
        """One action every few seconds. Each visitor has its own offset."""
        rng = random.Random(self.number)
        by_name: dict[str, Action] = {"slide": self._slide, "open": self._open, "submit": self._submit}
        try:
            self._wait_until(begin + EVERY_S * self.number / visitors)
            start = time.perf_counter()
            page = Page(self.port)
            self.waits.append(time.perf_counter() - start)
            for number in range(1, actions):
                self._wait_until(begin + EVERY_S * (number + self.number / visitors), page)
                name = ORDER[(self.number + number) % len(ORDER)]
                by_name[name](page, rng)
        except (RunFailed, OSError) as error:
            self.failures.append(str(error))

    def _wait_until(self, moment: float, page: Page | None = None) -> None:
        while page and "try-cancel" in page.keys and time.perf_counter() + POLL_S < moment:
            time.sleep(POLL_S)
            self.polls.append(page.set(**{"try-closer": None}))  # a widget of the fragment, so only the fragment reruns
        time.sleep(max(0.0, moment - time.perf_counter()))

    def _slide(self, page: Page, rng: random.Random) -> None:
        """Give the run another noise."""
        self._open_try(page)
        self.waits.append(page.set(**{"try-A-method.noise": rng.choice(NOISES)}))

    def _open(self, page: Page, rng: random.Random) -> None:
        self.waits.append(page.interact(page="runs"))
        runs = [key for key in page.keys if key.startswith("open:")]
        self.waits.append(page.click(rng.choice(runs)))

    def _submit(self, page: Page, rng: random.Random) -> None:
        """Submit a run of few rounds with a new seed, together with its baseline and the attacks on both."""
        del rng
        self._open_try(page)
        seed = FIRST_SEED + VISITORS * len(self.seeds) + self.number
        self.seeds.append(seed)
        self.waits.append(page.set(**SMALL, **{"try-A-seed": seed}))
        self.waits.append(page.click("try-run"))

    def _open_try(self, page: Page) -> None:
        """Open Try with its default method, and show its fields."""
        if "try-A-method.noise" not in page.keys:
            self.waits.append(
                page.interact(page="try", query_params={"method": ["udp-fedavg"], "attacks": ["analytic"]})
            )
            page.wait_for("try-change")
        if "try-A-method.noise" not in page.keys:
            self.waits.append(page.click("try-change"))


def run_class(
    port: int, each_second: Callable[[], float], count: int = VISITORS, actions: int = ACTIONS
) -> tuple[list[BenchVisitor], list[float]]:
    """The whole class, one thread per visitor. Meanwhile `each_second` is called once a second."""
    visitors = [BenchVisitor(number, port) for number in range(count)]
    values: list[float] = []
    begin = time.perf_counter() + 0.1
    threads = [threading.Thread(target=visitor.visit, args=(begin, count, actions)) for visitor in visitors]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        values.append(each_second())
        threads[-1].join(1.0)
    for thread in threads:
        thread.join()
    return visitors, values


def unfinished_runs(store: Store, visitors: Sequence[BenchVisitor]) -> list[str]:
    """Submitted runs and baselines that did not finish, as sentences. Waits for the last ones."""
    seeds = {seed for visitor in visitors for seed in visitor.seeds}
    deadline = time.perf_counter() + END_S
    while True:
        runs = [run for run in store.runs() if run.spec.get("seed") in seeds]
        ended = all(run.status not in ("queued", "running") for run in runs)
        if ended or time.perf_counter() > deadline:
            missing = 2 * len(seeds) - len(runs)
            problems = [f"run {run.id} is {run.status}" for run in runs if run.status != "finished"]
            return problems + ["a run was never submitted"] * missing
        time.sleep(0.1)
