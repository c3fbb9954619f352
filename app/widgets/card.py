"""ε in every view, the guarantee, and what no number covers."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import streamlit as st

from app.texts import numbers, privacy
from engine.epsilon import Epsilon


def privacy_block(epsilons: Mapping[str, Epsilon], guarantee: Mapping[str, Any] | None, opened: str) -> None:
    """Show every view with its ε and its odds. A view opens to show the terms of its ε, such as δ and adjacency.

    `opened` is the observer whose view is open at first.
    """
    ordered = [epsilons[view] for view in privacy.VIEWS if view in epsilons]
    rows = [_view_row(epsilon, opened=epsilon.view == opened) for epsilon in ordered]
    absent = (guarantee or {}).get("absent") or {}
    for view, reason in absent.items():
        against = html.escape(privacy.AGAINST[view])
        summary = f'<summary><span class="ll-faint">no ε</span> {against}</summary>'
        rows.append(f"<details{' open' if view == opened else ''}>{summary}<p>{html.escape(reason)}</p></details>")
    st.html(f'<div class="ll-views">{"".join(rows)}</div>')


def _view_row(epsilon: Epsilon, opened: bool) -> str:
    value = epsilon.value
    size = privacy.size_of(epsilon)
    odds = html.escape(privacy.odds(epsilon))
    terms = html.escape(epsilon.reason if value is None else privacy.terms(epsilon))
    against = html.escape(privacy.AGAINST[epsilon.view])
    return (
        f"<details{' open' if opened else ''}>"
        f'<summary><b>{_bounded(epsilon)}</b> {against}: <b class="ll-{size.side}">{size.word}</b>'
        f"</summary><p>{odds}</p><p>{terms}</p></details>"
    )


def _bounded(epsilon: Epsilon) -> str:
    """An ε, and that the accountant of a forecast gives a bound: the result of the run may be smaller."""
    at_most = "at most " if epsilon.accountant == "rdp" and epsilon.value is not None else ""
    return f"ε {at_most}{numbers.epsilon(epsilon.value)}"


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


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
