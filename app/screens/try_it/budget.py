"""The budget of one side: ε against the observer, in positions that follow the finger, each with what it costs."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.batch import stored_verdicts
from app.batch.stored_verdicts import StoredVerdict
from app.batch.view import ShownRun, find
from app.screens.try_it.settings import STATE
from app.session import budgets, outcomes, run_settings, services, session
from app.texts import budget as budget_texts
from app.texts import numbers, privacy
from app.widgets import budget_slider
from app.widgets.budget_slider import SliderStop
from engine.capabilities import HasNoise, HasServerStep
from engine.epsilon import Epsilon
from engine.errors import BadInput, LeakLensError, plain_number
from engine.results.estimates import Estimate, Outcome, best_step, estimate
from engine.results.report import last_epsilons, report

if TYPE_CHECKING:
    from engine.specs.run import RunSpec
    from engine.training.forecast import BudgetNoise

BUDGETS = (1000.0, 100.0, 30.0, 10.0, 3.0, 1.0)
POLL_S = 0.5
Choose = Callable[[dict[str, Any]], None]


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


def draw(side: str, run: Mapping[str, Any], view: str, on_choose: Choose) -> None:
    """Draw the slider of one side. `on_choose` receives the settings to change when it is released."""
    try:
        spec = run_settings.spec_of(run)
    except LeakLensError:
        _note(budget_texts.INVALID)
        return
    if not isinstance(spec.method, HasNoise) and spec.method.strength is None:
        _note(budget_texts.NO_BUDGET.format(title=spec.method.title))
        return
    noises: tuple[BudgetNoise, ...] | None = ()
    reason = budget_texts.MAKES_NO_PROMISE
    if isinstance(spec.method, HasNoise):
        try:
            noises = budgets.noises(spec, view, BUDGETS)
            reason = ""
        except BadInput as error:
            reason = reason_of(error, view)
    _slider(budget_of(side, run, view, noises or (), reason), on_choose)
    if noises is None:
        st.fragment(_wait, run_every=POLL_S)(spec, view)


def _note(text: str) -> None:
    st.html(f'<p class="ll-note">{html.escape(text)}</p>')


def reason_of(error: BadInput, view: str) -> str:
    """Why a view has no ε. What else is wrong with the run, the form shows."""
    if run_settings.refused_place(error.message) != ("run", "budget"):
        return budget_texts.MAKES_NO_PROMISE
    reason = error.message.rpartition(f"the {view} view")[2].partition(": ")[2]
    return budget_texts.NO_EPSILON.format(against=privacy.AGAINST[view], reason=reason.rstrip("."))


def _wait(spec: RunSpec, view: str) -> None:
    """Draw the page again when the positions are computed."""
    st.caption(budget_texts.COMPUTING)
    try:
        ready = budgets.noises(spec, view, BUDGETS) is not None
    except BadInput:
        ready = True
    if ready:
        session.rerun()


# --- the positions -----------------------------------------------------------------------------------------


def budget_of(side: str, run: Mapping[str, Any], view: str, noises: Sequence[BudgetNoise], reason: str) -> Budget:
    """The positions of the slider, from no protection to the strongest, and which one the settings have."""
    requested = run_settings.spec_of(run)
    shown = find(requested.id)
    finished = shown if shown and shown.status in ("finished", "stored") else None
    forecast = services.forecast_of(requested.canonical())
    spec = requested
    if isinstance(spec.method, HasNoise):
        if requested.target_epsilon is not None and forecast.noise is not None:
            method = spec.method.with_noise(forecast.noise)
            spec = spec.with_(method=method, target_epsilon=None, budget=None, view=None)
        field, unit = spec.method.noise_name(), "noise"
    else:
        assert spec.method.strength is not None
        field, unit = spec.method.strength.field, spec.method.strength.unit
    value = float(spec.canonical()["method"].get(field, 0.0))
    answers = {answer.view: answer for answer in forecast.answers}
    if finished:
        answers = last_epsilons(finished.events)
    now = BudgetStop(budget_texts.tick(answers.get(view)), value, answers.get(view))
    if reason:
        now = BudgetStop(plain_number(value), value)
    offered = _steps(spec) if reason else _of_noises(noises)
    stops = _with_now(offered, now)
    at = next(place for place, stop in enumerate(stops) if stop.value == value and not stop.reason)
    return Budget(side, run, view, spec, finished, field, unit, stops, at, reason)


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


# --- what a position says ----------------------------------------------------------------------------------


def _slider(budget: Budget, on_choose: Choose) -> None:
    known = budget.known
    stops = slider_stops(budget, known)
    label = budget_texts.LABEL.format(side=budget.side)
    choose_one = partial(choose, budget, known, on_choose)
    budget_slider.draw(f"budget-{budget.side}", label, stops, key_of(budget.stops[budget.at]), choose_one)


def key_of(stop: BudgetStop) -> str:
    return f"{stop.value:.17g} {stop.tick if stop.reason else ''}".strip()


def slider_stops(budget: Budget, known: Sequence[Outcome]) -> list[SliderStop]:
    """Everything that each position shows."""
    grid = STATE.current().grid(budget.run).with_(view=budget.view)
    verdicts = stored_verdicts.by_noise(grid, budget.spec.canonical()) if budget.field == "noise" else []
    return [_slider_stop(budget, stop, known, verdicts) for stop in budget.stops]


def _slider_stop(
    budget: Budget, stop: BudgetStop, known: Sequence[Outcome], verdicts: Sequence[StoredVerdict]
) -> SliderStop:
    if stop.reason:
        return SliderStop(key_of(stop), stop.tick, reason=stop.reason)
    here = stop == budget.stops[budget.at]
    step = None if here else _step(budget, known, stop.value)
    size, side = budget_texts.size(stop.epsilon)
    terms = budget_texts.terms(stop.epsilon, stop.value, step)
    if budget.unit != "noise":
        terms = budget_texts.strength(budget.unit, stop.value)
    lines = [budget_texts.accuracy(_accuracy(budget, stop, known, step)), _picture(stop, verdicts)]
    if budget.reason != budget_texts.MAKES_NO_PROMISE:
        lines.append(budget.reason)
    else:
        size = f"{privacy.NO_PROMISE.sign} {budget_texts.MAKES_NO_PROMISE}"
    return SliderStop(key_of(stop), stop.tick, size, side, terms, tuple(line for line in lines if line))


def _accuracy(budget: Budget, stop: BudgetStop, known: Sequence[Outcome], step: float | None) -> Estimate | None:
    """The accuracy that the run of the settings reached; at another position the estimate."""
    if stop == budget.stops[budget.at] and budget.shown:
        reached = report(budget.shown.events)["accuracy"]
        if reached is not None:
            return Estimate(reached, reached, reached, 1, exact=True)
    return estimate(known, _at(budget, stop.value, step), budget.field)


def _at(budget: Budget, value: float, step: float | None) -> dict[str, Any]:
    """The spec at another position."""
    spec = budget.spec.canonical()
    method = {**spec["method"], budget.field: value}
    if step is not None:
        method["server-step"] = step
    return {**spec, "method": method}


def _picture(stop: BudgetStop, verdicts: Sequence[StoredVerdict]) -> str:
    """What stored attacks brought back at the largest noise up to this one. More noise hides more."""
    below = [entry for entry in verdicts if entry.noise <= stop.value]
    if not below:
        return ""
    return budget_texts.picture(below[-1].verdict, below[-1].noise, below[-1].noise == stop.value)


def _step(budget: Budget, known: Sequence[Outcome], value: float) -> float | None:
    """The server step that goes with another noise; None where it stays.

    Strong noise needs small steps and weak noise large ones. A slider that moved the noise alone would show what a bad
    step costs in place of what protection costs. A step that the visitor set stays: then it is not the best stored one.
    """
    method = budget.spec.method
    if not isinstance(method, HasServerStep):
        return None
    if best_step(known, budget.spec.canonical(), budget.field) != method.server_step:
        return None
    best = best_step(known, _at(budget, value, None), budget.field)
    return None if best == method.server_step else best


def choose(budget: Budget, known: Sequence[Outcome], on_choose: Choose, key: str) -> None:
    """Change the settings to a position. A target ε of an old link ends here: the noise is explicit from now on."""
    stop = next(stop for stop in budget.stops if key_of(stop) == key)
    changes: dict[str, Any] = {f"method.{budget.field}": stop.value}
    step = _step(budget, known, stop.value)
    if step is not None:
        changes["method.server-step"] = step
    if budget.run.get("target-epsilon") is not None:
        changes["target-epsilon"] = None
        if budget.run.get("budget") is None:
            changes["view"] = None
    on_choose(changes)
