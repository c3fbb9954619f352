"""A run, round by round. Read this module first.

A run is a generator of events. It opens no file and uses no store: its caller decides what to keep.

    plan             partition the data, draw the first weights     training/plan.py
    for each round:
        train        send, train, merge                             training/rounds.py
        measure      accuracy and loss on the test data             training/evaluate.py
        account      the ε spent so far, in every view              privacy/ledger.py
        record       what the server sees, for attacks              training/exposure.py
        checkpoint   the state from which the run can resume        training/state.py
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from engine.capabilities import HasNoise
from engine.compute.context import Evaluate, Report
from engine.compute.devices import device_fact, refuse_missing, use_full_precision
from engine.compute.threads import ThreadTeam, restore_thread_modes, set_thread_modes
from engine.events import Event, Finished, Kept, Round, Spent, Started, Warned
from engine.privacy.ledger import Ledger
from engine.specs.run import RunSpec
from engine.training.evaluate import accuracy_by_class, measure
from engine.training.exposure import kept_exposure
from engine.training.plan import LoadedPlan, load_plan, misfits, missed_target, parameters
from engine.training.rounds import Exchange, first_state, train_round
from engine.training.state import State, array, read_state

CHECKPOINT_S = 2.0  # least seconds between two checkpoints
CHECKPOINT_SHARE = 10  # writing checkpoints takes at most one part in this many of the time
PROGRESS_S = 0.5  # least seconds between two progress events
STATES = 8  # states recorded between the first and the last round, for probes


def run(
    spec: RunSpec,
    resume: Kept | None = None,
    *,
    threads: int = 1,
    device: str = "cpu",
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """Yield the events of a run, from its start or from the checkpoint `resume`.

    The run calls `stop` after every round. When it returns true, the run leaves a checkpoint and ends.
    """
    started = time.monotonic()
    with torch_settings(device), ThreadTeam(threads) as team:
        plan = load_plan(spec, device)
        if resume is None:
            state = first_state(plan)
            yield from first_events(plan, device)
        else:
            state = read_state(resume.round, resume.payload, plan.world.weights)
            started -= float(resume.facts.get("seconds", 0.0))  # the time of earlier attempts counts, too
            yield from device_warning(resume, device)

        ledger = plan.ledger(state.round)
        checkpoints = Checkpoints(started, device)
        with_exposure = exposure_rounds(plan)
        with_state = state_rounds(plan)

        for round in range(state.round + 1, plan.last_round + 1):
            state = yield from one_round(plan, state, round, ledger, team, record=round in with_exposure)
            if round in with_state:
                yield recorded_state(state)
            stopping = stop()
            yield from checkpoints.when_due(state, now=stopping)
            if stopping:
                return

        yield from budget_warning(plan)
        yield from privacy_spent(plan, ledger, state.round, precise=True)
        yield recorded_state(state)
        yield Finished(state.round, rounded_seconds(time.monotonic() - started))


def run_json(
    spec: Mapping[str, Any], resume: Kept | None = None, *, home: object = None, **options: Any
) -> Iterator[Event]:
    """Run a spec given as JSON. Workers call it; a run does not use `home`."""
    del home
    return run(RunSpec(**spec), resume, **options)


# --- the first events --------------------------------------------------------------------------------------


def first_events(plan: LoadedPlan, device: str = "cpu") -> Iterator[Event]:
    """The numbers that the run uses, its device, its warnings, the partition and the first weights."""
    world = plan.world
    facts = {
        "parameters": parameters(world),
        "sizes": [min(world.sizes), max(world.sizes)],
        "classes": list(plan.spec.dataset.facts().classes),
        "sampling": world.sampling,
        "delta": plan.delta,
        "noise": plan.method.noise_level if isinstance(plan.method, HasNoise) else None,
        "unit": plan.method.unit(),
        "guarantee": {
            "status": plan.guarantee.status,
            "reason": plan.guarantee.reason,
            "absent": dict(plan.guarantee.absent),
        },
        **device_fact(device),
    }
    yield Started(plan.spec.id, plan.spec.canonical(), facts)
    remarks = (*plan.method.remarks(world), *missed_target(plan))
    for problem in (*plan.spec.problems(), *misfits(plan.spec, world), *remarks):
        yield Warned(problem.reason, problem.remedy)
    counts = {name: array(table) for name, table in plan.counts().items()}
    yield Kept("partition", "partition", 0, payload=counts)
    yield recorded_state(first_state(plan))


def device_warning(resume: Kept, device: str) -> Iterator[Warned]:
    """The warning of a run that continues on another device than that of its checkpoint."""
    before = resume.facts.get("device", "cpu")
    now = device_fact(device).get("device", "cpu")
    if before != now:
        yield Warned(
            f"after round {resume.round} the run moved from {before} to {now}",
            "The last digits differ between devices: repeat it on one device where they matter",
        )


# --- one round ---------------------------------------------------------------------------------------------


def one_round(
    plan: LoadedPlan, state: State, round: int, ledger: Ledger, team: ThreadTeam, record: bool
) -> Generator[Event, None, State]:
    """Train, measure and account for one round; return the state after it.

    With `record`, the round also leaves an exposure: what the server sees of one client.
    """
    exchanges: list[Exchange] = []
    reports: list[Report] = []
    watch = partial(keep_first, exchanges) if record else None
    work = partial(train_round, plan, state, round, team, watch=watch, report=reports.append)

    state = yield from with_progress(plan, round, team, work)
    while reports:
        # Each report leaves the list first: it can hold the models of all clients, which are then freed.
        yield event_of_report(reports.pop(0), partial(accuracy_by_class, plan, team))
    yield from measure(plan, state, team)
    ledger.add(plan.method.releases(plan.world, round, plan.cohort(round)))
    yield from privacy_spent(plan, ledger, round)
    for exchange in exchanges:
        yield from kept_exposure(plan, exchange)
    return state


def with_progress(
    plan: LoadedPlan, round: int, team: ThreadTeam, work: Callable[..., State]
) -> Generator[Event, None, State]:
    """Run `work` in another thread, yield its progress as events, and return its state."""
    cohort = len(plan.cohort(round))
    yield Round(round, plan.spec.rounds, cohort)

    steps: queue.SimpleQueue[tuple[float, dict[str, float]] | None] = queue.SimpleQueue()

    def progress(fraction: float, numbers: dict[str, float]) -> None:
        steps.put((fraction, numbers))

    last = time.monotonic()
    future = team.begin(partial(work, progress=progress))
    future.add_done_callback(lambda _: steps.put(None))  # the last entry: it ends the loop
    while True:
        step = steps.get()
        if step is None:
            return future.result()
        if time.monotonic() - last >= PROGRESS_S:
            last = time.monotonic()
            fraction, numbers = step
            yield Round(round, plan.spec.rounds, cohort, fraction, numbers)


def event_of_report(report: Report, evaluate: Evaluate) -> Event:
    """The event of a report. Some reports need the test accuracy of models before they are complete.

    This happens after the round, so a method can never train on test data.
    """
    return report if isinstance(report, Event) else report(evaluate)


def keep_first(exchanges: list[Exchange], exchange: Exchange) -> None:
    """Keep only the first exchange that has uploads: each one holds the uploads of the whole cohort."""
    if not exchanges and exchange.uploads:
        exchanges.append(exchange)


# --- privacy -----------------------------------------------------------------------------------------------


def privacy_spent(plan: LoadedPlan, ledger: Ledger, round: int, precise: bool = False) -> Iterator[Spent]:
    """The ε spent so far in every view.

    A method with a guarantee reports it after every round, a method without one only at the end (`precise`).
    """
    if plan.method.unit() is None and not precise:
        return
    for answer in plan.answers(ledger, precise):
        yield Spent.of(round, answer)


def budget_warning(plan: LoadedPlan) -> Iterator[Warned]:
    """A warning where the privacy budget ended the run early."""
    spec, last = plan.spec, plan.last_round
    if spec.budget is not None and last < spec.rounds:
        budget = f"the budget ε = {spec.budget:g} in the {spec.view} view"
        remedy = "More noise, fewer rounds or a larger budget go further"
        yield Warned(f"stopped after round {last}: the next one would exceed {budget}", remedy, last + 1)


# --- what a run records ------------------------------------------------------------------------------------


def exposure_rounds(plan: LoadedPlan) -> tuple[int, ...]:
    """The rounds that leave an exposure: the first and the last one in which any client takes part."""
    rounds = [round for round in range(1, plan.last_round + 1) if plan.cohort(round)]
    return (rounds[0], rounds[-1]) if rounds else ()


def state_rounds(plan: LoadedPlan) -> frozenset[int]:
    """The rounds that leave their state for probes: the one before the last, and a few between.

    The last landmark of the method is one of them. A run records its first and last state apart from these.
    """
    last = plan.last_round
    spread = {round(last * part / (STATES + 1)) for part in range(1, STATES + 1)}
    landmarks = sorted(mark for mark in plan.method.landmarks(plan.world) if mark < last)
    return frozenset((spread | {last - 1} | set(landmarks[-1:])) - {0, last})


def recorded_state(state: State) -> Kept:
    return Kept("state", f"state-{state.round}", state.round, payload=state.payload())


class Checkpoints:
    """Decides when a checkpoint is due: at most every two seconds, and at most a tenth of the time.

    The time of a checkpoint includes what the caller does with it, such as writing it to disk.
    """

    def __init__(self, started: float, device: str = "cpu") -> None:
        self.started = started
        self.device = device_fact(device)
        self.due = time.monotonic() + CHECKPOINT_S

    def when_due(self, state: State, now: bool) -> Iterator[Kept]:
        """A checkpoint of this state, if one is due or needed `now`."""
        before = time.monotonic()
        if before < self.due and not now:
            return
        facts = {"seconds": rounded_seconds(before - self.started), **self.device}
        yield Kept("checkpoint", f"checkpoint-{state.round}", state.round, facts, state.payload())
        after = time.monotonic()
        self.due = after + max(CHECKPOINT_S, CHECKPOINT_SHARE * (after - before))


# --- the machine -------------------------------------------------------------------------------------------


@contextmanager
def torch_settings(device: str) -> Iterator[None]:
    """Use one intra-op thread and no denormals during a run, then restore the settings."""
    refuse_missing(device)
    use_full_precision(device)
    threads = torch.get_num_threads()
    set_thread_modes()
    try:
        yield
    finally:
        restore_thread_modes(threads)


def rounded_seconds(seconds: float) -> float:
    return round(seconds, 3)
