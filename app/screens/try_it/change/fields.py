"""The settings of Try behind *change*: model, data, training, the exact noise, seeds, and what is attacked."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import streamlit as st

from app.screens.try_it import requests as try_requests
from app.screens.try_it import texts as try_texts
from app.screens.try_it.settings import STATE, TrySettings
from app.session import run_settings, session
from app.texts import attack_form as form_texts
from app.texts import privacy
from app.widgets import attacker_picker, fields
from app.widgets.attacker_picker import AttackerPicker
from app.widgets.fields import RunForm

MORE = ("epochs", "batch", "lr", "momentum", "weight-decay", "sampling", "seed")
OF_PROTECTION = ("target-epsilon", "budget", "delta", "honest-share")
PICTURES = ("portrait-0", *(f"test-{place}" for place in range(12)))


OPEN = "try-change-open"  # in the session: whether the fields are shown


def line(settings: TrySettings) -> bool:
    """Draw the line about the settings, and the button that shows their fields. Returns whether they are shown."""
    titles = {part: run_settings.part_title(part, settings.run[part]) for part in run_settings.PARTS}
    text = try_texts.settings(settings.run, titles, TrySettings.default().run)
    opened = bool(session.recall(OPEN))
    st.html(f'<p class="ll-why">{html.escape(text)}</p>', width="content")
    label = try_texts.CLOSE if opened else try_texts.CHANGE
    st.button(label, key="try-change", type="tertiary", on_click=session.remember, args=(OPEN, not opened))
    return opened


def show(settings: TrySettings, problems: Mapping[str, str]) -> None:
    """Draw all fields."""
    with st.container(key="try-fields", border=True):
        _shared(_form("A", problems))
        _attacked(settings, refused=bool(problems))
        _protection("A", problems, settings)
        if settings.other is not None:
            _protection("B", problems, settings)


def _form(side: str, problems: Mapping[str, str]) -> RunForm:
    return RunForm(
        f"try-{side}", STATE.run_of(side), lambda changes: STATE.change(side, changes), problems.get(side, "")
    )


def _own(run: Mapping[str, object], part: str) -> list[str]:
    """The paths of the fields that a part declares itself."""
    return [f"{part}.{name}" for name in run_settings.own_fields(part, str(run[part]))]


def _shared(form: RunForm) -> None:
    """The fields of side A, which side B follows."""
    with st.container(horizontal=True):
        fields.part(form, "dataset", "Data")
        fields.part(form, "model", "Model")
        fields.part(form, "partition", "Partition")
    with st.container(horizontal=True):
        for path, label in (("clients", "People"), ("sampled", "A round"), ("rounds", "Rounds")):
            with st.container():
                fields.field(form, path, label, short=True)
        with st.container():
            st.number_input(try_texts.SEEDS, 1, **_seeds())
    _grid(form, [*MORE, *_own(form.run, "partition"), *_own(form.run, "model"), *_own(form.run, "dataset")])


def _seeds() -> dict[str, Any]:
    return {**fields.limited("seeds", STATE.current().seeds, declared=run_settings.SEEDS), **STATE.bind("seeds")}


def _protection(side: str, problems: Mapping[str, str], settings: TrySettings) -> None:
    """The exact fields of the protection of one side: noise, clip, and the target ε."""
    form = _form(side, problems)
    if settings.other is not None:
        st.html(f'<h2 class="ll-title">{try_texts.OF_SIDE.format(side=side)}</h2>')
    _grid(form, [*_own(form.run, "method"), *OF_PROTECTION])
    if form.run.get("target-epsilon") is not None or form.run.get("budget") is not None:
        st.caption(try_texts.TARGET_OF.format(against=privacy.AGAINST[form.run["view"] or settings.eyes]))
        fields.refusal(form, "view")


def _grid(form: RunForm, paths: list[str]) -> None:
    """Fields in rows of four."""
    for start in range(0, len(paths), 4):
        columns = st.columns(4, vertical_alignment="bottom")
        for column, path in zip(columns, paths[start : start + 4], strict=False):
            with column:
                fields.field(form, path)


def _attacked(settings: TrySettings, refused: bool) -> None:
    """Whose picture is attacked, in which upload, and by which attackers: which fit, refused settings do not say."""
    names = tuple(dict.fromkeys((*PICTURES, settings.whose)))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(try_texts.PICTURE, names, format_func=_picture, **STATE.bind("whose"))
        st.selectbox(
            try_texts.CONTENT, list(form_texts.CONTENTS), format_func=form_texts.content,
            **session.bind("try-content", settings.content, try_requests.choose_content),
        )  # fmt: skip
        st.selectbox(
            try_texts.WHEN, ("first", "last"), format_func=form_texts.ROUNDS_OF.__getitem__, **STATE.bind("when")
        )
        if refused:
            return
        picker = AttackerPicker(settings.grid(settings.run), try_requests.choose_attackers, "try", len(settings.runs))
        opened = st.popover(attacker_picker.summary(picker), key="try-attacker", on_change="rerun")
        if opened.open:
            with opened:
                attacker_picker.show(picker)


def _picture(name: str) -> str:
    kind, _, place = name.partition("-")
    if kind == "portrait":
        return try_texts.PORTRAIT
    return "your own picture" if kind == "own" else f"{kind} picture {place}"
