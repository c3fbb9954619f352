"""The budget of one side: ε against the observer, in positions that follow the finger, each with what it costs."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.batch import stored_verdicts
from app.batch.stored_verdicts import StoredVerdict
from app.screens.try_it.budget.stops import BUDGETS, Budget, BudgetStop, budget_of
from app.screens.try_it.settings import STATE
from app.session import budgets, run_settings, session
from app.texts import budget as budget_texts
from app.texts import privacy
from app.widgets import budget_slider
from app.widgets.budget_slider import SliderHead, SliderStop
from engine.capabilities import HasNoise, HasServerStep
from engine.errors import BadInput, LeakLensError
from engine.results.estimates import Estimate, Outcome, best_step, estimate
from engine.results.report import report

if TYPE_CHECKING:
    from engine.specs.run import RunSpec
    from engine.training.forecast import BudgetNoise

POLL_S = 0.5
Choose = Callable[[dict[str, Any]], None]


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


# --- what a position says ----------------------------------------------------------------------------------


def _slider(budget: Budget, on_choose: Choose) -> None:
    known = budget.known
    stops = slider_stops(budget, known)
    choose_one = partial(choose, budget, known, on_choose)
    budget_slider.draw(f"budget-{budget.side}", head_of(budget), stops, key_of(budget.stops[budget.at]), choose_one)


def head_of(budget: Budget) -> SliderHead:
    """The names of the slider. Steps of a method are no budget, and the last one says itself that it is strong."""
    title = budget_texts.STRENGTH if budget.reason else budget_texts.TITLE
    label = budget_texts.LABEL.format(title=title, side=budget.side)
    return SliderHead(title, label, more="" if budget.reason else budget_texts.MORE)


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
    if budget.unit != budget_texts.NOISE:
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
