"""What a form shows before the click: ε per view, the promise, what stands in the way, the time, the cliff's place."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.compute import weights
from engine.compute.sgd import STACK
from engine.errors import LeakLensError
from engine.models import Model
from engine.part import Problem
from engine.privacy.ledger import LedgerEpsilon
from engine.records import Guarantee, Seat
from engine.specs.run import RunSpec
from engine.training.plan import Plan, make_plan
from engine.training.rounds import WAVE
from engine.training.timing import seconds

MEMINFO = Path("/proc/meminfo")
TESTED = 75  # pictures whose layers a thread holds while it tests: of a hundred, what is not yet let go
PROCESS = 0.3e9  # bytes of Python with torch, before anything is asked of it
REGION = (0.1, 1.0)  # noise-to-signal: below it pictures come back, above it nothing measured here did


@dataclass(frozen=True)
class ExpectedCliff:
    """Where attacks are expected to stop working, told as noise over signal of one upload."""

    ratio: float | None  # of this question, where a clip bounds the signal
    parameters: int
    noise_from: float  # the noise multipliers at the two ends of the region, where one clip binds the whole update
    noise_to: float
    region: tuple[float, float] = REGION


@dataclass(frozen=True)
class Forecast:
    """Everything that is known about a question before it is run."""

    id: str
    answers: tuple[LedgerEpsilon, ...] = ()
    guarantee: Guarantee | None = None
    problems: tuple[Problem, ...] = ()
    seconds: float | None = None
    noise: float | None = None  # in force; for a target ε solved, and but for a precise forecast by Rényi alone
    delta: float | None = None
    cliff: ExpectedCliff | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def fatal(self) -> bool:
        return any(problem.fatal for problem in self.problems)


def forecast(spec: RunSpec, *, precise: bool = False, threads: int = 1) -> Forecast:
    """ε of the whole run without running it: the schedule of clients is known from the seed, so this is no estimate."""
    try:
        plan = make_plan(spec, precise)
    except LeakLensError as error:
        others = tuple(problem for problem in spec.problems() if problem.reason != error.message)
        return Forecast(spec.id, problems=(Problem(error.message, error.remedy), *others))
    return Forecast(
        spec.id,
        plan.answers(plan.ledger(plan.last), precise),
        plan.guarantee,
        (
            *spec.problems(),
            *plan.method.remarks(plan.world),
            *_stops_early(plan),
            *_too_large(plan, threads),
        ),
        seconds(plan, threads),
        getattr(plan.method, "noise", None),
        plan.delta,
        cliff(plan),
        {
            "sizes": [min(plan.world.sizes), max(plan.world.sizes)],
            "parameters": weights.count(plan.world.weights),
        },
    )


def _stops_early(plan: Plan) -> tuple[Problem, ...]:
    spec, last = plan.spec, plan.last
    if spec.budget is None or last == spec.rounds:
        return ()
    what = f"the budget ε = {spec.budget:g} in the {spec.view} view"
    reason = f"{what} does not last for all {spec.rounds} rounds: the run will stop after round {last}"
    return (Problem(reason, "More noise, fewer rounds or a larger budget go further", fatal=False),)


def _too_large(plan: Plan, threads: int) -> tuple[Problem, ...]:
    need, free = memory(plan, threads), free_memory()
    if free is None or need <= free:
        return ()
    reason = f"the run needs about {need / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free on this machine"
    return (Problem(reason, "Take fewer clients a round or a smaller model", fatal=False),)


def memory(plan: Plan, threads: int) -> float:
    """Bytes at the peak, roughly: what a method keeps for its clients is not in it, since that goes to disk."""
    spec, world = plan.spec, plan.world
    spread = 3 * math.sqrt(world.sampled) if world.sampling == "poisson" else 0
    cohort = min(world.clients, world.sampled + spread)
    # an upload of each client, two copies of a wave, what each thread trains on, and the server's own
    copies = cohort + 2 * min(cohort, WAVE) + threads * (3 * STACK if world.stacked else 4) + 8
    batch = min(spec.batch, max(world.sizes))
    layers = threads * max(2 * batch, TESTED) * activations(spec.model, world.shape, world.classes)
    pictures = 2.25 * (len(plan.labels) + len(plan.test_labels)) * math.prod(world.shape)  # as read, and as dealt
    return PROCESS + 4 * (copies * weights.count(world.weights) + layers + pictures)


@cache
def activations(model: Model, shape: tuple[int, ...], classes: int) -> int:
    """How many numbers the layers put out for one input."""
    module, many = model.build(shape, classes, torch.Generator()).eval(), list[int]()
    for layer in module.modules():
        if not list(layer.children()):
            layer.register_forward_hook(lambda layer, inputs, output: many.append(_first(output).numel()))
    with torch.no_grad():
        module(model.example(shape, 1, torch.Generator()))
    return sum(many)


def _first(output: Tensor | tuple[Tensor, ...]) -> Tensor:
    """What a layer puts out; a recurrent one adds the state it ends in."""
    return output if isinstance(output, Tensor) else output[0]


def free_memory() -> float | None:
    """Bytes that a new process may take; None where the system does not tell."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", MEMINFO.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def cliff(plan: Plan) -> ExpectedCliff:
    """Noise over signal of one upload as the server sees it, in the first round that anybody takes part in."""
    many = weights.count(plan.world.weights)
    cohort = next((found for round in range(1, plan.spec.rounds + 1) if (found := plan.cohort(round))), (0,))
    seat = Seat(cohort[0], 0, 1, 1, 1, len(cohort))
    told = plan.method.protocol(plan.world, seat, "server")
    ratio = None
    if told.bound is not None:
        # a whole update is at most C long; DP-SGD moves at most lr · C at each step
        signal = told.bound if told.clip == "whole-update" else told.local.lr * told.bound * told.steps
        ratio = told.std * math.sqrt(many) / signal
    return ExpectedCliff(ratio, many, REGION[0] / math.sqrt(many), REGION[1] / math.sqrt(many))
