"""The upper part of the Leak screen: whose picture, what the attacker sees, which protections and which attacks."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app import leak_orders, leaks, owners, question, state, words_leak
from app.leak_orders import choose, choose_run
from app.leaks import Leak
from engine.errors import LeakLensError
from engine.jobs.thumbnails import Thumb, classes, thumbs

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


def missing(leak: Leak) -> list[str]:
    """What to say of a link whose picture is not here, or is another visitor's; the default picture replaces it."""
    try:
        found = all(state.may_see_picture(name) for name in owners.own_pictures({"whose": leak.whose}))
        thumbs(leak.run["dataset"], [leak.whose], state.store().home)
    except LeakLensError:
        found = False
    if found:
        return []
    state.remember("leak", replace(leak, whose=leaks.Leak().whose))
    return [words_leak.GONE_PICTURE]


def form() -> None:
    for said in state.recall("leak-told", []):
        st.html(f'<p class="ll-note" role="status">{html.escape(said)}</p>')
    _pictures(leak_orders.leak())
    leak = leak_orders.leak()
    with st.container(horizontal=True, vertical_alignment="bottom", key="leak-case"):
        _case(leak)


# --- whose picture -----------------------------------------------------------------------------------------


def _pictures(leak: Leak) -> None:
    kind, _, place = leak.whose.partition("-")
    first = 0 if kind != "test" or int(place) < leaks.FEW else int(place) - leaks.FEW // 2
    names = [f"test-{first + more}" for more in range(leaks.FEW)]
    names = ([leak.whose] if kind == "train" else []) + names
    own = [f"own-{name}-{leak_orders.label(name)}" for name in leak_orders.own()]
    found = _found(leak, [*own, *names])
    st.html(f'<h2 class="ll-title">{words_leak.WHOSE}</h2>{_faces(found, leak)}')
    with st.container(horizontal=True, vertical_alignment="center", key="leak-whose"):
        for one in found:
            st.button(
                words_leak.thumb(one.title, one.name, one.name == leak.whose),
                key=f"whose-{one.name}",
                type="primary" if one.name == leak.whose else "secondary",
                help=one.title,
                on_click=lambda name=one.name: choose(whose=name),
            )
        with st.popover(words_leak.OWN):
            _own()
        if kind == "own":
            st.button(words_leak.DELETE, key="leak-delete", on_click=leak_orders.delete, help=words_leak.OWN_HELP)


def _found(leak: Leak, names: Sequence[str]) -> list[Thumb]:
    """Those that are there: one that cannot be read leaves the others."""
    found = list[Thumb]()
    for name in names:
        try:
            found += thumbs(leak.run["dataset"], [name], state.store().home)
        except LeakLensError:
            continue
    return found


def _faces(found: Sequence[Thumb], leak: Leak) -> str:
    face = ".st-key-leak-whose .st-key-whose-{name} button {{ background-image: url(data:image/png;base64,{png}); }}"
    other = ".st-key-leak-whose .st-key-whose-{name} button {{ outline: 2px dashed var(--private); }}"
    rules = [face.format(name=one.name, png=one.png) for one in found]
    beside = [other.format(name=name) for name in leak.pictures[1:]]
    return f"{CSS}{' '.join([*rules, *beside])}</style>"


def _own() -> None:
    st.caption(words_leak.OWN_HELP)
    st.file_uploader(
        words_leak.UPLOAD, ["png", "jpg", "jpeg"], key="leak-upload",
        on_change=lambda: leak_orders.bring(state.recall("leak-upload")),
    )  # fmt: skip
    if st.toggle(words_leak.CAMERA_ON, key="leak-camera-on"):
        st.camera_input(
            words_leak.CAMERA, key="leak-camera", on_change=lambda: leak_orders.bring(state.recall("leak-camera"))
        )


def _label(leak: Leak) -> None:
    """What a picture of one's own shows, as its owner's phone would have said."""
    names = classes(leak.run["dataset"])
    now = min(int(leak.whose.rpartition("-")[2]), len(names) - 1)
    st.selectbox(
        words_leak.LABEL, range(len(names)), format_func=names.__getitem__, help=words_leak.LABEL_HELP, width=190,
        **state.tie("leak-label", now, leak_orders.relabel),
    )  # fmt: skip


# --- what the attacker sees --------------------------------------------------------------------------------


def _case(leak: Leak) -> None:
    if leak.whose.startswith("own-"):
        _label(leak)
    whens = tuple(dict.fromkeys((*leaks.WHENS, leak.when)))
    st.selectbox(
        words_leak.EYES, leaks.EYES, format_func=words_leak.VIEWS.__getitem__, width=235,
        **state.tie("leak-eyes", leak.eyes, lambda value: choose(eyes=value)),
    )  # fmt: skip
    st.selectbox(
        words_leak.WHEN, whens, format_func=lambda when: words_leak.ROUNDS_OF.get(when, f"round {when}"), width=245,
        **state.tie("leak-when", leak.when, lambda value: choose(when=value)),
    )  # fmt: skip
    epochs = sorted({*leaks.EPOCHS, int(leak.run["epochs"])})
    st.selectbox(words_leak.EPOCHS, epochs, width=100, **state.tie("leak-epochs", leak.run["epochs"], _epochs))
    st.number_input(
        words_leak.MANY, 1, 8, width=165, **state.tie("leak-many", leak.many, lambda value: choose(many=value))
    )
    with st.popover(words_leak.MODEL_DATA):
        _part("model", words_leak.MODEL, leak)
        _part("dataset", words_leak.DATASET, leak)
        st.number_input(
            words_leak.ROUNDS, 1, 10_000, **state.tie("leak-rounds", leak.run["rounds"], lambda n: choose_run(rounds=n))
        )
    with st.popover(words_leak.GRID_OF):
        _grid(leak)


def _epochs(value: int) -> None:
    choose_run(epochs=value)


def _part(part: str, label: str, leak: Leak) -> None:
    there = [one for one in question.names(part) if leaks.of_pictures(part, one)]
    titles = {one: question.part_class(part, one).title for one in there}
    st.selectbox(
        label, list(titles), format_func=lambda one: titles.get(one, one),
        **state.tie(f"leak-{part}", leak.run[part], lambda value: choose_run(**{part: value})),
    )  # fmt: skip


# --- protections and attacks -------------------------------------------------------------------------------


def _grid(leak: Leak) -> None:
    titles = column_titles(leak)
    st.multiselect(
        words_leak.AGAINST, [key for key in titles if key != leaks.NONE], format_func=lambda key: titles.get(key, key),
        help=words_leak.AGAINST_HELP, max_selections=leaks.MOST_COLUMNS - 1,
        **state.tie("leak-against", [key for key in leak.against if key != leaks.NONE], _against),
    )  # fmt: skip
    st.multiselect(
        words_leak.ATTACKS, leaks.attack_names(), format_func=leaks.attack_title,
        **state.tie("leak-attacks", list(leak.attacks), lambda value: choose(attacks=tuple(value))),
    )  # fmt: skip
    st.number_input(
        words_leak.RESTARTS, 1, leaks.MOST_RESTARTS, help=words_leak.RESTARTS_HELP,
        **state.tie("leak-restarts", leak.restarts, lambda value: choose(restarts=value)),
    )  # fmt: skip
    st.number_input(
        words_leak.ITERATIONS, 1, 100_000, placeholder="usual",
        **state.tie("leak-iterations", leak.iterations, lambda value: choose(iterations=value)),
    )  # fmt: skip
    st.number_input(
        words_leak.CHANCE, 0, 2**53 - 1, **state.tie("leak-chance", leak.chance, lambda value: choose(chance=value))
    )


def _against(value: Sequence[str]) -> None:
    order = leaks.offered(leak_orders.leak())
    choose(against=(leaks.NONE, *sorted(value, key=order.index)))


def column_titles(leak: Leak) -> dict[str, str]:
    """What each protection on offer is called; those that make no run are left out."""
    base, found = question.spec_of(leak.run), dict[str, str]()
    for key in leaks.offered(leak):
        try:
            found[key] = leaks.column_title(key, leaks.run_of(base, key))
        except LeakLensError:
            continue
    return found
