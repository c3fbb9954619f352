"""The left side of the Lab: the settings of a run as a sentence, and its forecast before the click."""

from __future__ import annotations

import html
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.screens.lab import requests as lab_requests
from app.session import limits as class_limits
from app.session import messages, run_settings, services, session
from app.texts import privacy, product
from app.widgets import card
from app.widgets import fields as part_fields
from engine.errors import LeakLensError
from engine.specs import attack_grid

if TYPE_CHECKING:
    from engine.specs.run import RunSpec

MORE = ("epochs", "batch", "lr", "momentum", "weight-decay", "sampling", "delta", "honest-share", "seed")


def form() -> None:
    """Draws the form, its problems and its forecast."""
    for note in session.recall("notes", []):
        st.html(f'<p class="ll-note" role="status">{html.escape(note)}</p>')
    _check_settings()
    with st.container(horizontal=True):
        part_fields.part("model", "Train")
        part_fields.part("dataset", "on")
    with st.container(horizontal=True):
        part_fields.field("clients", "with clients", short=True)
        part_fields.field("sampled", "of them a round", short=True)
        part_fields.field("rounds", "for rounds", short=True)
    part_fields.part("partition", "partitioned as")
    for path in _own("partition"):
        part_fields.field(path)
    part_fields.part("method", "learning by")
    _protection()
    with st.expander("More settings"):
        _more()
    _forecast()


def _own(part: str, but: tuple[str, ...] = ()) -> list[str]:
    """The paths of the fields that a part declares itself, without those in `but`."""
    fields = run_settings.own_fields(part, session.settings()[part])
    return [f"{part}.{name}" for name in fields if name not in but]


def _check_settings() -> None:
    """Validates the settings before any field is drawn, so that a refusal is shown under its field."""
    session.remember("problem", "")
    try:
        run_settings.spec_of(session.settings())
    except LeakLensError as error:
        session.remember("problem", str(error))


# --- protection --------------------------------------------------------------------------------------------

BY_NOISE, BY_EPSILON, NONE = "by noise", "by ε", "not at all"


def _protection() -> None:
    settings = session.settings()
    if "method.noise" not in settings:
        st.html(
            '<p class="ll-lead"><b class="ll-leaking">Nothing is protected</b> by this method: it has no noise.</p>'
        )
        return
    unit = "each client" if run_settings.spec_unit(settings) == "user" else "each record"
    session.remember("w:protect", chosen())
    st.segmented_control(
        f"protect {unit}", (BY_NOISE, BY_EPSILON, NONE), key="w:protect", on_change=_protect, required=True
    )
    if chosen() == BY_NOISE:
        part_fields.stops("method.noise", "noise σ", part_fields.STOPS, "{:g}".format)
    elif chosen() == BY_EPSILON:
        st.selectbox(
            "as seen by", privacy.VIEWS, format_func=lambda view: privacy.SEEN_BY[view], **session.bind_setting("view")
        )
        part_fields.stops("target-epsilon", "ε", part_fields.EPSILONS, "{:g}".format)


def chosen() -> str:
    """The kind of protection that the settings describe."""
    settings = session.settings()
    if settings.get("target-epsilon") is not None:
        return BY_EPSILON
    return BY_NOISE if settings.get("method.noise") else NONE


def _protect() -> None:
    """Changes the settings to the kind of protection that the visitor chose."""
    choice = session.recall("w:protect")
    if choice == BY_EPSILON:
        session.choose({"target-epsilon": 8.0, "view": session.settings().get("view") or "outsider"})
    else:
        noise = session.settings().get("method.noise") or 1.0
        changes: dict[str, Any] = {"target-epsilon": None}
        if session.settings().get("budget") is None:
            changes["view"] = None
        session.choose({**changes, "method.noise": noise if choice == BY_NOISE else 0.0})


def _more() -> None:
    solved = ("noise",) if chosen() == BY_EPSILON else ()  # the engine solves the noise from the target
    paths = [*_own("method", but=solved), *MORE, *_own("model"), *_own("dataset"), "budget"]
    for pair in zip(paths[::2], [*paths[1::2], ""], strict=False):
        for column, path in zip(st.columns(2, vertical_alignment="bottom"), pair, strict=True):
            with column:
                if path:
                    part_fields.field(path)
    if chosen() != BY_EPSILON and session.settings().get("budget") is not None:
        st.selectbox("budget as seen by", privacy.VIEWS, **session.bind_setting("view", "budget-view"))
    most = part_fields.limited("seeds", session.recall("seeds", 1), declared=run_settings.SEEDS)
    st.number_input("seeds, drawn as a band", 1, key="seeds", **most)


# --- the forecast ------------------------------------------------------------------------------------------


def _forecast() -> None:
    """The problems or the forecast of the run, and the Run button."""
    problem = str(session.recall("problem", ""))
    if problem:
        # The problem is repeated next to the button, because its field may be hidden in a closed expander.
        st.html(f'<p class="ll-problem" role="alert">{html.escape(problem)}</p>')
        st.button("Run", type="primary", disabled=True, width="stretch", help="Fix the marked fields first.")
        return
    spec = run_settings.spec_of(session.settings())
    too_large = class_limits.too_large(spec.canonical(), session.recall("seeds", 1))
    trouble = str(too_large or session.recall("trouble", ""))
    if trouble:
        messages.show("problem", trouble)
    forecast = services.forecast_of(spec.canonical())
    for issue in forecast.problems:
        role = "alert" if issue.fatal else "status"
        kind = "problem" if issue.fatal else "note"
        text = html.escape(f"{issue.reason}. {issue.remedy}.")
        st.html(f'<p class="ll-{kind}" role="{role}">{text}</p>')
    refused = forecast.fatal or too_large is not None
    st.button("Run", type="primary", width="stretch", key="run", on_click=lab_requests.run, disabled=refused)
    if refused:
        return
    _expected_time(spec, forecast.seconds)
    guarantee = asdict(forecast.guarantee) if forecast.guarantee else None
    answers = {answer.view: answer for answer in forecast.answers}
    card.guarantee_block(guarantee)
    card.privacy_block(answers, guarantee)


def _expected_time(spec: RunSpec, forecast_seconds: float | None) -> None:
    """The time until the run, its seeds and its baseline would have ended, with everything that runs before them."""
    baseline = attack_grid.baseline_of(spec)
    specs = [*run_settings.with_seeds(spec, session.recall("seeds", 1)), *([baseline] if baseline else [])]
    each = services.store().usual_seconds(spec.canonical()) or forecast_seconds
    if each is None:
        return
    seconds = services.store().seconds_until({run.id: each for run in specs}, session.visitor(), services.slots())
    waiting = len(services.store().queue())
    alone = each * len(specs) / services.slots()
    st.caption(product.expected(seconds, alone, len(specs), baseline is not None, waiting))
