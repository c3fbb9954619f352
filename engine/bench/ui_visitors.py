"""A class of visitors, each on a page of its own: they move the slider, open runs, and now and then ask a small one."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.bench.ui_server import Page
from engine.errors import RunFailed
from engine.jobs.store import Store

MANY, EVERY_S, TURNS = 30, 5.0, 6
POLL_S = 0.5  # a page on which something runs looks again by itself, as in a browser
SMALL = {"w:rounds": 5}  # of the first example's question
FIRST_SEED = 10_000  # of what they ask: nobody asked that before
END_S = 60.0  # at most, for the last small runs
DEEDS = ("slide", "open", "slide", "ask", "slide", "open", "slide", "slide", "open", "slide")


@dataclass
class BenchVisitor:
    """One of the class; what it did and how long each answer took."""

    number: int
    port: int
    took: list[float] = field(default_factory=list)
    looked: list[float] = field(default_factory=list)  # polls, which nobody waits for
    failures: list[str] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)  # seeds

    def visit(self, begin: float, many: int, turns: int) -> None:
        """One deed every few seconds, each visitor at a moment of its own."""
        chance = random.Random(self.number)
        try:
            self._until(begin + EVERY_S * self.number / many)
            start = time.perf_counter()
            page = Page(self.port)
            self.took.append(time.perf_counter() - start)
            for turn in range(1, turns):
                self._until(begin + EVERY_S * (turn + self.number / many), page)
                deed: Callable[[Page, random.Random], None]
                deed = getattr(self, f"_{DEEDS[(self.number + turn) % len(DEEDS)]}")
                deed(page, chance)
        except (RunFailed, OSError) as error:
            self.failures.append(str(error))

    def _until(self, moment: float, page: Page | None = None) -> None:
        while page and "cancel" in page.keys and time.perf_counter() + POLL_S < moment:
            time.sleep(POLL_S)
            self.looked.append(page.set(partition=False))  # a widget of what is drawn again: only that is
        time.sleep(max(0.0, moment - time.perf_counter()))

    def _slide(self, page: Page, chance: random.Random) -> None:
        """Any slider of the form; a question without one is left for an example with one."""
        self._at_home(page)
        sliders = [key for key in page.keys if key.endswith(":slider")]
        if not sliders:
            self._example(page)
            return
        self.took.append(page.set(**{sliders[0]: chance.choice(page.options(sliders[0]))}))

    def _open(self, page: Page, chance: random.Random) -> None:
        self.took.append(page.ask(page="runs"))
        self.took.append(page.click(chance.choice([key for key in page.keys if key.startswith("open:")])))

    def _ask(self, page: Page, chance: random.Random) -> None:
        """The first example's question with few rounds and a seed of its own, and the same without protection."""
        del chance
        self._at_home(page)
        self._example(page)
        self.asked.append(FIRST_SEED + MANY * len(self.asked) + self.number)
        self.took.append(page.set(**SMALL, **{"w:seed": self.asked[-1]}))
        self.took.append(page.click("run"))

    def _example(self, page: Page) -> None:
        self.took.append(page.click(next(key for key in page.keys if key.startswith("example-"))))

    def _at_home(self, page: Page) -> None:
        if "run" not in page.keys:
            self.took.append(page.ask(page="lab"))


def lesson(
    port: int, beside: Callable[[], float], many: int = MANY, turns: int = TURNS
) -> tuple[list[BenchVisitor], list[float]]:
    """The whole class, one thread each; and, while it lasts, what `beside` tells each second."""
    visitors, told = [BenchVisitor(number, port) for number in range(many)], list[float]()
    begin = time.perf_counter() + 0.1
    threads = [threading.Thread(target=one.visit, args=(begin, many, turns)) for one in visitors]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        told.append(beside())
        threads[-1].join(1.0)
    for thread in threads:
        thread.join()
    return visitors, told


def unfinished(store: Store, visitors: Sequence[BenchVisitor]) -> list[str]:
    """What is wrong with the runs they asked, each with its twin; the last ones are waited for."""
    seeds, last = {seed for one in visitors for seed in one.asked}, time.perf_counter() + END_S
    while True:
        runs = [run for run in store.runs() if run.spec.get("seed") in seeds]
        if time.perf_counter() > last or all(run.status not in ("queued", "running") for run in runs):
            missing = 2 * len(seeds) - len(runs)
            wrong = [f"run {run.id} is {run.status}" for run in runs if run.status != "finished"]
            return wrong + ["a run was never asked"] * missing
        time.sleep(0.1)
