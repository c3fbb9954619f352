"""The results of Try: progress, the three panels, the sentence about them, and the next steps."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from app.batch import attack_cells, follow
from app.batch.view import ENDED, ShownRun, find
from app.screens.try_it import panels
from app.screens.try_it import requests as try_requests
from app.screens.try_it import sides as try_sides
from app.screens.try_it import texts as try_texts
from app.screens.try_it.change import difference, suggestions
from app.screens.try_it.details import panel as details
from app.screens.try_it.settings import STATE, TrySettings
from app.screens.try_it.sides import SideRequest, TrySide
from app.session import links, messages, run_settings, services, session, url
from app.texts import attacks as attack_texts
from app.texts import batches as batch_texts
from app.texts import privacy, states, sweep
from app.widgets import export as export_widget
from engine.epsilon import Epsilon
from engine.errors import LeakLensError
from engine.events import Failed, Measured, Round, Warned

POLL_S = 0.3
SHOWN = "try-shown"  # in the session: the settings of the last result


def panel(requests: Sequence[SideRequest] | None) -> None:
    """Draw the results. While something runs, draw them again at each poll. `requests` is None for refused settings."""
    if requests is None:
        _earlier(STATE.current())
        return
    if _moving(requests):
        st.fragment(messages.guarded(_drawn), run_every=POLL_S)(requests, True)
    else:
        _drawn(requests, False)


def _moving(requests: Sequence[SideRequest]) -> bool:
    statuses = services.statuses(try_requests.ids_of(requests))
    return any(status in ("queued", "running") for status in statuses.values())


def _drawn(requests: Sequence[SideRequest], was_moving: bool) -> None:
    settings = STATE.current()
    sides = [try_sides.with_results(request) for request in requests]
    if settings.opened:
        sides[0] = _with_opened(sides[0], settings.opened)
    main = sides[0].main
    shown = partial(_result, requests, sides, settings)
    if main is not None:
        messages.show_stored(main.id, shown)
    else:
        shown()
    if was_moving and not _moving(requests):  # the last one has ended: the whole page runs again
        session.rerun()


def _with_opened(side: TrySide, run: str) -> TrySide:
    """Side A with a run that an earlier version made, in place of those that today's settings name."""
    opened = find(run)
    if opened is None:
        return side
    messages.show("note", states.EARLIER_RUN)
    return replace(side, runs=(opened,), opened=run)


def _result(requests: Sequence[SideRequest], sides: Sequence[TrySide], settings: TrySettings) -> None:
    moving = _progress(requests, sides)
    known = _has_result(sides[0])
    if known:
        session.remember(SHOWN, settings)
    if moving or known or not _earlier(settings):
        panels.draw(sides, settings)
        _sentence(requests, sides, settings)
    _next_steps(sides, settings)
    details.panel(sides)


def _has_result(side: TrySide) -> bool:
    """Whether something is known of a side: an accuracy, or the end of an attack."""
    return panels.accuracy_of(side.main) is not None or any(cell.done for cell in side.cells)


# --- progress --------------------------------------------------------------------------------------------------


def _progress(requests: Sequence[SideRequest], sides: Sequence[TrySide]) -> bool:
    """Show the progress with Cancel while something runs, and what happened to the runs. Returns whether one runs."""
    ids = try_requests.ids_of(requests)
    known = [run for run in ids if services.stored_example(run) or run in attack_cells.stored()]
    followed = follow.read(ids, known)
    if followed.moving:
        join = None if followed.mine or followed.missing else _join
        follow.bar("try", followed, join, try_texts.NOUN, try_requests.run, try_requests.cancel)
    for side in sides:
        name = f"{side.name}: " if len(sides) > 1 else ""
        for run in (*side.runs, *side.baselines):
            _remarks(name, run)
        if side.main is not None:
            _how_far(name, side.main)
        _failed_attacks(name, side)
    return followed.moving


def _join(missing: int, of: int) -> str:
    """The label of the button that requests what another visitor requested."""
    del missing, of
    return batch_texts.JOIN


def _remarks(name: str, run: ShownRun) -> None:
    """The warnings of a run, and why it failed."""
    for event in run.events:
        if isinstance(event, Warned):
            messages.show("note", f"{name}{event.reason}. {event.remedy}.")
    last = run.events[-1] if run.events else None
    if run.status == "failed" and isinstance(last, Failed):
        messages.show("problem", f"{name}{last.reason}. {last.remedy}.")


def _how_far(name: str, main: ShownRun) -> None:
    """The round that a run is in, or after which it stopped."""
    if main.status in ("cancelled", "interrupted"):
        done = max((event.round for event in main.events if isinstance(event, Measured)), default=0)
        messages.show("note", name + try_texts.STOPPED[main.status].format(done=done))
    last = next((event for event in reversed(main.events) if isinstance(event, Round)), None)
    if main.status == "running" and last is not None:
        st.caption(f"{name}round {last.round} of {last.of}")


def _failed_attacks(name: str, side: TrySide) -> None:
    """Why attackers have no picture."""
    if not run_settings.is_about_pictures("dataset", side.run["dataset"]):
        return  # the panel says it
    for cell in side.cells:
        if cell.problem and not cell.done:
            reason = attack_texts.left_out(run_settings.attack_title(cell.attack), cell.problem)
            messages.show("note", f"{name}{reason}" if not cell.status else f"{name}{cell.problem}")


# --- the result of other settings ------------------------------------------------------------------------------


def _earlier(settings: TrySettings) -> bool:
    """Show the last result of this visitor, pale, where these settings have none. Returns whether there is one."""
    shown: TrySettings | None = session.recall(SHOWN)
    if shown is None or shown.with_(eyes=settings.eyes) == settings:
        return False
    try:
        requests = try_sides.requests_of(shown)
    except LeakLensError:
        return False
    sides = [try_sides.with_results(request) for request in requests]
    if not any(map(_has_result, sides)):
        return False
    with st.container(horizontal=True, vertical_alignment="center", key="try-earlier-head"):
        title = try_texts.EARLIER.format(what=_what(sides))
        st.html(f'<p class="ll-note" role="status">{html.escape(title)}</p>', width="content")
        st.button(try_texts.BACK, key="try-back", on_click=try_requests.back_to, args=(shown,))
        refused = bool(services.error_of(lambda: try_sides.requests_of(settings)))  # the form says why
        st.button(try_texts.RUN_THIS, key="try-run-this", on_click=try_requests.run, disabled=refused)
    with st.container(key="try-earlier"):
        panels.draw(sides, shown)
    return True


def _what(sides: Sequence[TrySide]) -> str:
    """The protections of a result."""
    words = []
    for side in sides:
        title = try_sides.protection_title(side.run)
        noise = side.run.get("method.noise")
        words.append(f"{title}, noise {noise:g}" if noise else title)
    return " and ".join(words)


# --- below the panels ------------------------------------------------------------------------------------------


def _sentence(requests: Sequence[SideRequest], sides: Sequence[TrySide], settings: TrySettings) -> None:
    """What the panels show in words: how B differs from A, or what side A costs and promises."""
    forecasts: dict[str, Epsilon | None] = {}
    for request in requests:
        forecasts[request.name] = suggestions.epsilon_of(request.run, settings.eyes)
    results = [panels.result_of(side, forecasts, settings.eyes) for side in sides]
    if len(sides) > 1:
        changes = difference.changed(sides[0].run, sides[1].run)
        text = difference.difference(results[0], results[1], changes)
    else:
        main = sides[0].main
        of_all_rounds = main is None or main.status in panels.FINISHED  # an estimate is one of all rounds
        baseline = panels.baseline_accuracy(sides[0]) if of_all_rounds else None
        promised = privacy.odds(results[0].epsilon) if results[0].epsilon else try_texts.NO_PROMISE
        cost = privacy.cost(results[0].accuracy, baseline) if results[0].epsilon else ""
        text = " ".join(filter(None, [cost, promised]))
    with st.container(key="try-sentence"):
        st.html(f'<p class="ll-lead" role="status" aria-live="polite">{html.escape(text)}</p>')


def _next_steps(sides: Sequence[TrySide], settings: TrySettings) -> None:
    """Suggested changes, and what a visitor keeps."""
    with st.container(horizontal=True, vertical_alignment="center", key="try-steps"):
        st.html(f"<b>{try_texts.CHANGE_ONE}</b>", width="content")
        for change in suggestions.SUGGESTED:
            label = change
            if change == try_texts.HALF:
                label = suggestions.label_of_half(settings.run, settings.eyes)
            st.button(label, key=f"try-{change}", type="tertiary", on_click=try_requests.change_one, args=(change,))
        main = sides[0].main
        if main is not None and main.status in ENDED:
            st.button(
                try_texts.PIN, key="try-pin", help=try_texts.PIN_HELP, on_click=try_requests.pin, args=(main.id,),
                disabled=main.id in settings.pins,
            )  # fmt: skip
        with st.popover(try_texts.SHARE):
            st.markdown(try_texts.SHARE_TEXT)
            st.code(url.address_of(settings.link()), language=None, wrap_lines=True)
        path = _export_path(sides)
        if path:
            export_widget.show(path)
        _other_screens(sides[0])


def _export_path(sides: Sequence[TrySide]) -> str:
    """The address of what is shown as one file: runs, baselines and attacks of all sides; empty before any result."""
    shown = []
    for side in sides:
        main = [side.main] if side.main is not None else []
        shown += [run.id for run in (*main, *side.baselines) if run.status in panels.FINISHED]
    for side in sides:
        shown += [cell.id for cell in (*side.cells, *side.baseline_cells) if cell.done]
    return url.export_list_path("grid", list(dict.fromkeys(shown))) if shown else ""


def _other_screens(side: TrySide) -> None:
    """Links with the settings of side A."""
    if st.button(sweep.FROM_TRY, key="try-to-tradeoff", type="tertiary", help=sweep.FROM_TRY_HELP):
        url.open_screen("tradeoff", links.tradeoff_link_of_run(side.run))
    about_pictures = run_settings.is_about_pictures("dataset", side.run["dataset"])
    if about_pictures and st.button(try_texts.TO_LEAK, key="try-to-leak", type="tertiary"):
        settings = STATE.current()
        url.open_screen("leak", links.leak_link_of_run(side.spec.canonical(), settings.whose, settings.when))
