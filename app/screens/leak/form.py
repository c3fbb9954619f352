"""The upper part of the Leak screen: whose picture, what the attacker sees, which protections and which attacks."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app.screens.leak import requests as leak_requests
from app.screens.leak import settings as leak_settings
from app.screens.leak.requests import choose, choose_run
from app.screens.leak.settings import LeakSettings
from app.session import owners, run_settings, services, session
from app.texts import attacks as attack_texts
from engine.errors import LeakLensError
from engine.jobs.thumbnails import Thumbnail, classes, thumbnails
from engine.specs import attack_grid

CSS = """
<style>
.st-key-leak-whose { gap: .45rem !important; }
.st-key-leak-whose [class*="st-key-whose-"] button { width: 56px; height: 56px; min-height: 56px; padding: 0;
  border-radius: 3px; background-size: cover; image-rendering: pixelated; border: 1px solid var(--hair); }
.st-key-leak-whose [class*="st-key-whose-"] button p { position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); }
.st-key-leak-whose button[kind="primary"] { outline: 3px solid var(--private); outline-offset: 1px; }
.st-key-leak-whose button:focus-visible { outline: 3px solid currentColor; outline-offset: 2px; }
"""


def missing(leak: LeakSettings) -> list[str]:
    """What to say of a link whose picture is not here, or is another visitor's; the default picture replaces it."""
    try:
        found = all(services.may_see_picture(name) for name in owners.own_pictures({"whose": leak.whose}))
        thumbnails(leak.run["dataset"], [leak.whose], services.store().home)
    except LeakLensError:
        found = False
    if found:
        return []
    session.remember("leak", replace(leak, whose=leak_settings.LeakSettings().whose))
    return [attack_texts.GONE_PICTURE]


def form() -> None:
    for said in session.recall("leak-told", []):
        st.html(f'<p class="ll-note" role="status">{html.escape(said)}</p>')
    _pictures(leak_requests.leak())
    leak = leak_requests.leak()
    with st.container(horizontal=True, vertical_alignment="bottom", key="leak-case"):
        _case(leak)


# --- whose picture -----------------------------------------------------------------------------------------


def _pictures(leak: LeakSettings) -> None:
    kind, _, place = leak.whose.partition("-")
    first = 0 if kind != "test" or int(place) < leak_settings.FEW else int(place) - leak_settings.FEW // 2
    names = [f"test-{first + more}" for more in range(leak_settings.FEW)]
    names = ([leak.whose] if kind == "train" else []) + names
    own = [f"own-{name}-{leak_requests.label(name)}" for name in leak_requests.own()]
    found = _found(leak, [*own, *names])
    st.html(f'<h2 class="ll-title">{attack_texts.WHOSE}</h2>{_faces(found, leak)}')
    with st.container(horizontal=True, vertical_alignment="center", key="leak-whose"):
        for one in found:
            st.button(
                attack_texts.thumb(one.title, one.name, one.name == leak.whose),
                key=f"whose-{one.name}",
                type="primary" if one.name == leak.whose else "secondary",
                help=one.title,
                on_click=lambda name=one.name: choose(whose=name),
            )
        with st.popover(attack_texts.OWN):
            _own()
        if kind == "own":
            st.button(attack_texts.DELETE, key="leak-delete", on_click=leak_requests.delete, help=attack_texts.OWN_HELP)


def _found(leak: LeakSettings, names: Sequence[str]) -> list[Thumbnail]:
    """Those that are there: one that cannot be read leaves the others."""
    found = list[Thumbnail]()
    for name in names:
        try:
            found += thumbnails(leak.run["dataset"], [name], services.store().home)
        except LeakLensError:
            continue
    return found


def _faces(found: Sequence[Thumbnail], leak: LeakSettings) -> str:
    face = ".st-key-leak-whose .st-key-whose-{name} button {{ background-image: url(data:image/png;base64,{png}); }}"
    other = ".st-key-leak-whose .st-key-whose-{name} button {{ outline: 2px dashed var(--private); }}"
    rules = [face.format(name=one.name, png=one.png) for one in found]
    beside = [other.format(name=name) for name in leak.pictures[1:]]
    return f"{CSS}{' '.join([*rules, *beside])}</style>"


def _own() -> None:
    st.caption(attack_texts.OWN_HELP)
    st.file_uploader(
        attack_texts.UPLOAD, ["png", "jpg", "jpeg"], key="leak-upload",
        on_change=lambda: leak_requests.bring(session.recall("leak-upload")),
    )  # fmt: skip
    if st.toggle(attack_texts.CAMERA_ON, key="leak-camera-on"):
        st.camera_input(
            attack_texts.CAMERA, key="leak-camera", on_change=lambda: leak_requests.bring(session.recall("leak-camera"))
        )


def _label(leak: LeakSettings) -> None:
    """What a picture of one's own shows, as its owner's phone would have said."""
    names = classes(leak.run["dataset"])
    now = min(int(leak.whose.rpartition("-")[2]), len(names) - 1)
    st.selectbox(
        attack_texts.LABEL, range(len(names)), format_func=names.__getitem__, help=attack_texts.LABEL_HELP, width=190,
        **session.tie("leak-label", now, leak_requests.relabel),
    )  # fmt: skip


# --- what the attacker sees --------------------------------------------------------------------------------


def _case(leak: LeakSettings) -> None:
    if leak.whose.startswith("own-"):
        _label(leak)
    whens = tuple(dict.fromkeys((*leak_settings.WHENS, leak.when)))
    st.selectbox(
        attack_texts.EYES, leak_settings.EYES, format_func=attack_texts.VIEWS.__getitem__, width=235,
        **session.tie("leak-eyes", leak.eyes, lambda value: choose(eyes=value)),
    )  # fmt: skip
    st.selectbox(
        attack_texts.WHEN, whens, format_func=lambda when: attack_texts.ROUNDS_OF.get(when, f"round {when}"), width=245,
        **session.tie("leak-when", leak.when, lambda value: choose(when=value)),
    )  # fmt: skip
    epochs = sorted({*leak_settings.EPOCHS, int(leak.run["epochs"])})
    st.selectbox(attack_texts.EPOCHS, epochs, width=100, **session.tie("leak-epochs", leak.run["epochs"], _epochs))
    st.number_input(
        attack_texts.MANY, 1, 8, width=165, **session.tie("leak-many", leak.many, lambda value: choose(many=value))
    )
    with st.popover(attack_texts.MODEL_DATA):
        _part("model", attack_texts.MODEL, leak)
        _part("dataset", attack_texts.DATASET, leak)
        st.number_input(
            attack_texts.ROUNDS,
            1,
            10_000,
            **session.tie("leak-rounds", leak.run["rounds"], lambda n: choose_run(rounds=n)),
        )
    with st.popover(attack_texts.GRID_OF):
        _grid(leak)


def _epochs(value: int) -> None:
    choose_run(epochs=value)


def _part(part: str, label: str, leak: LeakSettings) -> None:
    there = [one for one in run_settings.names(part) if run_settings.is_about_pictures(part, one)]
    titles = {one: run_settings.part_class(part, one).title for one in there}
    st.selectbox(
        label, list(titles), format_func=lambda one: titles.get(one, one),
        **session.tie(f"leak-{part}", leak.run[part], lambda value: choose_run(**{part: value})),
    )  # fmt: skip


# --- protections and attacks -------------------------------------------------------------------------------


def _grid(leak: LeakSettings) -> None:
    titles = column_titles(leak)
    st.multiselect(
        attack_texts.AGAINST, [key for key in titles if key != attack_grid.NONE],
        format_func=lambda key: titles.get(key, key),
        help=attack_texts.AGAINST_HELP, max_selections=leak_settings.MOST_COLUMNS - 1,
        **session.tie("leak-against", [key for key in leak.against if key != attack_grid.NONE], _against),
    )  # fmt: skip
    st.multiselect(
        attack_texts.ATTACKS, run_settings.attack_names(), format_func=run_settings.attack_title,
        **session.tie("leak-attacks", list(leak.attacks), lambda value: choose(attacks=tuple(value))),
    )  # fmt: skip
    st.number_input(
        attack_texts.RESTARTS, 1, leak_settings.MOST_RESTARTS, help=attack_texts.RESTARTS_HELP,
        **session.tie("leak-restarts", leak.restarts, lambda value: choose(restarts=value)),
    )  # fmt: skip
    st.number_input(
        attack_texts.ITERATIONS, 1, 100_000, placeholder="usual",
        **session.tie("leak-iterations", leak.iterations, lambda value: choose(iterations=value)),
    )  # fmt: skip
    st.number_input(
        attack_texts.CHANCE, 0, 2**53 - 1, **session.tie("leak-chance", leak.chance, lambda value: choose(chance=value))
    )


def _against(value: Sequence[str]) -> None:
    order = leak_settings.offered(leak_requests.leak())
    choose(against=(attack_grid.NONE, *sorted(value, key=order.index)))


def column_titles(leak: LeakSettings) -> dict[str, str]:
    """What each protection on offer is called; those that make no run are left out."""
    base, found = run_settings.spec_of(leak.run), dict[str, str]()
    for key in leak_settings.offered(leak):
        try:
            found[key] = leak_settings.column_title(key, leak_settings.run_of(base, key))
        except LeakLensError:
            continue
    return found
