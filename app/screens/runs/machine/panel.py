"""The tab Machine: the state of the engine, and the findings of the doctor."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence

import streamlit as st

from app.screens.runs.machine import examination as examinations
from app.screens.runs.machine import placement
from app.screens.runs.machine import texts as machine_texts
from app.screens.runs.machine.examination import Examination, MachineLine
from app.session import messages, services
from app.session.services import Services
from app.texts import runs as run_texts
from engine.doctor import can_run
from engine.errors import LeakLensError

POLL_S, ENGINE_POLL_S = 0.5, 2.0
READY_S = 30.0  # the longest wait for the shelves: the doctor does not load libraries while they load
CSS = """
<style>
.ll-doctor { width: 100%; border-collapse: collapse; margin: 0; table-layout: fixed; }
.ll-doctor caption { text-align: left; font-weight: 600; font-size: 1.05rem; padding: .9rem 0 .2rem; }
.ll-doctor th, .ll-doctor td { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0;
  border-top: 1px solid var(--hair); overflow-wrap: anywhere; }
.ll-doctor thead th { color: var(--faint); font-size: .85rem; font-weight: 400; border: 0; padding-bottom: .1rem; }
.ll-doctor col:nth-child(1) { width: 6.5rem; } .ll-doctor col:nth-child(2) { width: 9rem; }
.ll-doctor h2 { font-size: 1.05rem; padding: 0; margin: 0; }
.ll-again thead { position: absolute; clip-path: inset(50%); }
.ll-doctor tbody th { font-weight: 600; }
.ll-doctor.ll-where col:nth-child(2) { width: auto; } .ll-work p { font-weight: 400; }
.ll-doctor p { margin: .15rem 0 0; }
</style>
"""


def panel() -> None:
    """Draws the state of the engine and the findings of the doctor."""
    st.html(CSS)
    shared = _shared()
    examination = examinations.examination()
    if not examination.findings:
        _examine(examination, shared)
    st.html(f'<p class="ll-lead" role="status">{html.escape(_verdict(examination))}</p>')
    if shared:
        moving = _moving(shared)
        st.fragment(_engine, run_every=ENGINE_POLL_S if moving else None)(shared, moving)
    running = examination.running
    st.fragment(_doctor, run_every=POLL_S if running else None)(examination, running)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            machine_texts.AGAIN, key="look", disabled=examination.running, on_click=_examine, args=(examination, shared)
        )
        if examination.findings:
            st.caption(machine_texts.looked(run_texts.ago(examination.at), examination.took))
    if examination.findings:
        with st.expander(machine_texts.COPY):
            st.code(examinations.report(examination.findings), language=None, wrap_lines=True)


def _shared() -> Services | None:
    """The services of all visitors, or None if the store cannot be opened. The doctor works without a store."""
    try:
        return services.shared()
    except LeakLensError as error:
        messages.show("problem", str(error))
        return None


def _examine(examination: Examination, shared: Services | None) -> None:
    """Starts the examination after the shelves are loaded: two threads must not load the same libraries at once."""
    if shared:
        examination.begin(lambda: shared.ready(READY_S))
    else:
        examination.begin()


def _verdict(examination: Examination) -> str:
    if examination.running:
        return machine_texts.LOOKING
    failed = sum(not finding.ok for finding in examination.findings)
    return machine_texts.verdict(failed, can_run(examination.findings))


# --- the engine --------------------------------------------------------------------------------------------


def _moving(shared: Services) -> bool:
    """Whether the engine runs something or warms up a worker."""
    return shared.supervisor.working or not shared.supervisor.warm


def _engine(shared: Services, moving: bool) -> None:
    """Draws the state of the engine. When the engine becomes idle, it redraws the whole page a last time."""
    try:
        runs = shared.store.runs()
    except LeakLensError as error:
        messages.show("problem", str(error))
        return
    counts: Counter[str] = Counter(run.status for run in runs)
    supervisor = shared.supervisor
    if counts["running"] >= supervisor.workers:  # spare workers are warm then, too
        begins = machine_texts.LATER
    elif supervisor.warm:
        begins = machine_texts.AT_ONCE
    else:
        begins = machine_texts.SOON
    facts = {
        machine_texts.WORKERS: (str(supervisor.workers), machine_texts.WORKERS_NOTE),
        machine_texts.RUNNING: (str(counts["running"]), ""),
        machine_texts.WAITING: (str(counts["queued"]), ""),
        machine_texts.NEXT: (begins, machine_texts.NEXT_NOTES[begins]),
    }
    cells = ""
    for name, (value, note) in facts.items():
        cells += f"<div><dt>{name}</dt><dd>{value} <small>{note}</small></dd></div>"
    st.html(f'<dl class="ll-facts">{cells}</dl>')
    st.html(placement.table(runs))
    if supervisor.trouble:
        messages.show("problem", machine_texts.STUCK.format(why=_sentence(supervisor.trouble)))
    if shared.trouble:
        messages.show("problem", machine_texts.NOT_LOADED.format(why=_sentence(shared.trouble)))
    if moving and not _moving(shared):
        st.rerun()


def _sentence(error: Exception) -> str:
    """An error in words. A LeakLensError includes its remedy."""
    return str(error) if isinstance(error, LeakLensError) else f"{type(error).__name__}: {error}"


# --- the doctor --------------------------------------------------------------------------------------------


def _doctor(examination: Examination, running: bool) -> None:
    """Draws the findings. When the examination ends, it redraws the whole page."""
    if running and not examination.running:
        st.rerun()
    for number, (group, lines) in enumerate(examinations.groups(examination.findings).items()):
        st.html(_table(group, lines, again=number > 0))


def _table(group: str, lines: Sequence[MachineLine], again: bool) -> str:
    """One group of findings. Only the first table shows its column headings; screen readers get them for each."""
    heads = "".join(f'<th scope="col">{head}</th>' for head in machine_texts.HEADS)
    rows = "".join(map(_row, lines))
    return (
        f'<table class="ll-doctor{" ll-again" if again else ""}"><caption><h2>{group}</h2></caption>'
        f"<colgroup><col><col><col></colgroup><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _row(line: MachineLine) -> str:
    side = {examinations.OK: "ink", examinations.FAILED: "leaking"}.get(line.word, "faint")
    text = ""
    if line.finding:
        text = html.escape(line.finding.text)
        if line.finding.remedy:
            text += f'<p class="ll-faint">{html.escape(line.finding.remedy)}</p>'
    return (
        f'<tr><td class="ll-{side}">{machine_texts.SIGNS[line.word]}</td>'
        f'<th scope="row">{html.escape(line.name)}</th><td>{text}</td></tr>'
    )
