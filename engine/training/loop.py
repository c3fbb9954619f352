"""A run, round by round: the page to read first.

    plan      the data is dealt to clients, the first weights are drawn        (plan.py)
    round      send, train, merge                                               (rounds.py)
    measure    how well the model does now
    spend      what the round cost, in every view                               (privacy/)
    keep       checkpoints, and what the server saw                             (exposing.py)

`run` opens no file and knows no store: it says events, and whoever listens writes them down.
"""

from __future__ import annotations

import queue
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from engine.compute.context import Evaluate, Report
from engine.compute.threads import ThreadTeam, restore_thread_modes, set_thread_modes
from engine.errors import refusal
from engine.events import Event, Finished, Kept, Round, Spent, Started, Warned
from engine.privacy.ledger import Ledger, LedgerEpsilon
from engine.specs.run import RunSpec
from engine.training.evaluate import judge, measure
from engine.training.exposure import kept_exposure
from engine.training.plan import LoadedPlan, load_plan, parameters
from engine.training.rounds import Exchange, opening, play
from engine.training.state import State, array, restored

CHECKPOINT_S = 2.0  # at most this often
SHARE = 10  # and never more than one part in so many of the time
NOTE_S = 0.5
STATES = 8  # kept between the first and the last round, for probes


def run(
    spec: RunSpec,
    resume: Kept | None = None,
    *,
    threads: int = 1,
    device: str = "cpu",
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """Everything a run says, from its first event or a checkpoint to its end; asked to stop, it leaves a checkpoint."""
    began = time.monotonic()
    with quiet_torch(device), ThreadTeam(threads) as team:
        plan = load_plan(spec, device)
        state = opening(plan) if resume is None else restored(resume.round, resume.payload, plan.world.weights)
        ledger = plan.ledger(state.round)
        began -= float(resume.facts.get("seconds", 0.0)) if resume else 0.0
        if resume is None:
            yield from introduce(plan)
        safe, recorded, states = Checkpoints(began), recorded_rounds(plan), kept_rounds(plan)
        for round in range(state.round + 1, plan.last + 1):
            cohort, seen, reports = plan.cohort(round), list[Exchange](), list[Report]()
            yield Round(round, spec.rounds, len(cohort))
            watch = partial(first, seen) if round in recorded else None
            work = partial(play, plan, state, round, team, watch=watch, report=reports.append)
            state = yield from listen(round, spec.rounds, len(cohort), team, work)
            while reports:
                yield heard(reports.pop(0), partial(judge, plan, team))
            yield from measure(plan, state, team)
            ledger.add(plan.method.releases(plan.world, round, cohort))
            yield from spend(plan, ledger, round)
            if seen:
                yield from kept_exposure(plan, seen[0])
            if round in states:
                yield Kept("state", f"state-{round}", round, payload=state.payload())
            stopping = stop()
            yield from safe.when_due(state, now=stopping)
            if stopping:
                return
        yield from out_of_budget(plan)
        yield from spend(plan, ledger, state.round, precise=True)
        yield Kept("state", f"state-{state.round}", state.round, payload=state.payload())
        yield Finished(state.round, round_s(time.monotonic() - began))


def run_json(
    spec: Mapping[str, Any], resume: Kept | None = None, *, home: object = None, **how: Any
) -> Iterator[Event]:
    """The same from a spec as JSON: what a worker calls; a run needs nothing of the home."""
    del home
    return run(RunSpec(**spec), resume, **how)


def introduce(plan: LoadedPlan) -> Iterator[Event]:
    """What was asked, what it comes to, and what the asker should know."""
    world = plan.world
    facts = {
        "parameters": parameters(world),
        "sizes": [min(world.sizes), max(world.sizes)],
        "classes": list(plan.spec.dataset.facts().classes),
        "sampling": world.sampling,
        "delta": plan.delta,
        "noise": getattr(plan.method, "noise", None),
        "unit": plan.method.unit(),
        "guarantee": {
            "status": plan.guarantee.status,
            "reason": plan.guarantee.reason,
            "absent": dict(plan.guarantee.absent),
        },
    }
    yield Started(plan.spec.id, plan.spec.canonical(), facts)
    for problem in (*plan.spec.problems(), *plan.method.remarks(world)):
        yield Warned(problem.reason, problem.remedy)
    counts = {name: array(counts) for name, counts in plan.counts().items()}
    yield Kept("partition", "partition", 0, payload=counts)
    yield Kept("state", "state-0", 0, payload=opening(plan).payload())


def listen(
    round: int, of: int, cohort: int, team: ThreadTeam, work: Callable[..., State]
) -> Generator[Event, None, State]:
    """Let the round be played beside us, and say how far it is now and then."""
    told: queue.SimpleQueue[tuple[float, dict[str, float]] | None] = queue.SimpleQueue()
    last = time.monotonic()
    done = team.begin(partial(work, note=lambda fraction, numbers: told.put((fraction, numbers))))
    done.add_done_callback(lambda _: told.put(None))
    while (note := told.get()) is not None:
        if time.monotonic() - last >= NOTE_S:
            last = time.monotonic()
            yield Round(round, of, cohort, note[0], note[1])
    return done.result()


def heard(said: Report, judge: Evaluate) -> Event:
    """What was said during a round; what needs a judge is let go when it has met one, with all the models it held."""
    return said if isinstance(said, Event) else said(judge)


def spend(plan: LoadedPlan, ledger: Ledger, round: int, precise: bool = False) -> Iterator[Spent]:
    """What has been spent by now: every round where something is promised, else once at the end."""
    if plan.method.unit() is None and not precise:
        return
    for answer in plan.answers(ledger, precise):
        yield spent(round, answer)


def spent(round: int, answer: LedgerEpsilon) -> Spent:
    return Spent(
        round, answer.view, answer.epsilon, answer.unit, answer.adjacency, answer.delta, answer.accountant,
        answer.sampling, answer.bound, answer.reason, answer.worst, answer.quantiles,
    )  # fmt: skip


def out_of_budget(plan: LoadedPlan) -> Iterator[Warned]:
    spec, last = plan.spec, plan.last
    if spec.budget is not None and last < spec.rounds:
        budget = f"the budget ε = {spec.budget:g} in the {spec.view} view"
        remedy = "More noise, fewer rounds or a larger budget go further"
        yield Warned(f"stopped after round {last}: the next one would exceed {budget}", remedy, last + 1)


def first(seen: list[Exchange], exchange: Exchange) -> None:
    """Keep the first exchange of a round alone: each holds every upload."""
    if not seen and exchange.uploads:
        seen.append(exchange)


def recorded_rounds(plan: LoadedPlan) -> tuple[int, ...]:
    """The first and the last round with anybody in it: there the first client's upload is kept as the server saw it."""
    rounds = range(1, plan.last + 1)
    there = [round for round in rounds if plan.cohort(round)]
    return (there[0], there[-1]) if there else ()


def kept_rounds(plan: LoadedPlan) -> frozenset[int]:
    """Rounds after which the state is kept for probes: before the last one, and a few in between."""
    last = plan.last
    between = {round(last * part / (STATES + 1)) for part in range(1, STATES + 1)}
    marks = sorted(mark for mark in plan.method.landmarks(plan.world) if mark < last)
    return frozenset((between | {last - 1} | set(marks[-1:])) - {0, last})


class Checkpoints:
    """A checkpoint at most every two seconds, and never more than a tenth of the time."""

    def __init__(self, began: float) -> None:
        self.began, self.due = began, time.monotonic() + CHECKPOINT_S

    def when_due(self, state: State, now: bool) -> Iterator[Kept]:
        if (before := time.monotonic()) < self.due and not now:
            return
        facts = {"seconds": round_s(before - self.began)}
        yield Kept("checkpoint", f"checkpoint-{state.round}", state.round, facts, state.payload())
        after = time.monotonic()
        self.due = after + max(CHECKPOINT_S, SHARE * (after - before))


@contextmanager
def quiet_torch(device: str) -> Iterator[None]:
    """One intra-op thread and no denormals while a run lasts; what was set before comes back."""
    if device != "cpu" and not found_cuda(device):
        raise refusal("run: device", "must be cpu, or cuda where a GPU is found", device, "Leave --device out")
    threads = torch.get_num_threads()
    set_thread_modes()
    try:
        yield
    finally:
        restore_thread_modes(threads)


def found_cuda(device: str) -> bool:
    named = re.fullmatch(r"cuda(?::(\d+))?", device)
    return named is not None and int(named[1] or 0) < torch.cuda.device_count()


def round_s(seconds: float) -> float:
    return round(seconds, 3)
