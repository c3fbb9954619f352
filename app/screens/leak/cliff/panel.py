"""The cliff on the page: a series of noises asked of the same attacks, drawn while they answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from app.charts import cliff
from app.charts.cliff import TopAxis
from app.screens.leak import requests as leak_requests
from app.screens.leak import results as leak_results
from app.screens.leak import series
from app.screens.leak import settings as leak_settings
from app.screens.leak.settings import LeakSettings
from app.session import run_settings, services, session
from app.texts import attack_series as series_texts
from app.texts import attacks as attack_texts
from app.texts import privacy
from app.texts.attack_series import ShownEpsilon
from app.widgets import chart as chart_widget
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell
from engine.results.cliff import collect_cliff, levels
from engine.specs.attack_grid import NOISY, NONE, RequestedAttack

if TYPE_CHECKING:
    from engine.training.forecast import Forecast


@dataclass(frozen=True)
class CliffPlan:
    """The series, and what is known of it before any of it is run."""

    noises: Mapping[str, float | None]  # by column; None: the control
    promises: Mapping[str, Forecast]
    asked: tuple[RequestedAttack, ...]  # those that can be asked, the control first
    titles: Mapping[str, str]  # of the attacks
    before: Forecast  # of the run without noise: parameters and the region


def plan(leak: LeakSettings) -> CliffPlan | None:
    """None where no attack fits, or where there is no such run."""
    base = run_settings.spec_of(leak.run)
    before = services.forecast_of(leak_settings.run_of(base, NONE).canonical())
    attacks = series.attacks(leak)
    if before.cliff is None or not attacks:
        return None
    keys = [f"{NOISY}:{attack_texts.noise(noise)}" for noise in levels(before.cliff.parameters)]
    wide = replace(leak, against=(NONE, *keys), attacks=attacks)
    columns = leak_settings.columns(wide)
    asked = [one for one in leak_requests.fitted(leak_settings.cells(wide)) if one.spec]
    return CliffPlan(
        {one.key: None if one.key == NONE else one.noise for one in columns},
        {one.key: services.forecast_of(one.spec.canonical()) for one in columns},
        tuple(sorted(asked, key=lambda one: list(wide.against).index(one.column))),
        {name: run_settings.attack_title(name) for name in attacks},
        before,
    )


def panel(leak: LeakSettings) -> None:
    series.title(series_texts.CLIFF)
    found = plan(leak)
    if found is None or found.before.cliff is None:
        series.problem(series_texts.NO_ATTACK)
        return
    place = found.before.cliff
    series.why(series_texts.expected(place.parameters, place.noise_from, place.noise_to))
    view = st.selectbox(
        series_texts.EPSILON_OF, privacy.VIEWS, index=privacy.VIEWS.index(leak.eyes), width=280,
        format_func=attack_texts.VIEWS.__getitem__, key=f"cliff-view:{leak.eyes}",
    )  # fmt: skip
    moving = any(cell.moving for cell in leak_results.read(found.asked))
    series.followed(lambda: _drawn(found, view), moving)


def _drawn(asked: CliffPlan, view: str) -> Sequence[AttackCell]:
    cells = leak_results.read(asked.asked)
    series.bar("cliff", asked.asked, cells, series_texts.measure)
    assert asked.before.cliff is not None
    region = asked.before.cliff.region
    found = collect_cliff(asked.noises, cells, asked.titles)
    if text := series_texts.verdict(found, region):
        series.said(text)
        series.why(attack_texts.NO_PROOF)
    above = top(asked, cells, view)
    st.plotly_chart(
        cliff.draw(found, above, region, session.dark()), key="chart-cliff", theme=None, config=chart_widget.CONFIG,
        alt=series_texts.cliff_alt(found, view),
    )  # fmt: skip
    if found.signal and found.bound and found.signal < 0.99 * found.bound:
        series.why(series_texts.unbound(found.signal, found.bound))
    absent = asked.before.guarantee.absent.get(view, "") if asked.before.guarantee else ""
    if absent:
        series.why(absent)
    series.failures(cells)
    return cells


def top(asked: CliffPlan, cells: Sequence[AttackCell], view: str) -> TopAxis:
    """ε where its noise stands: as measured, until then as loud as where the clip binds."""
    assert asked.before.cliff is not None
    answers = {asked.noises[key]: answer(told, view) for key, told in asked.promises.items()}
    known = next((one for noise, one in answers.items() if noise is not None and one), None)
    scale = stretch(asked.noises, cells) or asked.before.cliff.parameters**0.5
    ticks = []
    for key, noise in asked.noises.items():
        if noise is not None and (one := answers[noise]):
            ticks.append((ratio(attack_summary.of_column(cells, key)) or noise * scale, series_texts.bare(one.epsilon)))
    return TopAxis(series_texts.axis(known, view), tuple(ticks), lambda noise: series_texts.epsilon(answers[noise]))


def answer(told: Forecast, view: str) -> ShownEpsilon | None:
    return next((one for one in told.answers if one.view == view), None)


def ratio(cells: Sequence[AttackCell]) -> float | None:
    """Noise over signal of this upload, once somebody has seen it."""
    seen = next((cell.seen for cell in cells if cell.seen), None)
    return attack_summary.finite(seen.facts.get("noise-to-signal")) if seen else None


def stretch(noises: Mapping[str, float | None], cells: Sequence[AttackCell]) -> float | None:
    """How loud noise 1 would be beside this upload: the same for all noises, known from the first that is measured."""
    for key, noise in noises.items():
        if noise and (seen := ratio(attack_summary.of_column(cells, key))):
            return seen / noise
    return None
