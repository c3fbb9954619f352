"""The widget of each declared parameter. A refusal of the engine is shown under the field that it names."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_origin

import streamlit as st

from app.session import limits as class_limits
from app.session import run_settings, session
from app.session.screen_state import ScreenState
from app.texts import product
from engine.part import bounds

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

STOPS = (8.0, 4.0, 3.0, 2.0, 1.5, 1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.03, 0.01)  # of the noise, from private to leaky
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


def field(path: str, label: str = "", short: bool = False) -> None:
    """Show the widget of one setting. Its declaration decides the kind of widget."""
    info = run_settings.field_of(path, session.settings())
    assert info is not None, path
    name = label or _sentence(info.title or path)
    text = None if short else info.description
    kind = run_settings.kind_of(info)
    binding = session.bind_setting(path)
    if kind is bool:
        st.toggle(name, help=text, **binding)
    elif kind is str:
        st.selectbox(name, run_settings.choices(info), help=text, **binding)
    elif kind is int:
        st.number_input(name, step=1, **limited(path, session.settings().get(path), text), **binding)
    elif kind is float:
        placeholder = "default" if run_settings.optional(info) else None
        st.number_input(name, step=0.1, format="%g", help=text, placeholder=placeholder, **binding)
    refusal(path)


def limited(name: str, value: Any, text: str | None = None, declared: float | None = None) -> dict[str, Any]:
    """The arguments of an input whose largest value a class may limit: that value, and the help that says so.

    A link may have brought a larger value. It stays, and the page refuses the run.
    """
    most = class_limits.most(name)
    if most is None:
        return {"max_value": declared, "help": text}
    reason = product.CLASS_MOST.format(most=most)
    return {"max_value": max(most, value or 0), "help": f"{text} {reason}" if text else reason}


def refused(run: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a button that disable it and say why, where a class refuses every run of this size."""
    too_large = class_limits.too_large(run)
    return {"disabled": too_large is not None, "help": str(too_large) if too_large else None}


def screen_field(state: ScreenState[Any], name: str, titles: Mapping[str, str] | None = None, **options: Any) -> None:
    """Show the widget of one setting of a screen. `titles` are its choices where the declaration does not hold them."""
    info = state.settings.model_fields[name]
    label = _sentence(info.title or name)
    limits = bounds(info)
    tied = {"help": info.description, **options, **state.bind(name)}
    words = titles or {word: word for word in run_settings.choices(info)}
    if get_origin(info.annotation) is tuple:
        st.multiselect(label, list(words), format_func=lambda word: words.get(word, word), wrap=True, **tied)
    elif words:
        st.selectbox(label, list(words), format_func=lambda word: words.get(word, word), **tied)
    elif run_settings.kind_of(info) is bool:
        st.toggle(label, **tied)
    elif run_settings.kind_of(info) is int:
        most = limited(name, getattr(state.current(), name), info.description, limits.get("le"))
        st.number_input(label, limits.get("ge"), step=1, placeholder="default", **{**tied, **most})
    else:
        st.text_input(label, max_chars=_longest(info), **tied)


def _longest(info: FieldInfo) -> int | None:
    """The most characters that a field declares."""
    return next((rule.max_length for rule in info.metadata if hasattr(rule, "max_length")), None)


def part(name: str, label: str) -> None:
    """Show the choice of a part from its shelf."""
    titles = {part_name: run_settings.part_class(name, part_name).title for part_name in run_settings.names(name)}
    st.selectbox(
        label, list(titles), format_func=lambda choice: titles.get(choice, choice), **session.bind_setting(name)
    )


def stops(path: str, label: str, values: tuple[float, ...], show: Callable[[Any], str]) -> None:
    """Show a slider of a few values, from private to leaky. A setting between them adds its own value."""
    value = session.settings().get(path)
    descending = values[0] > values[-1]
    own = [value] if isinstance(value, int | float) else []
    options = sorted({*values, *own}, reverse=descending)
    st.select_slider(label, options, format_func=show, **session.bind_setting(path, f"{path}:slider"))
    st.html(
        f'<div class="ll-ends"><span class="ll-private">◀ {product.PRIVATE_END}</span>'
        f'<span class="ll-leaking">{product.LEAKY_END} ▶</span></div>'
    )
    refusal(path)


def refusal(path: str) -> None:
    """Show why the engine refuses the value of this field, if it does."""
    message = str(session.recall("problem", ""))
    if message and refused_path(message) == path:
        st.html(f'<p class="ll-problem" role="alert">{html.escape(message)}</p>')


def refused_path(message: str) -> str:
    """The path of the field that a refusal names: `run: rounds: must be ...` names `rounds`."""
    where, name = run_settings.refused_place(message)
    if where in ("", "run"):
        return name
    for part in run_settings.PARTS:
        if session.settings().get(part) == where:
            return f"{part}.{name}"
    return ""


def _sentence(title: str) -> str:
    return title[:1].upper() + title[1:] if title[:1].isascii() else title
