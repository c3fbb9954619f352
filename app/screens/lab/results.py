"""The right side of the Lab: the runs that the link names. It redraws while they are unfinished."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from app.batch import follow
from app.batch.view import ENDED, ShownRun, find, tracks_of
from app.charts import accuracy, classes, epsilon, smoothing, smoothness, spectrum
from app.charts.base import Panel, Track
from app.screens.lab import compare
from app.screens.lab import requests as lab_requests
from app.session import limits as class_limits
from app.session import links, messages, run_settings, services, session, url
from app.texts import batches as batch_texts
from app.texts import privacy, product, states
from app.texts import runs as run_texts
from app.texts import sweep as sweep_texts
from app.widgets import card
from app.widgets import chart as chart_widget
from app.widgets import export as export_widget
from engine.errors import LeakLensError
from engine.events import Failed, Measured, Round, Smoothed, Spent, Warned
from engine.jobs.status import MOVING
from engine.results.report import guarantee, last_epsilons, run_facts

POLL_S = 0.5
PANELS: tuple[Panel[Any], ...] = (accuracy.PANEL, epsilon.PANEL, classes.PANEL, smoothing.PANEL)
WITH_CHOICES: tuple[Panel[Any], ...] = (smoothness.PANEL, spectrum.PANEL)
NO_RUNS = "This link names a run that is not on this machine. Press Run to compute it here."
IS_ATTACK = "This link names an attack, not a run. Find it on the Runs screen."


def panel() -> None:
    """Draws the right side, and redraws it while a run is unfinished."""
    runs = [find(run) for run in (*url.linked("run"), *url.linked("twin"))]
    moving = any(run and run.status not in ENDED for run in runs)
    if moving:
        st.fragment(messages.guarded(_drawn), run_every=POLL_S)(moving)
    else:
        _drawn(moving)


def _names_attack() -> bool:
    stored = [services.read(run) for run in url.linked("run")]
    return any("attack" in run[0].spec for run in stored if run)


def _drawn(moving: bool) -> None:
    runs = [run for run in map(find, url.linked("run")) if run]
    baselines = [run for run in map(find, url.linked("twin")) if run]
    if not runs:
        st.html(f'<p class="ll-note">{IS_ATTACK if _names_attack() else NO_RUNS}</p>')
        return
    main = runs[0]
    messages.show_stored(main.id, partial(_result, main, runs, baselines, moving))


def _result(main: ShownRun, runs: Sequence[ShownRun], baselines: Sequence[ShownRun], moving: bool) -> None:
    """Everything about the runs of the link."""
    _origin(main)
    if services.made_earlier(main.spec):
        st.html(f'<p class="ll-note">{html.escape(states.EARLIER_RUN)}</p>')
    _noise(main)
    card.headline(main.events)
    _cost(main, baselines)
    card.reason(guarantee(main.events), last_epsilons(main.events))
    tracks = tracks_of(runs, baselines)
    pins = compare.pinned(main)
    if not _progress(main, [*runs, *baselines]):
        _steps(main)
    panels = [panel for panel in PANELS if chart_widget.show(panel, [*tracks, *pins])]
    panels += chart_widget.show_with_choices(WITH_CHOICES, tracks)
    _warnings(main)
    _details(main, [*tracks, *pins], panels)
    if moving and all(run.status in ENDED for run in (*runs, *baselines)):
        session.rerun()


def _origin(main: ShownRun) -> None:
    if main.example is None:
        return
    example = main.example
    made = states.STORED.format(made=example.made)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(
            f'<p class="ll-lead"><b>{html.escape(example.title)}</b> {html.escape(example.lesson)} '
            f'<span class="ll-faint">{html.escape(made)}</span></p>',
            width="stretch",
        )
        if main.behind and main.behind.status in MOVING:
            st.caption(batch_texts.BEHIND, width="content")
        st.button(
            "Run it live",
            key="live",
            on_click=lab_requests.run_example,
            args=(example.spec,),
            disabled=not services.shared().ready(),
        )


def _noise(main: ShownRun) -> None:
    """The noise of the run, and who adds it: equal noise protects differently."""
    method = main.spec.get("method")
    if not isinstance(method, Mapping) or not privacy.noise_split(method):
        return
    target = main.spec.get("target-epsilon")
    size = f"noise {run_texts.plain(method['noise'])}"
    if target is not None:
        size = f"noise for ε {run_texts.plain(target)}"
    st.html(f'<p class="ll-faint">{html.escape(f"{size}: {privacy.noise_split(method)}")}</p>')


def _cost(main: ShownRun, baselines: Sequence[ShownRun]) -> None:
    """The accuracy that protection costs, after the last round that both runs have finished."""
    if not baselines:
        return
    curve = accuracy.collect(main.events)
    baseline = accuracy.collect(baselines[0].events)
    if curve is None or baseline is None:
        return
    last = min(len(curve.values), len(baseline.values)) - 1
    text = privacy.cost(curve.values[last], baseline.values[last])
    if main.status not in ("finished", "stored"):
        text += f" So far, after round {curve.rounds[last]}."
    st.html(f'<p class="ll-lead" aria-live="polite">{html.escape(text)}</p>')


def _progress(main: ShownRun, all_of_them: Sequence[ShownRun]) -> bool:
    """Draws the progress and the Cancel button while a run is unfinished. Returns whether one is."""
    if all(run.status in ENDED for run in all_of_them):
        _ending(_own_ending(main))
        return False
    with st.container(horizontal=True, vertical_alignment="center"):
        done, text = progress(main, all_of_them)
        followed = follow.read([run.id for run in all_of_them if run.status not in ENDED])
        text += batch_texts.remaining(followed.state.seconds_left)
        trouble = services.shared().supervisor.trouble
        if trouble:
            text = f"{text} · {trouble}"
        st.progress(done, text)
        if followed.mine or not class_limits.class_mode():
            st.button("Cancel", key="cancel", on_click=lab_requests.cancel)
    return True


def progress(main: ShownRun, all_of_them: Sequence[ShownRun]) -> tuple[float, str]:
    """The progress of all runs on the page, as a fraction and in words."""
    last = _last_round(main)
    done = sum(map(_share, all_of_them)) / len(all_of_them)
    if main.status == "queued":
        place = main.listed.place if main.listed else None
        return 0.0, f"waiting: place {place} in the queue" if place else "waiting"
    if last is None:
        return 0.0, "preparing the data"
    if main.status in ENDED:
        return done, "the runs beside it are still going"
    return done, f"round {last.round} of {last.of}"


def _last_round(run: ShownRun) -> Round | None:
    return next((event for event in reversed(run.events) if isinstance(event, Round)), None)


def _share(run: ShownRun) -> float:
    """The finished fraction of a run."""
    if run.status in ENDED:
        return 1.0
    last = _last_round(run)
    if last is None:
        return 0.0
    return min(1.0, (last.round - 1 + last.fraction) / max(1, last.of))


def _own_ending(main: ShownRun) -> ShownRun:
    """The run whose ending concerns this visitor: behind a stored example, a live run that the visitor requested."""
    return main.behind if main.behind and services.requested([main.id]) else main


def _ending(main: ShownRun) -> None:
    """The reason why a run did not finish, and the button that resumes it."""
    last = main.events[-1] if main.events else None
    if main.status == "failed" and isinstance(last, Failed):
        problem = html.escape(f"{last.reason}. {last.remedy}.")
        st.html(f'<p class="ll-problem" role="alert">{problem}</p>')
    done = max((event.round for event in main.events if isinstance(event, Measured)), default=0)
    live = "Your live run: " if services.stored_example(main.id) else ""
    texts = {
        "cancelled": f"{live}Cancelled after round {done}. Everything up to there is kept.",
        "interrupted": f"{live}Interrupted after round {done}: the program that ran it has ended. Nothing is lost.",
        "failed": "",
    }
    if main.status not in texts:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        if texts[main.status]:
            st.html(f'<p class="ll-lead">{html.escape(texts[main.status])}</p>', width="content")
        if not services.made_earlier(main.spec):
            st.button("Go on", key="go-on", on_click=lab_requests.resume)


def _warnings(main: ShownRun) -> None:
    for event in (*main.events, *(main.behind.events if main.behind else ())):
        if isinstance(event, Warned):
            text = html.escape(f"{event.reason}. {event.remedy}.")
            st.html(f'<p class="ll-note">{text}</p>')


def _steps(main: ShownRun) -> None:
    """Buttons for the next steps: pin, share, change a setting, open another screen."""
    spec = run_settings.flat(main.spec)
    ready = services.shared().ready()
    with st.container(horizontal=True):
        st.button(
            "Pin",
            key="pin",
            on_click=lab_requests.pin,
            disabled=main.id in url.linked("pins"),
            help="Keep it to compare",
        )
        with st.popover("Share"):
            st.markdown("The address of this page holds every setting. Anyone who opens it sees the same page.")
            st.code(url.address(), language=None, wrap_lines=True)
        noise = spec.get("method.noise")
        if noise and spec.get("target-epsilon") is None:
            _step("Half the noise", {**spec, "method.noise": noise / 2}, ready)
        clients = spec.get("clients", 0)
        if 0 < clients <= 1000:
            _step("Ten times the clients", {**spec, "clients": clients * 10, "sampled": spec["sampled"] * 10}, ready)
        if ready:
            _other_methods(main, spec)
        _other_screens(main, text=ready and not run_settings.is_about_pictures("dataset", spec["dataset"]))


def _other_methods(main: ShownRun, spec: Mapping[str, Any]) -> None:
    with st.popover("Other method"):
        for name in run_settings.names("method"):
            if name != main.method:
                title = run_settings.part_class("method", name).title
                changes = {**spec, "method": name}
                st.button(title, key=f"method:{name}", on_click=lab_requests.change, args=(changes,))


def _other_screens(main: ShownRun, text: bool) -> None:
    """Buttons that open the settings in Trade-off and the run in Leak. Leak attacks no runs on text."""
    if st.button(sweep_texts.FROM_LAB, key="to-tradeoff", help=sweep_texts.FROM_LAB_HELP):
        url.open_screen("tradeoff", links.tradeoff_link_of_run(session.settings() or main.spec))
    tip = product.SERVER_SEES_TEXT if text else product.SERVER_SEES
    if st.button("What does the server see?", key="to-leak", help=tip, disabled=text):
        url.open_screen("leak", links.leak_link_of_run(main.spec))


def _step(label: str, changes: Mapping[str, Any], ready: bool) -> None:
    too_large = class_limits.too_large(changes, session.recall("seeds", 1))
    st.button(
        label, key=f"step:{label}", on_click=lab_requests.change, args=(changes,),
        disabled=not ready or too_large is not None, help=str(too_large) if too_large else None,
    )  # fmt: skip


def _details(main: ShownRun, tracks: Sequence[Track], panels: Sequence[Panel[Any]]) -> None:
    compare.table()
    with st.expander("Privacy, view by view"):
        card.privacy_block(last_epsilons(main.events), guarantee(main.events))
    card.not_covered()
    with st.expander("Who holds what", on_change="rerun", key="partition") as opened:
        counts = _partition(main) if opened.open else None
        if counts:
            chart_widget.partition(counts, run_facts(main.events).get("classes", ()))
    with st.expander("Take it away: command line, Python, data, pictures"):
        st.code(run_settings.command(main.spec), language="bash", wrap_lines=True)
        st.code(run_settings.script(main.spec), language="python")
        st.download_button(
            "Download CSV", partial(table_csv, tracks), f"leaklens-{main.id}.csv", "text/csv", key="csv",
            on_click="ignore",
        )  # fmt: skip
        chart_widget.save_buttons({panel.name: panel.title for panel in panels})
        if main.status == "finished":
            export_widget.show(url.export_path("run", main.id))
        elif main.example:
            export_widget.show(url.export_path("example", main.example.name))


def _partition(main: ShownRun) -> Sequence[Sequence[int]] | None:
    """The number of training records of each client and class."""
    if main.example:
        return main.example.partition
    try:
        return services.store().payload(main.id, "partition")["train"].tolist()  # type: ignore[no-any-return]
    except LeakLensError as error:
        st.html(f'<p class="ll-problem">{html.escape(str(error))}</p>')
        return None


def table_csv(tracks: Sequence[Track]) -> str:
    """Every number on the page as CSV, one in each line."""
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
    """The numbers of a smoothing as rows: name, who, value."""
    yield "threshold", "server", event.threshold
    for weight, frequencies in event.spectra.items():
        for frequency, values in enumerate(frequencies):
            for rank, value in zip(event.ranks[weight], values, strict=True):
                yield "singular value", f"{weight}, frequency {frequency}, rank {rank}", value
    for name, tables in (("roughness", event.rough), ("accuracy", event.accuracy)):
        for moment, rows in zip(("before", "after"), tables, strict=True):
            for label, row in enumerate(rows):
                for client, score in zip(event.clients, row, strict=True):
                    yield f"{name} {moment} smoothing", f"client {client}, class {label}", score
