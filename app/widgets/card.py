"""The result card: accuracy, ε in every view, the promise, what it cost, and what no number here covers."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app.texts import numbers, privacy
from engine.events import Event
from engine.results.report import report


def headline(events: Sequence[Event]) -> None:
    """The numbers at the top, the same at every moment of a run."""
    body = report(events)
    cells = [("accuracy", numbers.percent(body["accuracy"]), _seconds(body))]
    if body["accuracy-personal"] is not None:
        cells.append(("personal accuracy", numbers.percent(body["accuracy-personal"]), "mean over clients"))
    for view in privacy.VIEWS:
        if view in body["epsilon"] and view in ("outsider", "server"):
            cells.append(
                (privacy.SEEN_BY[view], f"ε {numbers.epsilon(body['epsilon'][view])}", "lower is more private")
            )
    facts = "".join(
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)} <small>{html.escape(note)}</small></dd></div>"
        for name, value, note in cells
    )
    st.html(f'<dl class="ll-facts">{facts}{badge(body["guarantee"])}</dl>')


def badge(guarantee: Mapping[str, Any] | None) -> str:
    if not guarantee:
        return ""
    name, side, _ = privacy.STATUSES[guarantee["status"]]
    sign = "✓" if side == "private" else "✕"
    return (
        f"<div><dt>guarantee: {html.escape(guarantee['status'])}</dt>"
        f'<dd class="ll-small"><span class="ll-badge ll-{side}">{sign} {html.escape(name)}</span></dd></div>'
    )


def privacy_block(bills: Sequence[Mapping[str, Any]], guarantee: Mapping[str, Any] | None) -> None:
    """Every view with its ε, its odds, and on demand the words that the number stands on."""
    rows: list[str] = []
    for bill in bills:
        view, epsilon, unit = bill["view"], bill["epsilon"], bill["unit"]
        side = "leaking" if epsilon is None or epsilon > privacy.VACUOUS else "private"
        odds = html.escape(privacy.odds(view, unit, epsilon))
        stands = html.escape(
            privacy.terms(
                *(bill[name] for name in ("unit", "view", "adjacency", "delta", "accountant", "bound", "sampling"))
            )
            if epsilon is not None
            else bill["reason"]
        )
        opened, short = (" open" if not rows else ""), "" if not epsilon else f"odds × {numbers.times(epsilon)}"
        value = numbers.epsilon(epsilon)
        rows.append(
            f'<details{opened}><summary><b class="ll-{side}">ε {value}</b> {html.escape(privacy.SEEN_BY[view])} '
            f'<span class="ll-faint">{short}</span></summary><p>{odds}</p><p>{stands}</p></details>'
        )
    absent = (guarantee or {}).get("absent") or {}
    rows += [
        f'<details><summary><span class="ll-faint">no ε</span> {html.escape(privacy.SEEN_BY[view])}</summary>'
        f"<p>{html.escape(reason)}</p></details>"
        for view, reason in absent.items()
    ]
    st.html(f'<div class="ll-views">{"".join(rows)}</div>')


def reason(guarantee: Mapping[str, Any] | None) -> None:
    """Why the badge says what it says."""
    if guarantee:
        gist, why = privacy.STATUSES[guarantee["status"]][2], _upper(guarantee["reason"].rstrip("."))
        st.html(f'<p class="ll-faint ll-why">{html.escape(f"{gist} {why}.")}</p>')


def promise(guarantee: Mapping[str, Any] | None) -> None:
    if not guarantee:
        return
    name, side, gist = privacy.STATUSES[guarantee["status"]]
    reason = guarantee["reason"].rstrip(".")
    why = html.escape(f"{gist} {_upper(reason)}.")
    st.html(f'<p class="ll-said"><b class="ll-{side}">{html.escape(name)}</b>. {why}</p>')


def not_covered() -> None:
    with st.expander("Not covered by any number here"):
        st.markdown("\n".join(f"- {line}" for line in privacy.NOT_COVERED))


def _seconds(body: Mapping[str, Any]) -> str:
    seconds = body["seconds"]
    return f"after {body['rounds-done']} rounds" + (f" in {numbers.duration(seconds)}" if seconds is not None else "")


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
