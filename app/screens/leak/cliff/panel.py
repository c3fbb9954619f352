"""The cliff: the same attacks at a series of noises, drawn while they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from app.batch import attack_cells
from app.charts import cliff
from app.charts.cliff import TopAxis
from app.screens.leak import columns as leak_columns
from app.screens.leak import series
from app.screens.leak.settings import LeakSettings, records
from app.session import run_settings, services, session
from app.texts import attack_series as series_texts
from app.texts import privacy
from app.widgets import chart as chart_widget
from engine.epsilon import Epsilon
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell
from engine.results.cliff import collect_cliff, levels
from engine.specs import attack_grid, attack_series
from engine.specs.attack_grid import NOISY, NONE, RequestedAttack, column_key

if TYPE_CHECKING:
    from engine.training.forecast import ExpectedCliff, Forecast

BINDING = 0.99  # a signal below this share of the bound shows that the clip does not bind


@dataclass(frozen=True)
class CliffPlan:
    """The series, and the forecasts before any attack runs."""

    noises: Mapping[str, float | None]  # by column; None: the baseline
    forecasts: Mapping[str, Forecast]  # by column
    requests: tuple[RequestedAttack, ...]  # the baseline first, without attacks that do not fit
    of_grid: tuple[RequestedAttack, ...]  # attacks of the grid at other noises: shown, not requested
    titles: Mapping[str, str]  # of the attacks
    method: str  # the title of the protection
    split: str  # who adds its noise
    baseline: Forecast  # of the run without noise
    expected: ExpectedCliff  # for the chosen number of pictures


def plan(leak: LeakSettings) -> CliffPlan | None:
    """Return the series, or None if no attack fits or the run has no forecast."""
    base = run_settings.spec_of(leak.run)
    baseline = services.forecast_of(attack_grid.run_under(base, NONE).canonical())
    attacks = series.attacks(leak)
    if baseline.cliff is None or not attacks:
        return None
    expected = baseline.cliff.with_pictures(records(leak))
    noises = levels(expected.region, expected.parameters)
    of_grid = [float(column.partition(":")[2]) for column in leak.against if column.startswith(f"{NOISY}:")]
    grid = attack_series.cliff_grid(replace(leak.grid, attacks=attacks), [*noises, *of_grid])
    requested = {NONE, *(column_key(NOISY, noise) for noise in noises)}
    runs = grid.runs()
    requests = [request for request in attack_cells.with_refusals(grid.requests()) if request.spec]
    requests.sort(key=lambda request: grid.columns.index(request.column))
    noisy = [run for column, run in runs.items() if column != NONE]
    return CliffPlan(
        noises={column: None if column == NONE else leak_columns.noise_of(run) for column, run in runs.items()},
        forecasts={column: services.forecast_of(run.canonical()) for column, run in runs.items()},
        requests=tuple(request for request in requests if request.column in requested),
        of_grid=tuple(request for request in requests if request.column not in requested),
        titles={name: run_settings.attack_title(name) for name in attacks},
        method=type(noisy[-1].method).title,
        split=privacy.noise_split(noisy[-1].method.values()),
        baseline=baseline,
        expected=expected,
    )


def panel(leak: LeakSettings) -> None:
    series.title(series_texts.CLIFF)
    cliff_plan = plan(leak)
    if cliff_plan is None:
        series.problem(series_texts.NO_ATTACK)
        return
    expected = cliff_plan.expected
    noises = (expected.noise_from, expected.noise_to)
    sees_less = series_texts.SEES_LESS if leak.eyes != "server" else ""
    note = series_texts.CHEATS if leak.upload == "cheat" else sees_less
    series.explain(series_texts.expected(expected.region, noises, note))
    if cliff_plan.split:
        series.explain(series_texts.protection(cliff_plan.method, cliff_plan.split))
    series.details(series_texts.BASIS, series_texts.basis(expected.parameters, expected.pixels))
    moving = any(cell.moving for cell in attack_cells.read_cells(cliff_plan.requests))
    series.draw_until_done(lambda: _draw(cliff_plan, leak.eyes), moving)


def _draw(cliff_plan: CliffPlan, view: str) -> Sequence[AttackCell]:
    cells = attack_cells.read_cells(cliff_plan.requests)
    series.progress_bar("cliff", cliff_plan.requests, series_texts.run)
    region = cliff_plan.expected.region
    shown = [*cells, *_finished_columns(attack_cells.read_cells(cliff_plan.of_grid))]
    measured = collect_cliff(cliff_plan.noises, shown, cliff_plan.titles)
    verdict = series_texts.verdict(measured, region)
    if verdict:
        series.announce(verdict)
    axis = top_axis(cliff_plan, shown, view)
    st.plotly_chart(
        cliff.draw(measured, axis, region, session.dark()), key="chart-cliff", theme=None, config=chart_widget.CONFIG,
        alt=series_texts.cliff_alt(measured, region, view),
    )  # fmt: skip
    chart_widget.save_buttons({"cliff": series_texts.CLIFF})
    if measured.signal and measured.bound and measured.signal < BINDING * measured.bound:
        series.explain(series_texts.unbound(measured.signal, measured.bound))
    guarantee = cliff_plan.baseline.guarantee
    absent = guarantee.absent.get(view, "") if guarantee else ""
    if absent:
        series.explain(absent)
    series.failures(cells)
    return cells


def _finished_columns(cells: Sequence[AttackCell]) -> list[AttackCell]:
    """Return the cells of the columns in which every attack has finished. Of the others, no best attack is known."""
    unfinished = {cell.column for cell in cells if not cell.done}
    return [cell for cell in cells if cell.column not in unfinished]


def top_axis(cliff_plan: CliffPlan, cells: Sequence[AttackCell], view: str) -> TopAxis:
    """Return the ε of each noise, placed at its noise to signal.

    The place is measured where an attack ran. Elsewhere it is the ratio that a binding clip gives.
    """
    answers = {}
    for key, noise in cliff_plan.noises.items():
        answers[noise] = epsilon_of(cliff_plan.forecasts[key], view)
    with_noise = (answer for noise, answer in answers.items() if noise is not None and answer)
    first_answer = next(with_noise, None)
    unit_ratio = ratio_of_unit_noise(cliff_plan.noises, cells) or cliff_plan.expected.parameters**0.5
    ticks = []
    for key, noise in cliff_plan.noises.items():
        if noise is None:
            continue
        answer = answers[noise]
        if answer:
            measured_ratio = noise_ratio(attack_summary.of_column(cells, key))
            ticks.append((measured_ratio or noise * unit_ratio, series_texts.bare(answer.value)))
    title = series_texts.axis(first_answer, view)
    return TopAxis(title, tuple(ticks), lambda noise: series_texts.epsilon(answers[noise]))


def epsilon_of(forecast: Forecast, view: str) -> Epsilon | None:
    """Return the forecast ε of one view, or None if the method has no such view."""
    return next((answer for answer in forecast.answers if answer.view == view), None)


def noise_ratio(cells: Sequence[AttackCell]) -> float | None:
    """Return the noise to signal of this upload, or None before an attack observed it."""
    seen = next((cell.seen for cell in cells if cell.seen), None)
    return attack_summary.finite(seen.facts.get("noise-to-signal")) if seen else None


def ratio_of_unit_noise(noises: Mapping[str, float | None], cells: Sequence[AttackCell]) -> float | None:
    """Return the noise to signal of this upload at noise 1, computed from the first measured noise.

    The ratio grows in proportion to the noise, so one measurement is enough. None before the first.
    """
    for key, noise in noises.items():
        ratio = noise_ratio(attack_summary.of_column(cells, key))
        if noise and ratio:
            return ratio / noise
    return None
