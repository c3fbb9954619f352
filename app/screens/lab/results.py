"""The right side of the Lab: the runs that the link names, drawn again while they grow."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from app.batch import submit as batch_submit
from app.batch.view import ENDED, ShownRun, find, tracks_of
from app.charts import accuracy, classes, epsilon, smoothing, smoothness, spectrum
from app.charts.base import Panel, Track
from app.screens.lab import compare
from app.session import links, messages, run_settings, services, session, url
from app.texts import numbers, privacy, product, states
from app.texts import sweep as sweep_texts
from app.widgets import card
from app.widgets import chart as chart_widget
from engine.errors import LeakLensError
from engine.events import Event, Failed, Measured, Round, Smoothed, Spent, Started, Warned

POLL_S = 0.5
PANELS: tuple[Panel[Any], ...] = (accuracy.PANEL, epsilon.PANEL, classes.PANEL, smoothing.PANEL)
ASKING: tuple[Panel[Any], ...] = (smoothness.PANEL, spectrum.PANEL)


def panel() -> None:
    """The whole right side; while something still runs it draws itself again and again."""
    shown = [find(run) for run in (*url.linked("run"), *url.linked("twin"))]
    moving = any(one and one.status not in ENDED for one in shown)
    if moving:
        st.fragment(messages.guarded(_drawn), run_every=POLL_S)(moving)
    else:
        _drawn(moving)


def _drawn(moving: bool) -> None:
    ids = url.linked("run")
    runs = [one for one in map(find, ids) if one]
    twins = [one for one in map(find, url.linked("twin")) if one]
    if not runs:
        st.html(
            '<p class="ll-note">This link names a run that is not on this machine. Press Run to compute it here.</p>'
        )
        return
    main = runs[0]
    _origin(main)
    card.headline(main.events)
    _cost(main, twins)
    card.reason(guarantee(main.events))
    tracks = tracks_of(runs, twins)
    pins = compare.pinned(main)
    if not _progress(main, [*runs, *twins]):
        _steps(main)
    there = [one for one in PANELS if chart_widget.show(one, [*tracks, *pins])]
    there += chart_widget.show_asking(ASKING, tracks)
    _warnings(main)
    _details(main, [*tracks, *pins], there)
    if moving and all(one.status in ENDED for one in (*runs, *twins)):
        session.again()


def _origin(main: ShownRun) -> None:
    if main.example is None:
        return
    example = main.example
    made = states.STORED.format(made=example.made)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(
            f'<p class="ll-said"><b>{html.escape(example.title)}</b> {html.escape(example.lesson)} '
            f'<span class="ll-faint">{html.escape(made)}</span></p>',
            width="stretch",
        )
        st.button(
            "Run it live",
            key="live",
            on_click=batch_submit.live,
            args=(example.spec,),
            disabled=not services.shared().ready(),
        )


def _cost(main: ShownRun, twins: Sequence[ShownRun]) -> None:
    if not twins:
        return
    mine, theirs = (accuracy.collect(one.events) for one in (main, twins[0]))
    if mine is None or theirs is None:
        return
    at = min(len(mine.values), len(theirs.values)) - 1
    said = privacy.cost(mine.values[at], theirs.values[at])
    when = "" if main.status in ("finished", "stored") else f" So far, after round {mine.rounds[at]}."
    st.html(f'<p class="ll-said" aria-live="polite">{html.escape(said + when)}</p>')


def _progress(main: ShownRun, all_of_them: Sequence[ShownRun]) -> bool:
    """Whether anything still moves: then how far it is, and the way to stop it."""
    if all(one.status in ENDED for one in all_of_them):
        _ending(main)
        return False
    with st.container(horizontal=True, vertical_alignment="center"):
        done, text = progress(main, all_of_them)
        if trouble := services.shared().supervisor.trouble:
            text = f"{text} · {trouble}"
        st.progress(done, text)
        st.button("Cancel", key="cancel", on_click=batch_submit.cancel)
    return True


def progress(main: ShownRun, all_of_them: Sequence[ShownRun]) -> tuple[float, str]:
    """How far everything on the page is, and in words."""
    last = next((event for event in reversed(main.events) if isinstance(event, Round)), None)
    done = sum(map(_share, all_of_them)) / len(all_of_them)
    if main.status == "queued":
        place = main.listed.place if main.listed else None
        return 0.0, f"waiting: place {place} in the queue" if place else "waiting"
    if last is None:
        return 0.0, "preparing the data"
    if main.status in ENDED:
        return done, "the runs beside it are still going"
    return done, f"round {last.round} of {last.of}{_left(main)}"


def _left(main: ShownRun) -> str:
    began = session.recall("began", {})
    now, done = session.now(), _share(main)
    attempt = main.listed.attempt if main.listed else 0
    start, before = began.setdefault((main.id, attempt), (now, done))
    session.remember("began", began)
    if done - before < 0.05:
        return ""
    return f" · {numbers.duration((now - start) * (1 - done) / (done - before))} left"


def _share(one: ShownRun) -> float:
    if one.status in ENDED:
        return 1.0
    last = next((event for event in reversed(one.events) if isinstance(event, Round)), None)
    return min(1.0, (last.round - 1 + last.fraction) / max(1, last.of)) if last else 0.0


def _ending(main: ShownRun) -> None:
    """Words for a run that did not end well, and the way on."""
    last = main.events[-1] if main.events else None
    if main.status == "failed" and isinstance(last, Failed):
        st.html(f'<p class="ll-problem" role="alert">{html.escape(f"{last.reason}. {last.remedy}.")}</p>')
    done = max((event.round for event in main.events if isinstance(event, Measured)), default=0)
    said = {
        "cancelled": f"Cancelled after round {done}. Everything up to there is kept.",
        "interrupted": f"Interrupted after round {done}: the program that computed it has ended. Nothing is lost.",
        "failed": "",
    }.get(main.status)
    if said is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            if said:
                st.html(f'<p class="ll-said">{html.escape(said)}</p>', width="content")
            st.button("Go on", key="go-on", on_click=batch_submit.go_on)


def _warnings(main: ShownRun) -> None:
    for event in main.events:
        if isinstance(event, Warned):
            st.html(f'<p class="ll-note">{html.escape(f"{event.reason}. {event.remedy}.")}</p>')


def _steps(main: ShownRun) -> None:
    """The obvious next steps, one click each."""
    spec = run_settings.flat(main.spec)
    ready = services.shared().ready()
    with st.container(horizontal=True):
        st.button(
            "Pin",
            key="pin",
            on_click=batch_submit.pin,
            disabled=main.id in url.linked("pins"),
            help="Keep it to compare",
        )
        with st.popover("Share"):
            st.markdown("The address of this page holds every setting. Whoever opens it sees the same question.")
            st.code(url.address(), language=None, wrap_lines=True)
        noise = spec.get("method.noise")
        if noise and spec.get("target-epsilon") is None:
            _step("Half the noise", {**spec, "method.noise": noise / 2}, ready)
        many = spec.get("clients", 0)
        if 0 < many <= 1000:
            _step("Ten times the clients", {**spec, "clients": many * 10, "sampled": spec["sampled"] * 10}, ready)
        if ready:
            with st.popover("Other method"):
                for name in run_settings.names("method"):
                    if name != main.method:
                        title = run_settings.part_class("method", name).title
                        st.button(
                            title, key=f"method:{name}", on_click=batch_submit.change, args=({**spec, "method": name},)
                        )
        _elsewhere(main, text=ready and not run_settings.is_about_pictures("dataset", spec["dataset"]))


def _elsewhere(main: ShownRun, text: bool) -> None:
    """The question in the form under several methods; what the server sees of the run that is shown."""
    if st.button(sweep_texts.FROM_LAB, key="to-tradeoff", help=sweep_texts.FROM_LAB_HELP):
        url.leave("tradeoff", links.tradeoff_link_of_run(session.settings() or main.spec))
    said = product.SERVER_SEES_TEXT if text else product.SERVER_SEES
    if st.button("What does the server see?", key="to-leak", help=said, disabled=text):
        url.leave("leak", links.leak_link_of_run(main.spec))


def _step(label: str, changes: Mapping[str, Any], ready: bool) -> None:
    st.button(label, key=f"step:{label}", on_click=batch_submit.change, args=(changes,), disabled=not ready)


def _details(main: ShownRun, tracks: Sequence[Track], panels: Sequence[Panel[Any]]) -> None:
    compare.table()
    with st.expander("Privacy, view by view"):
        card.privacy_block(bills(main.events), guarantee(main.events))
    card.not_covered()
    with st.expander("Who holds what", on_change="rerun", key="partition") as opened:
        if opened.open and (counts := _partition(main)):
            chart_widget.partition(counts, facts(main.events).get("classes", ()))
    with st.expander("Take it away: command line, Python, data, pictures"):
        st.code(run_settings.command(main.spec), language="bash", wrap_lines=True)
        st.code(run_settings.script(main.spec), language="python")
        st.download_button(
            "Download CSV", partial(table_csv, tracks), f"leaklens-{main.id}.csv", "text/csv", key="csv",
            on_click="ignore",
        )  # fmt: skip
        chart_widget.to_take_away(panels)


def bills(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The last ε of every view, the least seeing first."""
    last = {event.view: event for event in events if isinstance(event, Spent)}
    return [
        {
            "view": view, "epsilon": last[view].epsilon, "unit": last[view].unit, "adjacency": last[view].adjacency,
            "delta": last[view].delta, "accountant": last[view].accountant, "bound": last[view].bound,
            "reason": last[view].reason, "sampling": last[view].sampling,
        }
        for view in privacy.VIEWS
        if view in last
    ]  # fmt: skip


def facts(events: Sequence[Event]) -> Mapping[str, Any]:
    """What the run said of itself when it began."""
    return next((event.facts for event in events if isinstance(event, Started)), {})


def guarantee(events: Sequence[Event]) -> Mapping[str, Any] | None:
    return facts(events).get("guarantee")


def _partition(main: ShownRun) -> Sequence[Sequence[int]] | None:
    if main.example:
        return main.example.partition
    try:
        return services.store().payload(main.id, "partition")["train"].tolist()  # type: ignore[no-any-return]
    except LeakLensError as error:
        st.html(f'<p class="ll-problem">{html.escape(str(error))}</p>')
        return None


def table_csv(tracks: Sequence[Track]) -> str:
    """Every number on the page, one a line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("run", "label", "round", "name", "who", "value", "unit", "delta", "accountant"))
    for track in tracks:
        for event in track.events:
            if isinstance(event, Measured):
                writer.writerow((track.run, track.label, event.round, event.name, event.who, event.value, "", "", ""))
            elif isinstance(event, Spent):
                terms = (event.unit, event.delta, event.accountant)
                writer.writerow((track.run, track.label, event.round, "epsilon", event.view, event.epsilon, *terms))
            elif isinstance(event, Smoothed):
                for row in _smoothed(event):
                    writer.writerow((track.run, track.label, event.round, *row, "", "", ""))
    return out.getvalue()


def _smoothed(event: Smoothed) -> Iterator[tuple[str, str, float | None]]:
    """What a smoothing met and did: name, who, value."""
    yield "threshold", "server", event.threshold
    for weight, frequencies in event.spectra.items():
        for frequency, values in enumerate(frequencies):
            for rank, height in zip(event.ranks[weight], values, strict=True):
                yield "singular value", f"{weight}, frequency {frequency}, rank {rank}", height
    for name, both in (("roughness", event.rough), ("accuracy", event.accuracy)):
        for when, rows in zip(("before", "after"), both, strict=True):
            for label, row in enumerate(rows):
                for client, value in zip(event.clients, row, strict=True):
                    yield f"{name} {when} smoothing", f"client {client}, class {label}", value
