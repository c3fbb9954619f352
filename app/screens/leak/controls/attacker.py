"""What the upload holds, who attacks it, and the model and data of the run."""

from __future__ import annotations

import streamlit as st

from app.screens.leak.requests import STATE
from app.screens.leak.settings import EPOCHS, ROUNDS, LeakSettings
from app.session import run_settings, session
from app.texts import attack_form as form_texts
from app.widgets import attacker_picker, fields
from app.widgets.attacker_picker import AttackerPicker


def content(leak: LeakSettings) -> None:
    """Ask what is in the upload. A link may have another number of pictures than the form offers."""
    kinds = list(dict.fromkeys((*form_texts.CONTENTS, leak.content)))
    st.segmented_control(
        form_texts.UPLOADED, kinds, required=True, format_func=form_texts.content,
        help=form_texts.UPLOADED_HELP, **session.bind("leak-content", leak.content, choose_content),
    )  # fmt: skip


def choose_content(kind: str) -> None:
    """Choose what the upload holds, and attacks that can read it."""
    chosen = STATE.current().with_content(kind)
    STATE.choose(upload=chosen.upload, many=chosen.many, attacks=chosen.attacks)


def attacker(leak: LeakSettings) -> None:
    """Ask who attacks, what it knows, when, and how long."""
    picker = AttackerPicker(leak.grid.with_(columns=()), _choose_attacks, "leak", len(leak.grid.runs()))
    with st.popover(attacker_picker.summary(picker), key="leak-attacker"):
        attacker_picker.show(picker)
        rounds = tuple(dict.fromkeys((*ROUNDS, leak.when)))
        st.selectbox(form_texts.WHEN, rounds, format_func=_round_title, **STATE.bind("when"))
        fields.screen_field(STATE, "restarts")
        fields.screen_field(STATE, "iterations")
        fields.screen_field(STATE, "chance")


def _choose_attacks(attacks: tuple[str, ...], upload: str) -> None:
    STATE.choose(attacks=attacks, upload=upload)


def model_and_data(leak: LeakSettings) -> None:
    """Ask for the run that is attacked."""
    with st.popover(form_texts.MODEL_DATA):
        _part("model", form_texts.MODEL)
        _part("dataset", form_texts.DATASET)
        epochs = sorted({*EPOCHS, int(leak.run["epochs"])})
        label = form_texts.EPOCHS if leak.upload == "listed" else form_texts.EPOCHS_OF_CLIENT
        st.selectbox(label, epochs, **STATE.bind_run("epochs"))
        st.number_input(form_texts.ROUNDS, 1, 10_000, **STATE.bind_run("rounds"))


def _round_title(when: str) -> str:
    return form_texts.ROUNDS_OF.get(when, f"round {when}")


def _part(part: str, label: str) -> None:
    titles = {}
    for name in run_settings.names(part):
        if run_settings.is_about_pictures(part, name):
            titles[name] = run_settings.part_class(part, name).title
    st.selectbox(label, list(titles), format_func=lambda name: titles.get(name, name), **STATE.bind_run(part))
