"""The left side of the Lab: a question that reads as a sentence, and what is known of it before the click."""

from __future__ import annotations

import html
from dataclasses import asdict

import streamlit as st

from app import card, forms, orders, question, state, words
from engine.errors import LeakLensError

MORE = ("epochs", "batch", "lr", "momentum", "weight-decay", "sampling", "delta", "honest-share", "seed")
WAIT_S = 0.3


def getting_ready() -> None:
    """Before the shelves are loaded: two seconds after a cold start."""

    @st.fragment(run_every=WAIT_S)
    def waiting() -> None:
        if state.kitchen().ready():
            st.rerun()
        st.html(f'<p class="ll-said ll-faint" role="status">{words.GETTING_READY}</p>')

    waiting()


def closed(error: LeakLensError) -> None:
    """The home or the store cannot be used."""
    st.html(f'<h1 class="ll-title">{html.escape(words.PROMISE)}</h1>')
    st.html(f'<p class="ll-problem" role="alert">{html.escape(str(error))}</p>')
    st.button("Try again", key="try-again")


def broken() -> None:
    """The shelves could not be loaded: a part of the installation is missing."""
    trouble = state.kitchen().trouble
    said = str(trouble) if isinstance(trouble, LeakLensError) else words.BROKEN_SHELVES.format(error=trouble)
    st.html(f'<p class="ll-problem" role="alert">{html.escape(said)}</p>')


def form() -> None:
    for said in state.recall("told", []):
        st.html(f'<p class="ll-note" role="status">{html.escape(said)}</p>')
    _refused_beforehand()
    with st.container(horizontal=True):
        forms.part("model", "Train")
        forms.part("dataset", "on")
    with st.container(horizontal=True):
        forms.field("clients", "with clients", short=True)
        forms.field("sampled", "of them a round", short=True)
        forms.field("rounds", "for rounds", short=True)
    forms.part("partition", "dealt out")
    for path in _own("partition"):
        forms.field(path)
    forms.part("method", "learning by")
    _protection()
    with st.expander("More settings"):
        _more()
    _forecast()


def _own(part: str, but: tuple[str, ...] = ()) -> list[str]:
    fields = question.own_fields(part, state.settings()[part])
    return [f"{part}.{name}" for name in fields if name not in but]


def _refused_beforehand() -> None:
    """The question as it stands, tried before anything is drawn, so that a refusal stands under its field."""
    state.remember("problem", "")
    try:
        question.spec_of(state.settings())
    except LeakLensError as error:
        state.remember("problem", str(error))


# --- protection ------------------------------------------------------------------------------------------

BY_NOISE, BY_EPSILON, NONE = "by noise", "by ε", "not at all"


def _protection() -> None:
    settings = state.settings()
    if "method.noise" not in settings:
        st.html(
            '<p class="ll-said"><b class="ll-leaking">Nothing is protected</b> by this method: it has no noise.</p>'
        )
        return
    who = "each client" if question.spec_unit(settings) == "user" else "each record"
    state.remember("w:protect", chosen())
    st.segmented_control(
        f"protect {who}", (BY_NOISE, BY_EPSILON, NONE), key="w:protect", on_change=_protect, required=True
    )
    if chosen() == BY_NOISE:
        forms.stops("method.noise", "noise σ", forms.STOPS, "{:g}".format)
    elif chosen() == BY_EPSILON:
        st.selectbox("as seen by", words.VIEWS, format_func=lambda view: words.SEEN_BY[view], **state.bound("view"))
        forms.stops("target-epsilon", "ε", forms.EPSILONS, "{:g}".format)


def chosen() -> str:
    settings = state.settings()
    if settings.get("target-epsilon") is not None:
        return BY_EPSILON
    return BY_NOISE if settings.get("method.noise") else NONE


def _protect() -> None:
    how = state.recall("w:protect")
    if how == BY_EPSILON:
        state.choose({"target-epsilon": 8.0, "view": state.settings().get("view") or "outsider"})
    else:
        noise = state.settings().get("method.noise") or 1.0
        cleared = (
            {"target-epsilon": None, "view": None}
            if state.settings().get("budget") is None
            else {"target-epsilon": None}
        )
        state.choose({**cleared, "method.noise": noise if how == BY_NOISE else 0.0})


def _more() -> None:
    solved = ("noise",) if chosen() == BY_EPSILON else ()  # the target decides it
    paths = [*_own("method", but=solved), *MORE, *_own("model"), *_own("dataset"), "budget"]
    for pair in zip(paths[::2], [*paths[1::2], ""], strict=False):
        for column, path in zip(st.columns(2, vertical_alignment="bottom"), pair, strict=True):
            with column:
                if path:
                    forms.field(path)
    if chosen() != BY_EPSILON and state.settings().get("budget") is not None:
        st.selectbox("budget as seen by", words.VIEWS, **state.bound("view", "budget-view"))
    st.number_input("seeds, drawn as a band", 1, question.SEEDS, key="seeds")


# --- before the click ------------------------------------------------------------------------------------


def _forecast() -> None:
    problem = str(state.recall("problem", ""))
    if problem:
        # here too, where the button rests: the field may be folded away, or not be drawn at all
        st.html(f'<p class="ll-problem" role="alert">{html.escape(problem)}</p>')
        st.button("Run", type="primary", disabled=True, width="stretch", help="First mend what is marked above.")
        return
    if trouble := str(state.recall("trouble", "")):
        st.html(f'<p class="ll-problem" role="alert">{html.escape(trouble)}</p>')
    spec = question.spec_of(state.settings())
    told = state.forecast_of(spec.canonical())
    for one in told.problems:
        role = "alert" if one.fatal else "status"
        kind = "problem" if one.fatal else "note"
        st.html(f'<p class="ll-{kind}" role="{role}">{html.escape(f"{one.reason}. {one.remedy}.")}</p>')
    st.button("Run", type="primary", width="stretch", key="run", on_click=orders.run, disabled=told.fatal)
    if told.fatal:
        return
    twice = words.TWICE if question.twin_of(spec) else ""
    st.caption(words.EXPECTED.format(time=words.duration(told.seconds), twice=twice))
    guarantee = asdict(told.guarantee) if told.guarantee else None
    bills = {one.view: asdict(one) for one in told.answers}
    card.promise(guarantee)
    card.privacy([bills[view] for view in words.VIEWS if view in bills], guarantee)
