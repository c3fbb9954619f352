"""The cliff on the page: a series of noises asked of the same attacks, drawn while they answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from app import (
    charts,
    leak_cells,
    leak_orders,
    leak_series,
    leak_watch,
    leaks,
    question,
    state,
    words,
    words_leak,
    words_leak_more,
)
from app.leak_cells import Cell
from app.leaks import NOISY, NONE, Asked, Leak
from app.panels import cliff
from app.panels.cliff import Above
from app.words_leak_more import Answer

if TYPE_CHECKING:
    from engine.training.forecast import Forecast


@dataclass(frozen=True)
class Plan:
    """The series, and what is known of it before any of it is run."""

    noises: Mapping[str, float | None]  # by column; None: the control
    promises: Mapping[str, Forecast]
    asked: tuple[Asked, ...]  # those that can be asked, the control first
    titles: Mapping[str, str]  # of the attacks
    before: Forecast  # of the run without noise: parameters and the region


def plan(leak: Leak) -> Plan | None:
    """None where no attack fits, or where there is no such run."""
    base = question.spec_of(leak.run)
    before = state.forecast_of(leaks.run_of(base, NONE).canonical())
    attacks = leak_series.attacks(leak)
    if before.cliff is None or not attacks:
        return None
    keys = [f"{NOISY}:{words_leak.noise(noise)}" for noise in cliff.levels(before.cliff.parameters)]
    wide = replace(leak, against=(NONE, *keys), attacks=attacks)
    columns = leaks.columns(wide)
    asked = [one for one in leak_orders.fitted(leaks.cells(wide)) if one.spec]
    return Plan(
        {one.key: None if one.key == NONE else one.noise for one in columns},
        {one.key: state.forecast_of(one.spec.canonical()) for one in columns},
        tuple(sorted(asked, key=lambda one: list(wide.against).index(one.column))),
        {name: leaks.attack_title(name) for name in attacks},
        before,
    )


def panel(leak: Leak) -> None:
    leak_series.title(words_leak_more.CLIFF)
    found = plan(leak)
    if found is None or found.before.cliff is None:
        leak_series.problem(words_leak_more.NO_ATTACK)
        return
    place = found.before.cliff
    leak_series.why(words_leak_more.expected(place.parameters, place.noise_from, place.noise_to))
    view = st.selectbox(
        words_leak_more.EPSILON_OF, words.VIEWS, index=words.VIEWS.index(leak.eyes), width=280,
        format_func=words_leak.VIEWS.__getitem__, key=f"cliff-view:{leak.eyes}",
    )  # fmt: skip
    moving = any(cell.moving for cell in leak_watch.read(found.asked))
    leak_series.followed(lambda: _drawn(found, view), moving)


def _drawn(asked: Plan, view: str) -> Sequence[Cell]:
    cells = leak_watch.read(asked.asked)
    leak_series.bar("cliff", asked.asked, cells, words_leak_more.measure)
    assert asked.before.cliff is not None
    region = asked.before.cliff.region
    found = cliff.collect(asked.noises, cells, asked.titles)
    if text := words_leak_more.verdict(found, region):
        leak_series.said(text)
        leak_series.why(words_leak.NO_PROOF)
    above = top(asked, cells, view)
    st.plotly_chart(
        cliff.draw(found, above, region, state.dark()), key="chart-cliff", theme=None, config=charts.CONFIG,
        alt=words_leak_more.cliff_alt(found, view),
    )  # fmt: skip
    if found.signal and found.bound and found.signal < 0.99 * found.bound:
        leak_series.why(words_leak_more.unbound(found.signal, found.bound))
    absent = asked.before.guarantee.absent.get(view, "") if asked.before.guarantee else ""
    if absent:
        leak_series.why(absent)
    leak_series.failures(cells)
    return cells


def top(asked: Plan, cells: Sequence[Cell], view: str) -> Above:
    """ε where its noise stands: as measured, until then as loud as where the clip binds."""
    assert asked.before.cliff is not None
    answers = {asked.noises[key]: answer(told, view) for key, told in asked.promises.items()}
    known = next((one for noise, one in answers.items() if noise is not None and one), None)
    scale = stretch(asked.noises, cells) or asked.before.cliff.parameters**0.5
    ticks = []
    for key, noise in asked.noises.items():
        if noise is not None and (one := answers[noise]):
            ticks.append((ratio(leak_cells.of_column(cells, key)) or noise * scale, words_leak_more.bare(one.epsilon)))
    return Above(words_leak_more.axis(known, view), tuple(ticks), lambda noise: words_leak_more.epsilon(answers[noise]))


def answer(told: Forecast, view: str) -> Answer | None:
    return next((one for one in told.answers if one.view == view), None)


def ratio(cells: Sequence[Cell]) -> float | None:
    """Noise over signal of this upload, once somebody has seen it."""
    seen = next((cell.seen for cell in cells if cell.seen), None)
    return leak_cells.finite(seen.facts.get("noise-to-signal")) if seen else None


def stretch(noises: Mapping[str, float | None], cells: Sequence[Cell]) -> float | None:
    """How loud noise 1 would be beside this upload: the same for all noises, known from the first that is measured."""
    for key, noise in noises.items():
        if noise and (seen := ratio(leak_cells.of_column(cells, key))):
            return seen / noise
    return None
