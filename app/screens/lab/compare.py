"""Pinned runs: thin lines in every chart, and one table of nothing but their differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app.batch import submit as batch_submit
from app.batch.view import ShownRun, find
from app.charts.base import Track
from app.session import run_settings, url
from app.texts import numbers, privacy
from engine.results.report import report


def pinned(main: ShownRun) -> list[Track]:
    """The pinned runs as tracks, without the one on the page; each is named by what it does otherwise."""
    found = [one for one in map(find, url.linked("pins")) if one and one.id != main.id]
    return [
        Track(_label(main, one), "pin", one.method, one.events, one.id, place)
        for place, one in enumerate(found, start=1)
    ]


def _label(main: ShownRun, one: ShownRun) -> str:
    apart = differing([main.spec, one.spec])[1]
    words_of = [f"{path.rpartition('.')[2]} {value}" for path, value in apart.items() if value != "–"]
    return f"pinned: {', '.join(words_of[:2]) or one.id}"


def differing(specs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of every question only what is not the same in all of them."""
    tables = [run_settings.flat(spec) for spec in specs]
    paths = list(dict.fromkeys(path for table in tables for path in table))
    apart = [path for path in paths if len({repr(table.get(path)) for table in tables}) > 1]
    return [{path: table.get(path, "–") for path in apart} for table in tables]


def table() -> None:
    """The run on the page and the pinned ones, side by side."""
    ids = list(dict.fromkeys((*url.linked("run")[:1], *url.linked("pins"))))
    shown = [one for one in map(find, ids) if one]
    if len(shown) < 2:
        return
    st.html('<h2 class="ll-title">Pinned runs, differences only</h2>')
    bodies = [report(one.events) for one in shown]
    rows = []
    for one, body, apart in zip(shown, bodies, differing([one.spec for one in shown]), strict=True):
        rows.append(
            {
                "run": "this run" if one.id == ids[0] else one.id,
                "accuracy": numbers.percent(body["accuracy"]),
                **_bills(body, list(dict.fromkeys(body["unit"] for body in bodies if body["unit"]))),
                **{path: str(value) for path, value in apart.items()},
            }
        )
    st.dataframe(rows, hide_index=True, alt="Pinned runs and what differs between them")
    with st.container(horizontal=True):
        for run in url.linked("pins"):
            st.button(f"Unpin {run}", key=f"unpin:{run}", on_click=batch_submit.unpin, args=(run,), type="tertiary")


def _bills(body: Mapping[str, Any], units: Sequence[str]) -> dict[str, str]:
    """ε in two views; a column of its own for each unit that is protected, where there are several."""
    return {
        f"ε {privacy.SEEN_BY[view]}, {privacy.PER[unit]}": numbers.epsilon(body["epsilon"][view])
        if body["unit"] == unit and view in body["epsilon"]
        else "–"
        for unit in units
        for view in ("outsider", "server")
    }
