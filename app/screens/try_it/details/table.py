"""The table of pinned runs: the shown runs and the pinned ones, with the settings in which they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app.batch.view import ShownRun, find
from app.charts import accuracy
from app.charts.base import Track
from app.screens.try_it import panels
from app.screens.try_it.details import texts as details_texts
from app.screens.try_it.settings import STATE, TrySettings
from app.screens.try_it.sides import TrySide
from app.session import run_settings
from app.texts import numbers
from app.widgets import chart as chart_widget
from app.widgets import table as table_widget
from engine.epsilon import Epsilon
from engine.results.report import last_epsilons, report

NOT_COMPARED = ("format",)
CHART = "pinned"  # the name of its chart on the page: the panel above has the name of the accuracy


def pinned(sides: Sequence[TrySide], settings: TrySettings) -> list[Track]:
    """The pinned runs as tracks, without those that the sides show. A label names what differs from side A."""
    shown = {run.id for side in sides for run in side.runs}
    runs = [run for run in map(find, settings.pins) if run and run.id not in shown]
    return [
        Track(name_of(sides[0], run), "pin", run.method, run.events, run.id, place)
        for place, run in enumerate(runs, start=1)
    ]


def name_of(side: TrySide, run: ShownRun) -> str:
    """A run by its differences from side A."""
    own, differences = differing([side.spec.canonical(), run.spec])
    return details_texts.run_name(differences, own)


def differing(specs: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """For each spec, the settings that are not the same in all of them, by their names."""
    tables = []
    for spec in specs:
        settings = run_settings.flat(spec)
        tables.append({path: setting for path, setting in settings.items() if path not in NOT_COMPARED})
    paths = list(dict.fromkeys(path for settings in tables for path in settings))
    different = [path for path in paths if len({repr(settings.get(path)) for settings in tables}) > 1]
    rows = []
    for settings in tables:
        rows.append({details_texts.field_name(path): _value(path, settings) for path in different})
    return rows


def _value(path: str, settings: Mapping[str, Any]) -> str:
    setting = settings.get(path)
    if path in run_settings.PARTS and isinstance(setting, str):
        return run_settings.part_title(path, setting)
    return details_texts.value(setting)


def draw(sides: Sequence[TrySide], settings: TrySettings) -> None:
    """The table, the curves of all its runs, and a button that takes each pinned run out."""
    rows = _rows(sides, settings)
    if rows:
        table_widget.show(rows, details_texts.TABLE_ALT)
    if len(rows) < 2:
        st.caption(details_texts.NO_PINS)
    pins = pinned(sides, settings)
    infos = accuracy.PANEL.collected([*panels.tracks(sides), *pins])
    if pins and infos:
        chart_widget.draw(accuracy.PANEL, infos, name=CHART)
        chart_widget.save_buttons({CHART: details_texts.SAVE_CHART})
    with st.container(horizontal=True):
        for pin in settings.pins:
            run = find(pin)
            label = details_texts.GONE.format(id=pin)
            if run is not None:
                label = details_texts.UNPIN.format(name=name_of(sides[0], run))
            st.button(label, key=f"unpin:{pin}", on_click=_unpin, args=(pin,), type="tertiary")


def _rows(sides: Sequence[TrySide], settings: TrySettings) -> list[dict[str, str]]:
    """One row for each shown and pinned run. ε that do not compare have columns of their own."""
    runs: dict[str, tuple[str, ShownRun]] = {side.main.id: (side.name, side.main) for side in sides if side.main}
    for run in map(find, settings.pins):
        if run is not None:
            runs.setdefault(run.id, (name_of(sides[0], run), run))
    differences = differing([run.spec for _, run in runs.values()])
    epsilons = [last_epsilons(run.events).get(settings.eyes) for _, run in runs.values()]
    heads = _heads(epsilons, settings.eyes)
    rows = []
    for (name, run), own, epsilon, head in zip(runs.values(), differences, epsilons, heads, strict=True):
        row = {"run": name, "accuracy": numbers.percent(report(run.events)["accuracy"])}
        for column in dict.fromkeys(filter(None, heads)):
            row[column] = details_texts.epsilon(epsilon if column == head else None)
        rows.append({**row, **own})
    return rows


def _heads(epsilons: Sequence[Epsilon | None], view: str) -> list[str]:
    """The column of each ε; empty without one. Kinds of ε are named where one unit has several."""
    kinds = {(epsilon.unit, details_texts.kind(epsilon)) for epsilon in epsilons if epsilon}
    units = [unit for unit, _ in kinds]
    heads = []
    for epsilon in epsilons:
        if epsilon is None:
            heads.append("")
        else:
            kind = details_texts.kind(epsilon) if units.count(epsilon.unit) > 1 else ""
            heads.append(details_texts.column(view, epsilon.unit, kind))
    return heads


def _unpin(run: str) -> None:
    STATE.choose(pins=tuple(pin for pin in STATE.current().pins if pin != run))
