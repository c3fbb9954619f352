"""Machine: what works here, what wants a look, and how the engine stands."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence

import streamlit as st

from app.screens.machine import examination as examinations
from app.screens.machine import texts as machine_texts
from app.screens.machine.examination import Examination, MachineLine
from app.session import services
from app.session.services import Services
from app.texts import product
from app.texts import runs as run_texts
from engine.doctor import able
from engine.errors import LeakLensError

POLL_S, STAND_S = 0.5, 2.0
READY_S = 30.0  # at most, for the shelves: the doctor does not load what they are loading
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
.ll-doctor p { margin: .15rem 0 0; }
</style>
"""


def page() -> None:
    st.html(f'{CSS}<h1 class="ll-title">{html.escape(product.MACHINE)}</h1>')
    kitchen = _kitchen()
    examination = examinations.examination()
    if not examination.findings:
        _look(examination, kitchen)
    st.html(f'<p class="ll-said" role="status">{html.escape(_verdict(examination))}</p>')
    if kitchen:
        moving = _moving(kitchen)
        st.fragment(_engine, run_every=STAND_S if moving else None)(kitchen, moving)
    st.fragment(_doctor, run_every=POLL_S if examination.looking else None)(examination, examination.looking)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            machine_texts.AGAIN, key="look", disabled=examination.looking, on_click=_look, args=(examination, kitchen)
        )
        if examination.findings:
            st.caption(machine_texts.looked(run_texts.ago(examination.at), examination.took))
    if examination.findings:
        with st.expander(machine_texts.COPY):
            st.code(examinations.report(examination.findings), language=None, wrap_lines=True)


def _kitchen() -> Services | None:
    """None where the store cannot be opened: then the doctor is all the more welcome."""
    try:
        return services.shared()
    except LeakLensError as error:
        _problem(str(error))
        return None


def _problem(text: str) -> None:
    st.html(f'<p class="ll-problem" role="alert">{html.escape(text)}</p>')


def _look(examination: Examination, kitchen: Services | None) -> None:
    """Two threads that load the same libraries at once would get in each other's way: one after the other."""
    examination.begin((lambda: kitchen.ready(READY_S)) if kitchen else (lambda: None))


def _verdict(examination: Examination) -> str:
    if examination.looking:
        return machine_texts.LOOKING
    wanting = sum(not one.ok for one in examination.findings)
    return machine_texts.verdict(wanting, able(examination.findings))


# --- the engine --------------------------------------------------------------------------------------------


def _moving(kitchen: Services) -> bool:
    return kitchen.supervisor.working or not kitchen.supervisor.warm


def _engine(kitchen: Services, moving: bool) -> None:
    """PanelInfo again while it works or warms up; once it rests, one last time with the page."""
    try:
        counts: Counter[str] = Counter(one.status for one in kitchen.store.runs())
    except LeakLensError as error:
        _problem(str(error))
        return
    supervisor = kitchen.supervisor
    full = counts["running"] >= supervisor.workers
    begins = machine_texts.AT_ONCE if supervisor.warm else machine_texts.LATER if full else machine_texts.SOON
    facts = {
        machine_texts.WORKERS: (str(supervisor.workers), machine_texts.WORKERS_NOTE),
        machine_texts.RUNNING: (str(counts["running"]), ""),
        machine_texts.WAITING: (str(counts["queued"]), ""),
        machine_texts.NEXT: (begins, machine_texts.NEXT_NOTES[begins]),
    }
    cells = "".join(
        f"<div><dt>{name}</dt><dd>{value} <small>{note}</small></dd></div>" for name, (value, note) in facts.items()
    )
    st.html(f'<dl class="ll-facts">{cells}</dl>')
    if supervisor.trouble:
        _problem(machine_texts.STUCK.format(why=_sentence(supervisor.trouble)))
    if kitchen.trouble:
        _problem(machine_texts.NOT_LOADED.format(why=_sentence(kitchen.trouble)))
    if moving and not _moving(kitchen):
        st.rerun()


def _sentence(trouble: Exception) -> str:
    """A known trouble says itself what helps."""
    return str(trouble) if isinstance(trouble, LeakLensError) else f"{type(trouble).__name__}: {trouble}"


# --- the doctor --------------------------------------------------------------------------------------------


def _doctor(examination: Examination, looking: bool) -> None:
    if looking and not examination.looking:
        st.rerun()
    for number, (group, lines) in enumerate(examinations.groups(examination.findings).items()):
        st.html(_table(group, lines, again=number > 0))


def _table(group: str, lines: Sequence[MachineLine], again: bool) -> str:
    """The headings of the columns are seen once, and read aloud for each table."""
    heads = "".join(f'<th scope="col">{head}</th>' for head in machine_texts.HEADS)
    rows = "".join(map(_row, lines))
    return (
        f'<table class="ll-doctor{" ll-again" if again else ""}"><caption><h2>{group}</h2></caption>'
        f"<colgroup><col><col><col></colgroup><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _row(line: MachineLine) -> str:
    found = line.finding
    side = {"ok": "private", "look": "leaking"}.get(line.word, "faint")
    remedy = f'<p class="ll-faint">{html.escape(found.remedy)}</p>' if found and found.remedy else ""
    return (
        f'<tr><td class="ll-{side}">{machine_texts.SIGNS[line.word]}</td><th scope="row">{html.escape(line.name)}</th>'
        f"<td>{html.escape(found.text) if found else ''}{remedy}</td></tr>"
    )


page()
