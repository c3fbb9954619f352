"""The positions of a budget slider: off, the noise of each budget, and the noise of the settings in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from app.batch.view import ShownRun, find
from app.session import outcomes, run_settings, services
from app.texts import budget as budget_texts
from app.texts import numbers
from engine.capabilities import HasNoise
from engine.epsilon import Epsilon
from engine.errors import plain_number
from engine.results.estimates import Outcome
from engine.results.report import last_epsilons

if TYPE_CHECKING:
    from engine.specs.run import RunSpec
    from engine.training.forecast import BudgetNoise

BUDGETS = (1000.0, 100.0, 30.0, 10.0, 3.0, 1.0)


@dataclass(frozen=True)
class BudgetStop:
    """A position: a strength of the method, and the ε that it keeps where there is one."""

    tick: str
    value: float  # of the field that the slider moves
    epsilon: Epsilon | None = None
    reason: str = ""  # why it cannot be chosen


@dataclass(frozen=True)
class Budget:
    """The slider of one side."""

    side: str
    run: Mapping[str, Any]
    view: str
    spec: RunSpec  # with the strength of the settings, also where they name a target ε
    shown: ShownRun | None  # the result of the settings, if there is one
    field: str  # the name of the field that the slider moves
    unit: str
    stops: tuple[BudgetStop, ...]
    at: int  # the position of the settings
    reason: str = ""  # why the positions are no ε

    @property
    def known(self) -> list[Outcome]:
        return outcomes.near(self.spec.canonical(), self.field)


def budget_of(side: str, run: Mapping[str, Any], view: str, noises: Sequence[BudgetNoise], reason: str) -> Budget:
    """The positions of the slider, from no protection to the strongest, and which one the settings have.

    `reason` says why they are steps of the method's own strength; empty where they are ε.
    """
    requested = run_settings.spec_of(run)
    spec = _with_explicit_noise(requested)
    field, unit = _moved(spec)
    value = float(spec.canonical()["method"].get(field, 0.0))
    shown = find(requested.id)
    finished = shown if shown and shown.status in ("finished", "stored") else None
    epsilon = None if reason else _epsilon(requested, finished, view)
    now = BudgetStop(plain_number(value) if reason else budget_texts.tick(epsilon), value, epsilon)
    stops = _with_now(_steps(spec) if reason else _of_noises(noises), now)
    at = next(place for place, stop in enumerate(stops) if stop.value == value and not stop.reason)
    return Budget(side, run, view, spec, finished, field, unit, stops, at, reason)


def _with_explicit_noise(spec: RunSpec) -> RunSpec:
    """The spec with the noise that gives its target ε."""
    if spec.target_epsilon is None or not isinstance(spec.method, HasNoise):
        return spec
    noise = services.forecast_of(spec.canonical()).noise
    if noise is None:
        return spec
    return spec.with_(method=spec.method.with_noise(noise), target_epsilon=None, budget=None, view=None)


def _moved(spec: RunSpec) -> tuple[str, str]:
    """The field of the method that the slider moves, and what it counts."""
    if isinstance(spec.method, HasNoise):
        return spec.method.noise_name(), budget_texts.NOISE
    assert spec.method.strength is not None
    return spec.method.strength.field, spec.method.strength.unit


def _epsilon(spec: RunSpec, finished: ShownRun | None, view: str) -> Epsilon | None:
    """ε of the settings: that of the finished run, else the forecast."""
    if finished:
        return last_epsilons(finished.events).get(view)
    answers = services.forecast_of(spec.canonical()).answers
    return next((answer for answer in answers if answer.view == view), None)


def _steps(spec: RunSpec) -> list[BudgetStop]:
    """The four strengths that the method declares."""
    strength = spec.method.strength
    values = strength.values if strength else (0.0,)
    return [BudgetStop(tick, value) for tick, value in zip(budget_texts.STEPS, values, strict=False)]


def _of_noises(noises: Sequence[BudgetNoise]) -> list[BudgetStop]:
    """Off, and a position for each budget. One that no noise reaches is at the end."""
    stops = [BudgetStop(budget_texts.OFF, 0.0)]
    for entry in noises:
        label = numbers.epsilon(entry.budget)
        if entry.noise is None:
            reason = budget_texts.UNREACHABLE.format(budget=label, reason=_rule(entry.reason))
            stops.append(BudgetStop(label, float("inf"), reason=reason))
        else:
            stops.append(BudgetStop(label, entry.noise, entry.epsilon))
    return stops


def _rule(refusal: str) -> str:
    """The rule of a refusal without the field and the value."""
    return refusal.partition("must be ")[2].partition("), got")[0] + ")"


def _with_now(offered: Sequence[BudgetStop], now: BudgetStop) -> tuple[BudgetStop, ...]:
    """The positions with that of the settings, which keeps its label where one is offered."""
    stops = []
    for stop in offered:
        own = stop.value == now.value
        stops.append(replace(stop, epsilon=now.epsilon if own and now.value else stop.epsilon))
    if all(stop.value != now.value for stop in stops):
        stops.append(now)
    return tuple(sorted(stops, key=lambda stop: stop.value))
