"""The form of the Leak screen: the picture, then the controls of the upload, the attacker and the columns."""

from __future__ import annotations

import html
from collections.abc import Sequence

import streamlit as st

from app.screens.leak.controls import attacker, protections
from app.screens.leak.requests import STATE
from app.screens.leak.settings import LeakSettings
from app.screens.leak.uploads import requests
from app.session import messages, photos, services, session, url
from app.texts import attack_form as form_texts
from engine.errors import LeakLensError
from engine.jobs.owners import own_pictures
from engine.jobs.thumbnails import Thumbnail, classes, thumbnails
from engine.specs import attack_series

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
  [data-testid="stLayoutWrapper"]:has(> .st-key-leak-settings) { order: 1; }
  .st-key-leak-case { column-gap: .4rem !important; }
  .st-key-leak-content [role="radiogroup"] { flex-wrap: wrap; overflow: visible; }
  .st-key-leak-easiest { gap: 0 !important; } .st-key-leak-easiest button { min-height: 1.8rem; }
  .ll-whose { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .ll-terms { display: none; }  /* of the ε above the columns, which a phone does not show */
}
.st-key-leak-ordinary button p, .st-key-leak-others button p { text-decoration: underline; }
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
    note = form_texts.GONE_PICTURE if leak.whose.startswith("own-") else form_texts.NO_PICTURE.format(name=leak.whose)
    return leak.with_(whose=LeakSettings().whose), [note]


def form() -> None:
    for note in STATE.notes():
        st.html(f'<p class="ll-note" role="status">{html.escape(note)}</p>')
    _pictures(STATE.current())
    leak = STATE.current()
    with st.container(key="leak-settings"):
        with st.container(horizontal=True, vertical_alignment="bottom", key="leak-case"):
            if leak.whose.startswith("own-"):
                _label(leak)
            attacker.content(leak)
            attacker.attacker(leak)
            attacker.model_and_data(leak)
        with st.container(horizontal=True, vertical_alignment="bottom", key="leak-columns"):
            protections.columns(leak)


# --- the picture -------------------------------------------------------------------------------------------


def _pictures(leak: LeakSettings) -> None:
    kind, _, _ = leak.whose.partition("-")
    offered = _readable_thumbnails(leak, _offered_pictures(leak))
    st.html(f'<h2 class="ll-title ll-whose">{form_texts.WHOSE}</h2>{_button_css(offered, leak)}')
    with st.container(horizontal=True, vertical_alignment="center", key="leak-whose"):
        for number, thumbnail in enumerate(offered, start=1):  # own pictures come first
            chosen = thumbnail.name == leak.whose
            st.button(
                form_texts.thumbnail_alt(thumbnail.title, thumbnail.name, chosen, number),
                key=f"whose-{thumbnail.name}",
                type="primary" if chosen else "secondary",
                help=thumbnail.title,
                on_click=lambda name=thumbnail.name: STATE.choose(whose=name),
            )
        with st.popover(form_texts.OWN):
            _upload()
        if kind == "own":
            st.button(form_texts.DELETE, key="leak-delete", on_click=requests.delete, help=photos.where_it_goes())


def _offered_pictures(leak: LeakSettings) -> list[str]:
    """Return the uploaded pictures, a chosen training picture or portrait, then test pictures around the chosen one."""
    names = [f"own-{name}-{requests.label(name)}" for name in requests.own()]
    if leak.whose.startswith(("train-", "portrait-")):
        names.append(leak.whose)
    return [*names, *attack_series.offered(leak.whose)]


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
    trouble = STATE.trouble()
    if trouble:  # the popover covers the place where the page shows it
        messages.show("problem", trouble)
    st.caption(photos.where_it_goes())
    st.file_uploader(
        form_texts.UPLOAD,
        ["png", "jpg", "jpeg"],
        key="leak-upload",
        on_change=lambda: requests.add_picture(session.recall("leak-upload")),
    )
    if not url.offers_camera():
        return
    if st.toggle(form_texts.CAMERA_ON, key="leak-camera-on"):
        st.camera_input(
            form_texts.CAMERA,
            key="leak-camera",
            on_change=lambda: requests.add_picture(session.recall("leak-camera")),
        )


def _label(leak: LeakSettings) -> None:
    """Ask for the class of an uploaded picture, since a client trains on labelled data."""
    names = classes(leak.run["dataset"])
    label = int(leak.whose.rpartition("-")[2])
    label = min(label, len(names) - 1)
    st.selectbox(
        form_texts.LABEL, range(len(names)), format_func=names.__getitem__, help=form_texts.LABEL_HELP, width=190,
        **session.bind("leak-label", label, requests.relabel),
    )  # fmt: skip
