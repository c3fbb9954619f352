"""The result card: accuracy, ε in every view, the guarantee, and what no number covers."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app.texts import numbers, privacy
from engine.epsilon import Epsilon
from engine.events import Event
from engine.results.report import report


def headline(events: Sequence[Event]) -> None:
    """Show the main numbers of a run, at any moment of it."""
    body = report(events)
    cells = [("accuracy", numbers.percent(body["accuracy"]), _seconds(body))]
    if body["accuracy-personal"] is not None:
        cells.append(("personal accuracy", numbers.percent(body["accuracy-personal"]), "mean over clients"))
    for view in privacy.VIEWS:
        if view in body["epsilon"] and view in ("outsider", "server"):
            epsilon = numbers.epsilon(body["epsilon"][view])
            cells.append((privacy.SEEN_BY[view], f"ε {epsilon}", "lower is more private"))
    facts = ""
    for name, value, note in cells:
        definition = f"{html.escape(value)} <small>{html.escape(note)}</small>"
        facts += f"<div><dt>{html.escape(name)}</dt><dd>{definition}</dd></div>"
    st.html(f'<dl class="ll-facts">{facts}{badge(body["guarantee"])}</dl>')


def badge(guarantee: Mapping[str, Any] | None) -> str:
    """The status of a guarantee as HTML."""
    if not guarantee:
        return ""
    name, side, _ = privacy.STATUSES[guarantee["status"]]
    sign = "✓" if side == "private" else "✕"
    return (
        f"<div><dt>guarantee: {html.escape(guarantee['status'])}</dt>"
        f'<dd class="ll-small"><span class="ll-badge ll-{side}">{sign} {html.escape(name)}</span></dd></div>'
    )


def privacy_block(epsilons: Sequence[Epsilon], guarantee: Mapping[str, Any] | None) -> None:
    """Show every view with its ε and its odds. A view opens to show the terms of its ε, such as δ and adjacency."""
    rows = [_view_row(epsilon, opened=place == 0) for place, epsilon in enumerate(epsilons)]
    absent = (guarantee or {}).get("absent") or {}
    for view, reason in absent.items():
        seen_by = html.escape(privacy.SEEN_BY[view])
        summary = f'<summary><span class="ll-faint">no ε</span> {seen_by}</summary>'
        rows.append(f"<details>{summary}<p>{html.escape(reason)}</p></details>")
    st.html(f'<div class="ll-views">{"".join(rows)}</div>')


def _view_row(epsilon: Epsilon, opened: bool) -> str:
    value = epsilon.value
    side = "leaking" if value is None or value > privacy.VACUOUS else "private"
    odds = html.escape(privacy.odds(epsilon))
    terms = html.escape(epsilon.reason if value is None else privacy.terms(epsilon))
    seen_by = html.escape(privacy.SEEN_BY[epsilon.view])
    return (
        f"<details{' open' if opened else ''}>"
        f'<summary><b class="ll-{side}">ε {numbers.epsilon(value)}</b> {seen_by} '
        f"</summary><p>{odds}</p><p>{terms}</p></details>"
    )


def reason(guarantee: Mapping[str, Any] | None) -> None:
    """Show in faint text why the guarantee has its status."""
    if guarantee:
        st.html(f'<p class="ll-faint ll-why">{html.escape(_explanation(guarantee))}</p>')


def _explanation(guarantee: Mapping[str, Any]) -> str:
    gist = privacy.STATUSES[guarantee["status"]][2]
    why = _upper(guarantee["reason"].rstrip("."))
    return f"{gist} {why}."


def guarantee_block(guarantee: Mapping[str, Any] | None) -> None:
    """Show the status of the guarantee, and why it has this status."""
    if not guarantee:
        return
    name, side, _ = privacy.STATUSES[guarantee["status"]]
    explanation = html.escape(_explanation(guarantee))
    st.html(f'<p class="ll-lead"><b class="ll-{side}">{html.escape(name)}</b>. {explanation}</p>')


def not_covered() -> None:
    with st.expander("Not covered by any number here"):
        st.markdown("\n".join(f"- {line}" for line in privacy.NOT_COVERED))


def _seconds(body: Mapping[str, Any]) -> str:
    rounds = f"after {body['rounds-done']} rounds"
    if body["seconds"] is None:
        return rounds
    return f"{rounds} in {numbers.duration(body['seconds'])}"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
