"""From a declared parameter to the widget that asks for it; what the engine refuses stands under its own field."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import streamlit as st

from app.session import run_settings, session
from app.texts import product

STOPS = (8.0, 4.0, 3.0, 2.0, 1.5, 1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.03, 0.01)  # of the noise, the private end first
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


def field(path: str, label: str = "", short: bool = False) -> None:
    """The widget of one setting, as its declaration asks."""
    info = run_settings.field_of(path, session.settings())
    assert info is not None, path
    name = label or _sentence(info.title or path)
    text = None if short else info.description
    kind, how = run_settings.kind_of(info), session.bound(path)
    if kind is bool:
        st.toggle(name, help=text, **how)
    elif kind is str:
        st.selectbox(name, run_settings.choices(info), help=text, **how)
    elif kind is int:
        st.number_input(name, step=1, help=text, **how)
    elif kind is float:
        placeholder = "usual" if run_settings.optional(info) else None
        st.number_input(name, step=0.1, format="%g", help=text, placeholder=placeholder, **how)
    refusal(path)


def part(name: str, label: str) -> None:
    """The choice of a part from its shelf."""
    titles = {one: run_settings.part_class(name, one).title for one in run_settings.names(name)}
    st.selectbox(label, list(titles), format_func=lambda one: titles.get(one, one), **session.bound(name))


def stops(path: str, label: str, usual: tuple[float, ...], show: Callable[[Any], str]) -> None:
    """A slider of a few stops, the private end first, both ends named; a value in between gets a stop of its own."""
    value = session.settings().get(path)
    falls = usual[0] > usual[-1]
    options = sorted({*usual, *([value] if isinstance(value, int | float) else [])}, reverse=falls)
    st.select_slider(label, options, format_func=show, **session.bound(path, f"{path}:slider"))
    st.html(
        f'<div class="ll-ends"><span class="ll-private">◀ {product.PRIVATE_END}</span>'
        f'<span class="ll-leaking">{product.LEAKY_END} ▶</span></div>'
    )
    refusal(path)


def refusal(path: str) -> None:
    """What the engine has against this field's value."""
    said = str(session.recall("problem", ""))
    if said and blamed(said) == path:
        st.html(f'<p class="ll-problem" role="alert">{html.escape(said)}</p>')


def blamed(said: str) -> str:
    """The path of the field that a refusal names: `run: rounds: must be ...` is about `rounds`."""
    who, _, rest = said.partition(": ")
    name, colon, _ = rest.partition(": ")
    if not colon or " " in name:
        return ""
    if who == "run":
        return name
    return next((f"{one}.{name}" for one in run_settings.PARTS if session.settings().get(one) == who), "")


def _sentence(title: str) -> str:
    return title[:1].upper() + title[1:] if title[:1].isascii() else title
