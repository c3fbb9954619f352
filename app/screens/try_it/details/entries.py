"""The entries of *Details* about the results of both sides."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import streamlit as st

from app.batch.view import ShownRun
from app.charts import smoothing, smoothness, spectrum
from app.charts.base import Panel, Track
from app.screens.try_it import panels
from app.screens.try_it import sides as try_sides
from app.screens.try_it.details import texts as details_texts
from app.screens.try_it.sides import TrySide
from app.session import services, session
from app.widgets import card
from app.widgets import chart as chart_widget
from app.widgets import table as table_widget
from engine.epsilon import Epsilon
from engine.errors import LeakLensError
from engine.results.report import guarantee, last_epsilons, report, run_facts

INSIDE: tuple[Panel[Any], ...] = (smoothing.PANEL,)
INSIDE_WITH_CHOICES: tuple[Panel[Any], ...] = (smoothness.PANEL, spectrum.PANEL)
FINISHED = ("finished", "stored")


def tracks(sides: Sequence[TrySide], pins: Sequence[Track]) -> list[Track]:
    """The runs of all sides and the pinned ones, as tracks of a chart."""
    return [*panels.tracks(sides), *pins]


def head(side: TrySide, several: bool) -> None:
    """The name of a side, where there are two."""
    if several:
        title = try_sides.protection_title(side.run)
        text = details_texts.SIDE.format(side=side.name, title=title)
        st.html(f'<h3 class="ll-title">{html.escape(text)}</h3>')


# --- privacy -----------------------------------------------------------------------------------------------


def privacy(sides: Sequence[TrySide], view: str) -> None:
    """ε of every observer, the chosen one opened, the kind of promise with its reason, and what no number covers."""
    for side, column in zip(sides, st.columns(len(sides), gap="large"), strict=True):
        with column:
            head(side, len(sides) > 1)
            _privacy_of(side, view)
    card.not_covered()


def _privacy_of(side: TrySide, view: str) -> None:
    main = side.main
    if main is not None and main.status in FINISHED:
        epsilons, promise = last_epsilons(main.events), guarantee(main.events)
    else:
        epsilons, promise = _forecast(side)
        st.caption(details_texts.FORECAST)
    card.guarantee_block(promise)
    _noise(side)
    card.privacy_block(epsilons, promise, view)


def _forecast(side: TrySide) -> tuple[dict[str, Epsilon], Mapping[str, Any] | None]:
    forecast = services.forecast_of(side.spec.canonical())
    promise = asdict(forecast.guarantee) if forecast.guarantee else None
    return {answer.view: answer for answer in forecast.answers}, promise


def _noise(side: TrySide) -> None:
    spec = side.spec.canonical()
    text = details_texts.noise(spec["method"], spec.get("target-epsilon"))
    if text:
        st.html(f'<p class="ll-faint">{html.escape(text)}</p>')


# --- charts ------------------------------------------------------------------------------------------------


def chart(panel: Panel[Any], shown: Sequence[Track]) -> None:
    """One chart of all runs, with the buttons that save it."""
    if chart_widget.show(panel, shown):
        chart_widget.save_buttons({panel.name: details_texts.SAVE_CHART})


def inside(sides: Sequence[TrySide]) -> None:
    """How the server smooths the models of one side. With two sides, the visitor chooses whose."""
    side = sides[0]
    if len(sides) > 1:
        names = [each.name for each in sides]
        chosen = session.recall("try-inside-of") or names[0]
        st.segmented_control(
            details_texts.OF_SIDE, names, required=True,
            **session.bind("try-inside", chosen, lambda name: session.remember("try-inside-of", name)),
        )  # fmt: skip
        side = next((each for each in sides if each.name == chosen), side)
    # A panel with choices shows the main run, whichever side that is.
    shown = [replace(track, role="main") for track in panels.tracks([side]) if side.main and track.run == side.main.id]
    drawn = [panel for panel in INSIDE if chart_widget.show(panel, shown)]
    drawn += chart_widget.show_with_choices(INSIDE_WITH_CHOICES, shown)
    chart_widget.save_buttons({panel.name: panel.title for panel in drawn})


# --- who holds what ----------------------------------------------------------------------------------------


def partition(sides: Sequence[TrySide]) -> None:
    """The records of each client and class, once where both sides divide the data in the same way."""
    different: list[tuple[TrySide, Any, Sequence[str]]] = []
    for side in sides:
        counts = _counts(side.main) if side.main else None
        if counts is not None and side.main and all(counts != known for _, known, _ in different):
            different.append((side, counts, run_facts(side.main.events).get("classes", ())))
    if not different:
        st.html(f'<p class="ll-note">{details_texts.NO_PARTITION}</p>')
        return
    for side, counts, names in different:
        head(side, len(different) > 1)
        chart_widget.partition(counts, names, f"partition-{side.name}")
    if len(sides) > 1 and len(different) == 1 and all(side.main for side in sides):
        st.caption(details_texts.SHARED)
    saved = {f"partition-{side.name}": details_texts.SAVE_CHART for side, _, _ in different}
    chart_widget.save_buttons(saved)


def _counts(main: ShownRun) -> Sequence[Sequence[int]] | None:
    """The number of training records of each client and class."""
    if main.example:
        return main.example.partition
    try:
        return services.store().payload(main.id, "partition")["train"].tolist()  # type: ignore[no-any-return]
    except LeakLensError as error:
        st.html(f'<p class="ll-problem">{html.escape(str(error))}</p>')
        return None


# --- seeds -------------------------------------------------------------------------------------------------


def seeds(sides: Sequence[TrySide], view: str) -> None:
    """The result of each run and seed, and of the baselines."""
    rows = []
    for side in sides:
        for run in side.runs:
            rows.append(_seed_row(side.name, run, view))
        for run in side.baselines:
            rows.append(_seed_row(f"{side.name}, without protection", run, view))
    table_widget.show(rows, details_texts.ENTRIES["seeds"])
    for side in sides:
        reached = [report(run.events)["accuracy"] for run in side.runs]
        known = [accuracy for accuracy in reached if accuracy is not None]
        if len(known) > 1:
            st.html(f"<p>{html.escape(details_texts.spread(side.name, known))}</p>")


def _seed_row(name: str, run: ShownRun, view: str) -> dict[str, str]:
    epsilon = last_epsilons(run.events).get(view)
    return details_texts.seed_row(name, run.spec.get("seed", 0), report(run.events), epsilon)
