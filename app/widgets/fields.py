"""The widget of each declared parameter. A refusal of the engine is shown under the field that it names."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_origin

import streamlit as st

from app.session import limits as class_limits
from app.session import run_settings, session
from app.session.screen_state import ScreenState
from app.texts import product
from engine.part import bounds

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


@dataclass(frozen=True)
class RunForm:
    """The settings of a run in a form, and what a change does with them."""

    name: str  # starts the keys of its widgets
    run: Mapping[str, Any]  # flat
    change: Callable[[dict[str, Any]], None]
    problem: str = ""  # why the engine refuses these settings

    def bind(self, path: str) -> dict[str, Any]:
        """The arguments that bind a widget to one setting."""
        return session.bind(f"{self.name}-{path}", self.run.get(path), lambda value: self.change({path: value}))


def field(form: RunForm, path: str, label: str = "", short: bool = False) -> None:
    """Show the widget of one setting. Its declaration decides the kind of widget."""
    info = run_settings.field_of(path, form.run)
    assert info is not None, path
    name = label or _sentence(info.title or path)
    text = None if short else info.description
    kind = run_settings.kind_of(info)
    binding = form.bind(path)
    if kind is bool:
        st.toggle(name, help=text, **binding)
    elif kind is str:
        st.selectbox(name, run_settings.choices(info), help=text, **binding)
    elif kind is int:
        st.number_input(name, step=1, **limited(path, form.run.get(path), text), **binding)
    elif kind is float:
        placeholder = "default" if run_settings.optional(info) else None
        st.number_input(name, step=0.1, format="%g", help=text, placeholder=placeholder, **binding)
    refusal(form, path)


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


def part(form: RunForm, name: str, label: str) -> None:
    """Show the choice of a part from its shelf."""
    titles = {part_name: run_settings.part_class(name, part_name).title for part_name in run_settings.names(name)}
    st.selectbox(label, list(titles), format_func=lambda choice: titles.get(choice, choice), **form.bind(name))
    refusal(form, name)


def refusal(form: RunForm, path: str) -> None:
    """Show why the engine refuses the value of this field, if it does."""
    if form.problem and refused_path(form.problem, form.run) == path:
        st.html(f'<p class="ll-problem" role="alert">{html.escape(form.problem)}</p>')


def refused_path(message: str, run: Mapping[str, Any]) -> str:
    """The path of the field that a refusal names: `run: rounds: must be ...` names `rounds`."""
    where, name = run_settings.refused_place(message)
    if where in ("", "run"):
        return name
    for part in run_settings.PARTS:
        if run.get(part) == where:
            return f"{part}.{name}"
    return ""


def _sentence(title: str) -> str:
    return title[:1].upper() + title[1:] if title[:1].isascii() else title
