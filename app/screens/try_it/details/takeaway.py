"""Take it away: each side as a command and as Python, all numbers as CSV, the chart as a picture, and a receipt."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from functools import partial

import streamlit as st

from app.charts import accuracy
from app.charts.base import Track
from app.screens.try_it.details import entries
from app.screens.try_it.details import texts as details_texts
from app.screens.try_it.sides import TrySide
from app.session import run_settings
from app.widgets import chart as chart_widget
from engine.events import Measured, Smoothed, Spent
from engine.results.report import report


def draw(sides: Sequence[TrySide], tracks: Sequence[Track]) -> None:
    """Draw everything that a visitor can take away."""
    for side, column in zip(sides, st.columns(len(sides), gap="large"), strict=True):
        with column:
            entries.head(side, len(sides) > 1)
            _as_code(side)
    if not tracks:
        return
    with st.container(horizontal=True):
        st.download_button(
            details_texts.CSV, partial(table_csv, tracks), f"leaklens-{tracks[0].run}.csv", "text/csv", key="csv",
            on_click="ignore",
        )  # fmt: skip
        st.download_button(
            details_texts.RECEIPT, partial(receipt, sides), f"leaklens-{tracks[0].run}.json", "application/json",
            key="receipt", help=details_texts.RECEIPT_HELP, on_click="ignore",
        )  # fmt: skip
    chart_widget.save_buttons({accuracy.PANEL.name: accuracy.PANEL.title})
    st.caption(details_texts.NOT_SAVED)


def _as_code(side: TrySide) -> None:
    """The run of one side as a command and as Python."""
    spec = side.main.spec if side.main else side.spec.canonical()
    st.caption(details_texts.COMMAND)
    st.code(run_settings.command(spec), language="bash", wrap_lines=True)
    st.caption(details_texts.PYTHON)
    st.code(run_settings.script(spec), language="python")


def receipt(sides: Sequence[TrySide]) -> str:
    """What was run on each side with every seed, and what came out, as JSON."""
    runs = []
    for side in sides:
        for run in (*side.runs, *side.baselines):
            made = run.example.made if run.example else None
            runs.append(
                {
                    "side": side.name, "id": run.id, "status": run.status, "made": made, "spec": run.spec,
                    "report": report(run.events),
                }
            )  # fmt: skip
    return json.dumps({"runs": runs}, indent=2, ensure_ascii=False, allow_nan=False)


def table_csv(tracks: Sequence[Track]) -> str:
    """Every number of these runs as CSV, one in each line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("run", "label", "round", "name", "who", "value", "unit", "delta", "accountant"))
    for track in tracks:
        for event in track.events:
            if isinstance(event, Measured):
                writer.writerow((track.run, track.label, event.round, event.name, event.who, event.value, "", "", ""))
            elif isinstance(event, Spent):
                terms = (event.unit, event.delta, event.accountant)
                writer.writerow((track.run, track.label, event.round, "epsilon", event.view, event.epsilon, *terms))
            elif isinstance(event, Smoothed):
                for row in _smoothed(event):
                    writer.writerow((track.run, track.label, event.round, *row, "", "", ""))
    return out.getvalue()


def _smoothed(event: Smoothed) -> Iterator[tuple[str, str, float | None]]:
    """The numbers of a smoothing as rows: name, who, value."""
    yield "threshold", "server", event.threshold
    for weight, frequencies in event.spectra.items():
        for frequency, values in enumerate(frequencies):
            for rank, value in zip(event.ranks[weight], values, strict=True):
                yield "singular value", f"{weight}, frequency {frequency}, rank {rank}", value
    for name, tables in (("roughness", event.rough), ("accuracy", event.accuracy)):
        for moment, rows in zip(("before", "after"), tables, strict=True):
            for label, row in enumerate(rows):
                for client, score in zip(event.clients, row, strict=True):
                    yield f"{name} {moment} smoothing", f"client {client}, class {label}", score
