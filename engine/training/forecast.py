"""The forecast of a run: ε per view, guarantee, problems, time, memory, and the noise at which attacks should fail."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from engine.capabilities import HasNoise
from engine.compute import weights
from engine.compute.sgd import STACK
from engine.epsilon import Epsilon, shown_noise
from engine.errors import BadInput, LeakLensError
from engine.models import Model
from engine.part import Problem
from engine.records import Guarantee, Seat, View
from engine.specs.run import RunSpec
from engine.training.plan import Plan, make_plan, misfits, missed_target, noise_search
from engine.training.rounds import WAVE
from engine.training.timing import seconds

MEMINFO = Path("/proc/meminfo")
TESTED = 75  # pictures whose layer outputs a thread holds while it tests: it tests 100 at a time, and frees some early
PROCESS = 0.3e9  # bytes of a Python process that has only imported torch


@dataclass(frozen=True)
class ExpectedCliff:
    """Where attacks are expected to stop working, in units of noise over signal of one upload."""

    ratio: float | None  # of this run; None: no clip bounds the signal
    parameters: int
    pixels: int  # numbers in the pictures of the upload
    region: tuple[float, float]  # below it pictures are expected to come back, above it not

    @property
    def noise_from(self) -> float:
        """The noise multiplier at the start of the region, if one clip binds the whole update."""
        return self.region[0] / math.sqrt(self.parameters)

    @property
    def noise_to(self) -> float:
        """The noise multiplier at its end."""
        return self.region[1] / math.sqrt(self.parameters)

    def with_pictures(self, count: int) -> ExpectedCliff:
        """The same for an upload of this many pictures, where this one is of a single picture."""
        low, high = (end / math.sqrt(count) for end in self.region)
        return replace(self, pixels=count * self.pixels, region=(low, high))


@dataclass(frozen=True)
class Forecast:
    """Everything that can be computed about a run before it starts."""

    id: str
    answers: tuple[Epsilon, ...] = ()
    guarantee: Guarantee | None = None
    problems: tuple[Problem, ...] = ()
    seconds: float | None = None
    noise: float | None = None  # that the run uses; solved for a target ε (by Rényi alone, unless `precise`)
    delta: float | None = None
    cliff: ExpectedCliff | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def fatal(self) -> bool:
        return any(problem.fatal for problem in self.problems)


def forecast(spec: RunSpec, *, precise: bool = False, threads: int = 1, timed: bool = True) -> Forecast:
    """The forecast of this run. Its ε is no estimate: the seed decides which clients take part in each round.

    With a target ε, the noise is found by Rényi alone and is a little larger than that of the run; ε follows from it.
    `precise` gives the noise and the ε of the run, and takes ten times as long. Without `timed`, no step is tried out
    to estimate the time, which takes most of a forecast.
    """
    try:
        plan = make_plan(spec, precise)
    except LeakLensError as error:
        others = tuple(problem for problem in spec.problems() if problem.reason != error.message)
        return Forecast(spec.id, problems=(Problem(error.message, error.remedy), *others))
    world = plan.world
    problems = (
        *spec.problems(),
        *misfits(spec, world),
        *plan.method.remarks(world),
        *missed_target(plan),
        *_stops_early(plan),
        *_too_large(plan, threads),
    )
    return Forecast(
        id=spec.id,
        answers=plan.answers(plan.final_ledger(), precise),
        guarantee=plan.guarantee,
        problems=problems,
        seconds=seconds(plan, threads) if timed else None,
        noise=plan.method.noise_level if isinstance(plan.method, HasNoise) else None,
        delta=plan.delta,
        cliff=cliff(plan),
        facts={"sizes": [min(world.sizes), max(world.sizes)], "parameters": weights.count(world.weights)},
    )


@dataclass(frozen=True)
class BudgetNoise:
    """The noise of a run that keeps ε within a budget, in one view."""

    budget: float
    noise: float | None  # None: no noise is enough
    epsilon: Epsilon | None = None
    reason: str = ""  # why there is no noise


def budget_noises(spec: RunSpec, view: View, budgets: Sequence[float]) -> tuple[BudgetNoise, ...]:
    """The noise for each of these budgets, whatever noise the run has. Raises BadInput where the view has no ε.

    Each noise is found by Rényi alone: it is a little more than the least, and ε is at most the budget. It has the
    digits that a page prints, so that the printed noise keeps the budget, too. One plan serves all of them, which takes
    a fifth of the time of a forecast for each.
    """
    plan = make_plan(spec.with_(target_epsilon=None, budget=None, view=None), precise=False)
    search = noise_search(plan, view, "budget")
    noises = []
    for budget in budgets:
        try:
            noise = shown_noise(search.least(budget, precise=False))
        except BadInput as error:
            noises.append(BudgetNoise(budget, None, reason=error.message))
        else:
            noises.append(BudgetNoise(budget, noise, search.answer(noise)))
    return tuple(noises)


def _stops_early(plan: Plan) -> tuple[Problem, ...]:
    spec, last = plan.spec, plan.last_round
    if spec.budget is None or last == spec.rounds:
        return ()
    budget = f"the budget ε = {spec.budget:g} in the {spec.view} view"
    reason = f"{budget} does not last for all {spec.rounds} rounds: the run will stop after round {last}"
    return (Problem(reason, "More noise, fewer rounds or a larger budget go further", fatal=False),)


def _too_large(plan: Plan, threads: int) -> tuple[Problem, ...]:
    need = memory(plan, threads)
    free = free_memory()
    if free is None or need <= free:
        return ()
    reason = f"the run needs about {need / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free on this machine"
    return (Problem(reason, "Take fewer clients a round or a smaller model", fatal=False),)


def memory(plan: Plan, threads: int) -> float:
    """Roughly the bytes at the peak. The private parts of the clients do not count: they go to disk."""
    spec, world = plan.spec, plan.world
    spread = 3 * math.sqrt(world.sampled) if world.sampling == "poisson" else 0
    cohort = min(world.clients, world.sampled + spread)
    # copies of the weights: an upload of each client, two for each client of a wave, those that the threads train,
    # and those of the server
    kept = plan.method.work(world, plan.last_round).kept
    copies = kept + cohort + 2 * min(cohort, WAVE) + threads * (3 * STACK if world.stacked else 4) + 8
    batch = min(spec.batch, max(world.sizes))
    layers = threads * max(2 * batch, TESTED) * activations(spec.model, world.shape, world.classes)
    # pictures are in memory twice: as read, and as partitioned
    pictures = 2.25 * (len(plan.labels) + len(plan.test_labels)) * math.prod(world.shape)
    return PROCESS + 4 * (copies * weights.count(world.weights) + layers + pictures)


@cache
def activations(model: Model, shape: tuple[int, ...], classes: int) -> int:
    """The number of values that all layers together return for one input."""
    module = model.build(shape, classes, torch.Generator()).eval()
    counts: list[int] = []

    def count(layer: nn.Module, inputs: Any, output: Any) -> None:
        counts.append(_output(output).numel())

    for layer in module.modules():
        if not list(layer.children()):
            layer.register_forward_hook(count)
    with torch.no_grad():
        module(model.example(shape, 1, torch.Generator()))
    return sum(counts)


def _output(output: Tensor | tuple[Tensor, ...]) -> Tensor:
    """The output of a layer, without the final state that a recurrent layer also returns."""
    return output if isinstance(output, Tensor) else output[0]


def free_memory() -> float | None:
    """The bytes that a new process can use; None where the system does not report them."""
    try:
        match = re.search(r"^MemAvailable:\s+(\d+) kB", MEMINFO.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) * 1024 if match else None


def cliff_region(model: Model, pixels: int, parameters: int) -> tuple[float, float]:
    """The noise over signal of one upload between which its pictures are expected to disappear.

    An upload has a number for each parameter, and each carries some of the noise. An attack finds a number for each
    pixel, so noise hurts it less the more parameters there are for a pixel.
    """
    low, high = model.noise_region()
    parameters_of_pixel = math.sqrt(parameters / pixels)
    return low * parameters_of_pixel, high * parameters_of_pixel


def cliff(plan: Plan) -> ExpectedCliff:
    """Noise over signal of one upload as the server sees it, in the first round in which any client takes part.

    The region is that of an upload with one picture.
    """
    parameters = weights.count(plan.world.weights)
    cohort = _first_cohort(plan)
    protocol = plan.method.protocol(plan.world, Seat(cohort[0], 0, 1, 1, 1, len(cohort)), "server")
    ratio = None
    if protocol.bound is not None:
        if protocol.clip == "whole-update":
            signal = protocol.bound  # a whole update is at most C long
        else:
            signal = protocol.local.lr * protocol.bound * protocol.steps  # DP-SGD moves at most lr · C at each step
        ratio = protocol.std * math.sqrt(parameters) / signal
    pixels = math.prod(plan.world.shape)
    return ExpectedCliff(ratio, parameters, pixels, cliff_region(plan.spec.model, pixels, parameters))


def _first_cohort(plan: Plan) -> Sequence[int]:
    for round in range(1, plan.spec.rounds + 1):
        cohort = plan.cohort(round)
        if cohort:
            return cohort
    return (0,)
