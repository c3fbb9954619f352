"""Pinned runs: their thin lines in every chart, and a table of the settings in which they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app.batch.view import ShownRun, find
from app.charts.base import Track
from app.screens.lab import requests as lab_requests
from app.session import run_settings, url
from app.texts import numbers, privacy
from engine.results.report import report


def pinned(main: ShownRun) -> list[Track]:
    """The pinned runs as tracks, without the main run. The label of each names its differences from the main run."""
    runs = [run for run in map(find, url.linked("pins")) if run and run.id != main.id]
    tracks = []
    for place, run in enumerate(runs, start=1):
        tracks.append(Track(_label(main, run), "pin", run.method, run.events, run.id, place))
    return tracks


def _label(main: ShownRun, run: ShownRun) -> str:
    _, differences = differing([main.spec, run.spec])
    words = [f"{path.rpartition('.')[2]} {value}" for path, value in differences.items() if value != "–"]
    return f"pinned: {', '.join(words[:2]) or run.id}"


def differing(specs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each spec, the settings that are not the same in all of them."""
    tables = [run_settings.flat(spec) for spec in specs]
    paths = list(dict.fromkeys(path for settings in tables for path in settings))
    different = [path for path in paths if len({repr(settings.get(path)) for settings in tables}) > 1]
    return [{path: settings.get(path, "–") for path in different} for settings in tables]


def table() -> None:
    """The main run and the pinned runs, with the settings in which they differ."""
    ids = list(dict.fromkeys((*url.linked("run")[:1], *url.linked("pins"))))
    runs = [run for run in map(find, ids) if run]
    if len(runs) < 2:
        return
    st.html('<h2 class="ll-title">Pinned runs, differences only</h2>')
    bodies = [report(run.events) for run in runs]
    units = list(dict.fromkeys(body["unit"] for body in bodies if body["unit"]))
    rows = []
    for run, body, differences in zip(runs, bodies, differing([run.spec for run in runs]), strict=True):
        rows.append(
            {
                "run": "this run" if run.id == ids[0] else run.id,
                "accuracy": numbers.percent(body["accuracy"]),
                **_epsilons(body, units),
                **{path: str(value) for path, value in differences.items()},
            }
        )
    st.dataframe(rows, hide_index=True, alt="Pinned runs and what differs between them")
    with st.container(horizontal=True):
        for pin in url.linked("pins"):
            st.button(f"Unpin {pin}", key=f"unpin:{pin}", on_click=lab_requests.unpin, args=(pin,), type="tertiary")


def _epsilons(body: Mapping[str, Any], units: Sequence[str]) -> dict[str, str]:
    """ε in two views, with separate columns for each protected unit: ε of two units do not compare."""
    cells = {}
    for unit in units:
        for view in ("outsider", "server"):
            has_epsilon = body["unit"] == unit and view in body["epsilon"]
            value = numbers.epsilon(body["epsilon"][view]) if has_epsilon else "–"
            cells[f"ε {privacy.SEEN_BY[view]}, {privacy.PER[unit]}"] = value
    return cells
