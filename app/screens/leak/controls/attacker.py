"""What the upload holds, who attacks it, and the model and data of the run."""

from __future__ import annotations

import streamlit as st

from app.batch import attack_cells
from app.screens.leak.requests import STATE
from app.screens.leak.settings import EPOCHS, ROUNDS, LeakSettings
from app.session import run_settings, session
from app.texts import attack_form as form_texts
from app.texts import attacks as attack_texts
from app.widgets import fields
from engine.specs.attack_grid import AttackGrid


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
    """Ask who attacks, when, and how."""
    with st.popover(form_texts.attacker(leak.eyes, len(leak.attacks))):
        fields.screen_field(STATE, "eyes", attack_texts.VIEWS)
        rounds = tuple(dict.fromkeys((*ROUNDS, leak.when)))
        st.selectbox(form_texts.WHEN, rounds, format_func=_round_title, **STATE.bind("when"))
        fields.screen_field(STATE, "attacks", _attack_titles(leak.grid))
        fields.screen_field(STATE, "restarts")
        fields.screen_field(STATE, "iterations")
        fields.screen_field(STATE, "chance")


def model_and_data(leak: LeakSettings) -> None:
    """Ask for the run that is attacked."""
    with st.popover(form_texts.MODEL_DATA):
        _part("model", form_texts.MODEL)
        _part("dataset", form_texts.DATASET)
        epochs = sorted({*EPOCHS, int(leak.run["epochs"])})
        label = form_texts.EPOCHS if leak.upload == "listed" else form_texts.EPOCHS_OF_CLIENT
        st.selectbox(label, epochs, **STATE.bind_run("epochs"))
        st.number_input(form_texts.ROUNDS, 1, 10_000, **STATE.bind_run("rounds"))


def _attack_titles(grid: AttackGrid) -> dict[str, str]:
    """The title of each attack, with a mark where it does not fit this upload and model."""
    names = run_settings.attack_names()
    requests = attack_cells.with_refusals(grid.with_(columns=(), attacks=names).requests())
    fitting = {request.attack for request in requests if request.spec}
    return {name: form_texts.fitting(run_settings.attack_title(name), name in fitting) for name in names}


def _round_title(when: str) -> str:
    return form_texts.ROUNDS_OF.get(when, f"round {when}")


def _part(part: str, label: str) -> None:
    titles = {}
    for name in run_settings.names(part):
        if run_settings.is_about_pictures(part, name):
            titles[name] = run_settings.part_class(part, name).title
    st.selectbox(label, list(titles), format_func=lambda name: titles.get(name, name), **STATE.bind_run(part))
