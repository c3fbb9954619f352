"""The left side of the Lab: a question that reads as a sentence, and what is known of it before the click."""

from __future__ import annotations

import html
from dataclasses import asdict

import streamlit as st

from app.batch import submit as batch_submit
from app.session import run_settings, services, session
from app.texts import numbers, privacy, product
from app.widgets import card
from app.widgets import fields as part_fields
from engine.errors import LeakLensError

MORE = ("epochs", "batch", "lr", "momentum", "weight-decay", "sampling", "delta", "honest-share", "seed")


def form() -> None:
    for said in session.recall("told", []):
        st.html(f'<p class="ll-note" role="status">{html.escape(said)}</p>')
    _refused_beforehand()
    with st.container(horizontal=True):
        part_fields.part("model", "Train")
        part_fields.part("dataset", "on")
    with st.container(horizontal=True):
        part_fields.field("clients", "with clients", short=True)
        part_fields.field("sampled", "of them a round", short=True)
        part_fields.field("rounds", "for rounds", short=True)
    part_fields.part("partition", "dealt out")
    for path in _own("partition"):
        part_fields.field(path)
    part_fields.part("method", "learning by")
    _protection()
    with st.expander("More settings"):
        _more()
    _forecast()


def _own(part: str, but: tuple[str, ...] = ()) -> list[str]:
    fields = run_settings.own_fields(part, session.settings()[part])
    return [f"{part}.{name}" for name in fields if name not in but]


def _refused_beforehand() -> None:
    """The question as it stands, tried before anything is drawn, so that a refusal stands under its field."""
    session.remember("problem", "")
    try:
        run_settings.spec_of(session.settings())
    except LeakLensError as error:
        session.remember("problem", str(error))


# --- protection ------------------------------------------------------------------------------------------

BY_NOISE, BY_EPSILON, NONE = "by noise", "by ε", "not at all"


def _protection() -> None:
    settings = session.settings()
    if "method.noise" not in settings:
        st.html(
            '<p class="ll-said"><b class="ll-leaking">Nothing is protected</b> by this method: it has no noise.</p>'
        )
        return
    who = "each client" if run_settings.spec_unit(settings) == "user" else "each record"
    session.remember("w:protect", chosen())
    st.segmented_control(
        f"protect {who}", (BY_NOISE, BY_EPSILON, NONE), key="w:protect", on_change=_protect, required=True
    )
    if chosen() == BY_NOISE:
        part_fields.stops("method.noise", "noise σ", part_fields.STOPS, "{:g}".format)
    elif chosen() == BY_EPSILON:
        st.selectbox(
            "as seen by", privacy.VIEWS, format_func=lambda view: privacy.SEEN_BY[view], **session.bound("view")
        )
        part_fields.stops("target-epsilon", "ε", part_fields.EPSILONS, "{:g}".format)


def chosen() -> str:
    settings = session.settings()
    if settings.get("target-epsilon") is not None:
        return BY_EPSILON
    return BY_NOISE if settings.get("method.noise") else NONE


def _protect() -> None:
    how = session.recall("w:protect")
    if how == BY_EPSILON:
        session.choose({"target-epsilon": 8.0, "view": session.settings().get("view") or "outsider"})
    else:
        noise = session.settings().get("method.noise") or 1.0
        cleared = (
            {"target-epsilon": None, "view": None}
            if session.settings().get("budget") is None
            else {"target-epsilon": None}
        )
        session.choose({**cleared, "method.noise": noise if how == BY_NOISE else 0.0})


def _more() -> None:
    solved = ("noise",) if chosen() == BY_EPSILON else ()  # the target decides it
    paths = [*_own("method", but=solved), *MORE, *_own("model"), *_own("dataset"), "budget"]
    for pair in zip(paths[::2], [*paths[1::2], ""], strict=False):
        for column, path in zip(st.columns(2, vertical_alignment="bottom"), pair, strict=True):
            with column:
                if path:
                    part_fields.field(path)
    if chosen() != BY_EPSILON and session.settings().get("budget") is not None:
        st.selectbox("budget as seen by", privacy.VIEWS, **session.bound("view", "budget-view"))
    st.number_input("seeds, drawn as a band", 1, run_settings.SEEDS, key="seeds")


# --- before the click ------------------------------------------------------------------------------------


def _forecast() -> None:
    problem = str(session.recall("problem", ""))
    if problem:
        # here too, where the button rests: the field may be folded away, or not be drawn at all
        st.html(f'<p class="ll-problem" role="alert">{html.escape(problem)}</p>')
        st.button("Run", type="primary", disabled=True, width="stretch", help="First mend what is marked above.")
        return
    if trouble := str(session.recall("trouble", "")):
        st.html(f'<p class="ll-problem" role="alert">{html.escape(trouble)}</p>')
    spec = run_settings.spec_of(session.settings())
    told = services.forecast_of(spec.canonical())
    for one in told.problems:
        role = "alert" if one.fatal else "status"
        kind = "problem" if one.fatal else "note"
        st.html(f'<p class="ll-{kind}" role="{role}">{html.escape(f"{one.reason}. {one.remedy}.")}</p>')
    st.button("Run", type="primary", width="stretch", key="run", on_click=batch_submit.run, disabled=told.fatal)
    if told.fatal:
        return
    twice = product.TWICE if run_settings.baseline_of(spec) else ""
    st.caption(product.EXPECTED.format(time=numbers.duration(told.seconds), twice=twice))
    guarantee = asdict(told.guarantee) if told.guarantee else None
    bills = {one.view: asdict(one) for one in told.answers}
    card.promise(guarantee)
    card.privacy_block([bills[view] for view in privacy.VIEWS if view in bills], guarantee)
