"""The form of the Leak screen: the picture, what the attacker sees, the protections and the attacks."""

from __future__ import annotations

import html
import platform
from collections.abc import Sequence

import streamlit as st

from app.screens.leak.columns import offered_titles
from app.screens.leak.requests import STATE
from app.screens.leak.settings import (
    ATTACKS,
    EPOCHS,
    MOST_COLUMNS,
    OFFERED,
    ROUNDS,
    LeakSettings,
    fitting_attacks,
    offered,
)
from app.screens.leak.uploads import requests
from app.session import limits as class_limits
from app.session import run_settings, services, session
from app.texts import attacks as attack_texts
from app.widgets import fields
from engine.errors import LeakLensError
from engine.jobs.owners import own_pictures
from engine.jobs.thumbnails import Thumbnail, classes, thumbnails
from engine.specs import attack_grid

CSS = """
<style>
.st-key-leak-whose { gap: .45rem !important; }
.st-key-leak-whose [class*="st-key-whose-"] button { width: 56px; height: 56px; min-height: 56px; padding: 0;
  border-radius: 3px; background-size: cover; image-rendering: pixelated; border: 1px solid var(--hair); }
.st-key-leak-whose [class*="st-key-whose-"] button p { position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); }
.st-key-leak-whose button[kind="primary"] { outline: 3px solid var(--ink); outline-offset: 1px; }
@media (max-width: 700px) {  /* the picture comes first on a phone; the settings of the attack come last */
  .st-key-leak-whose { flex-wrap: nowrap !important; overflow-x: auto; padding: 4px; }
  .st-key-leak-whose > div { flex-shrink: 0; }
  [data-testid="stLayoutWrapper"]:has(> .st-key-leak-case) { order: 1; }
  .ll-terms { display: none; }  /* of the ε above the columns, which a phone does not show */
  .st-key-leak-case > div { flex: 1 1 45% !important; min-width: 0 !important; }
}
.st-key-leak-whose button:focus-visible { outline: 3px solid currentColor; outline-offset: 2px; }
"""


def with_available_picture(leak: LeakSettings) -> tuple[LeakSettings, list[str]]:
    """Return the settings with the default picture if theirs is missing or another visitor's, and a note about it.

    Privacy: without the check of the owner, a link would show an uploaded picture to visitors who did not upload it.
    """
    try:
        names = own_pictures({"whose": leak.whose})
        available = all(services.may_see_picture(name) for name in names)
        thumbnails(leak.run["dataset"], [leak.whose], services.store().home)
    except LeakLensError:
        available = False
    if available:
        return leak, []
    return leak.with_(whose=LeakSettings().whose), [attack_texts.GONE_PICTURE]


def form() -> None:
    for note in STATE.notes():
        st.html(f'<p class="ll-note" role="status">{html.escape(note)}</p>')
    _pictures(STATE.current())
    leak = STATE.current()
    with st.container(horizontal=True, vertical_alignment="bottom", key="leak-case"):
        _target(leak)


# --- the picture -------------------------------------------------------------------------------------------


def _pictures(leak: LeakSettings) -> None:
    kind, _, _ = leak.whose.partition("-")
    offered = _readable_thumbnails(leak, _offered_pictures(leak))
    st.html(f'<h2 class="ll-title">{attack_texts.WHOSE}</h2>{_button_css(offered, leak)}')
    with st.container(horizontal=True, vertical_alignment="center", key="leak-whose"):
        for thumbnail in offered:
            chosen = thumbnail.name == leak.whose
            st.button(
                attack_texts.thumbnail_alt(thumbnail.title, thumbnail.name, chosen),
                key=f"whose-{thumbnail.name}",
                type="primary" if chosen else "secondary",
                help=thumbnail.title,
                on_click=lambda name=thumbnail.name: STATE.choose(whose=name),
            )
        with st.popover(attack_texts.OWN):
            _upload()
        if kind == "own":
            st.button(attack_texts.DELETE, key="leak-delete", on_click=requests.delete, help=_where_it_goes())


def _offered_pictures(leak: LeakSettings) -> list[str]:
    """Return the uploaded pictures, then test pictures around the chosen one."""
    kind, _, place = leak.whose.partition("-")
    first = 0
    if kind == "test" and int(place) >= OFFERED:
        first = int(place) - OFFERED // 2
    names = [f"own-{name}-{requests.label(name)}" for name in requests.own()]
    if kind == "train":
        names.append(leak.whose)
    names += [f"test-{first + offset}" for offset in range(OFFERED)]
    return names


def _readable_thumbnails(leak: LeakSettings, names: Sequence[str]) -> list[Thumbnail]:
    """Return a thumbnail of each picture that can be read. One unreadable picture does not hide the others."""
    readable = list[Thumbnail]()
    for name in names:
        try:
            readable += thumbnails(leak.run["dataset"], [name], services.store().home)
        except LeakLensError:
            continue
    return readable


def _button_css(offered: Sequence[Thumbnail], leak: LeakSettings) -> str:
    """Return the style that draws each picture on its button and outlines the neighbours in the upload."""
    face = ".st-key-leak-whose .st-key-whose-{name} button {{ background-image: url(data:image/png;base64,{png}); }}"
    neighbour = ".st-key-leak-whose .st-key-whose-{name} button {{ outline: 2px dashed var(--ink); }}"
    rules = [face.format(name=thumbnail.name, png=thumbnail.png) for thumbnail in offered]
    rules += [neighbour.format(name=name) for name in leak.pictures[1:]]
    return f"{CSS}{' '.join(rules)}</style>"


def _upload() -> None:
    st.caption(_where_it_goes())
    st.file_uploader(
        attack_texts.UPLOAD,
        ["png", "jpg", "jpeg"],
        key="leak-upload",
        on_change=lambda: requests.add_picture(session.recall("leak-upload")),
    )
    if st.toggle(attack_texts.CAMERA_ON, key="leak-camera-on"):
        st.camera_input(
            attack_texts.CAMERA,
            key="leak-camera",
            on_change=lambda: requests.add_picture(session.recall("leak-camera")),
        )


def _where_it_goes() -> str:
    """Where an uploaded picture goes, and when it is deleted."""
    if not class_limits.class_mode():
        return attack_texts.OWN_HELP
    return attack_texts.OWN_HELP_CLASS.format(name=platform.node() or "this server")


def _label(leak: LeakSettings) -> None:
    """Ask for the class of an uploaded picture, since a client trains on labelled data."""
    names = classes(leak.run["dataset"])
    label = int(leak.whose.rpartition("-")[2])
    label = min(label, len(names) - 1)
    st.selectbox(
        attack_texts.LABEL, range(len(names)), format_func=names.__getitem__, help=attack_texts.LABEL_HELP, width=190,
        **session.bind("leak-label", label, requests.relabel),
    )  # fmt: skip


# --- what the attacker sees --------------------------------------------------------------------------------


def _target(leak: LeakSettings) -> None:
    if leak.whose.startswith("own-"):
        _label(leak)
    rounds = tuple(dict.fromkeys((*ROUNDS, leak.when)))
    fields.screen_field(STATE, "eyes", attack_texts.VIEWS, width=235)
    st.selectbox(attack_texts.WHEN, rounds, format_func=_round_title, width=245, **STATE.bind("when"))
    epochs = sorted({*EPOCHS, int(leak.run["epochs"])})
    label = attack_texts.EPOCHS if leak.upload == "listed" else attack_texts.EPOCHS_OF_CLIENT
    st.selectbox(label, epochs, width=110, **STATE.bind_run("epochs"))
    st.selectbox(
        attack_texts.UPLOADED, list(attack_texts.UPLOADS), format_func=attack_texts.UPLOADS.__getitem__, width=285,
        help=attack_texts.UPLOADED_HELP, **session.bind("leak-content", leak.upload, _choose_upload),
    )  # fmt: skip
    if leak.upload == "listed":
        fields.screen_field(STATE, "many", width=165)
    fields.screen_field(STATE, "each")
    with st.popover(attack_texts.MODEL_DATA):
        _part("model", attack_texts.MODEL)
        _part("dataset", attack_texts.DATASET)
        st.number_input(attack_texts.ROUNDS, 1, 10_000, **STATE.bind_run("rounds"))
    with st.popover(attack_texts.GRID_OF):
        _grid(leak)


def _choose_upload(upload: str) -> None:
    """Choose what the upload holds, and attacks that can read it."""
    attacks = fitting_attacks(upload, STATE.current().attacks)
    STATE.choose(upload=upload, attacks=attacks or ATTACKS)


def _round_title(when: str) -> str:
    return attack_texts.ROUNDS_OF.get(when, f"round {when}")


def _part(part: str, label: str) -> None:
    titles = {}
    for name in run_settings.names(part):
        if run_settings.is_about_pictures(part, name):
            titles[name] = run_settings.part_class(part, name).title
    st.selectbox(label, list(titles), format_func=lambda name: titles.get(name, name), **STATE.bind_run(part))


# --- protections and attacks -------------------------------------------------------------------------------


def _grid(leak: LeakSettings) -> None:
    titles = offered_titles(leak)
    offered = [key for key in titles if key != attack_grid.NONE]
    chosen = [key for key in leak.against if key != attack_grid.NONE]
    st.multiselect(
        attack_texts.AGAINST, offered, format_func=lambda key: titles.get(key, key),
        help=attack_texts.AGAINST_HELP, max_selections=MOST_COLUMNS - 1,
        **session.bind("leak-against", chosen, _choose_columns),
    )  # fmt: skip
    fields.screen_field(
        STATE, "attacks", {name: run_settings.attack_title(name) for name in run_settings.attack_names()}
    )
    fields.screen_field(STATE, "restarts")
    fields.screen_field(STATE, "iterations")
    fields.screen_field(STATE, "chance")


def _choose_columns(keys: Sequence[str]) -> None:
    order = offered(STATE.current())
    STATE.choose(against=(attack_grid.NONE, *sorted(keys, key=order.index)))
