"""A run of the Runs screen as a row with its facts and buttons, and a group of runs as a title over its rows."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import streamlit as st

from app.screens.runs import requests as run_requests
from app.screens.runs.group import RunGroup
from app.screens.runs.listing import STOPPED, RunResult, RunRow
from app.session import messages, observer, pins, services, url
from app.texts import membership as membership_texts
from app.texts import numbers, states, verdicts
from app.texts import runs as run_texts
from app.widgets import fields
from engine.jobs.batches import ListedBatch

BUTTONS_PX = 260
GROUP_PAGE = 50  # rows of a group
CSS = """
<style>
.ll-run { container-type: inline-size; }
.ll-run > div { display: grid; gap: 0 1.2rem; align-items: start;
  grid-template-columns: minmax(0, 1fr) 8.5rem 4.5rem 6.5rem 7rem 4.5rem; }
.ll-run h3 { font-size: 1rem; font-weight: 600; line-height: 1.35; margin: 0; padding: 0; }
.ll-run p { margin: 0; font-size: .87rem; color: var(--faint); }
.ll-run dl { display: contents; }
.ll-run dl > div { margin: 0; }
.ll-run dd { margin: 0; font-variant-numeric: tabular-nums; line-height: 1.35; }
.ll-run dd small { display: block; font-size: .87rem; color: var(--faint); }
.ll-run dt, .ll-heads span { font-size: .85rem; font-weight: 400; color: var(--faint); }
.ll-run dt { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.ll-bar { display: block; height: 3px; margin-top: .3rem; background: var(--hair); }
.ll-bar span { display: block; height: 100%; background: currentColor; }
@container (max-width: 54rem) {
  .ll-run > div { grid-template-columns: repeat(5, minmax(0, 1fr)); gap: .2rem .8rem; }
  .ll-run > div > :first-child { grid-column: 1 / -1; }
  .ll-run dt { position: static; width: auto; height: auto; clip-path: none; }
  .ll-heads > div { display: none; }
}
@media (max-width: 640px) {
  .st-key-runs [class*="st-key-row-"] { flex-wrap: wrap; }
  .st-key-runs [class*="st-key-row-"] > :first-child { min-width: 100%; }
}
@container (max-width: 32rem) { .ll-run > div { grid-template-columns: repeat(3, minmax(0, 1fr)); } }
.st-key-runs button em, .st-key-runs a em { position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); }
.ll-heads:not(.ll-wide) { margin-right: calc(260px + 1rem); }
.st-key-runs [class*="st-key-row-"] :is(button, a) { min-height: 0; padding-block: 0; p { text-decoration: underline } }
.st-key-runs [class*="st-key-row-"] { border-top: 1px solid var(--hair); padding-top: .5rem; }
</style>
"""


def heads(title: str, buttons: bool = True) -> None:
    """The title of a part of the list, and the headings of its columns. A narrow screen has no columns."""
    room = "" if buttons else " ll-wide"
    st.html(f'<h2 class="ll-title" style="font-size:1.1rem">{html.escape(title)}</h2>')
    heads = [run_texts.head(head, observer.current()) for head in run_texts.HEADS]
    spans = "".join(f"<span>{html.escape(head)}</span>" for head in heads)
    st.html(f'<div class="ll-run ll-heads{room}" aria-hidden="true"><div>{spans}</div></div>')


def draw_run(row: RunRow) -> None:
    """Draws a run with its buttons. One whose stored data are damaged has a sentence, and can be deleted."""
    if not messages.show_stored(row.id, partial(_draw, row)) and row.deletable:
        _button(run_texts.DELETE, row, on_click=run_requests.request_delete, args=([row.id],))


def _draw(row: RunRow) -> None:
    listed = row.listed
    result = row.result
    of = listed.spec.get("rounds")
    word, progress = run_texts.state(listed.status, listed.round, of, listed.place)
    if row.attack and listed.status != "queued":
        progress = ""  # an attack has no rounds
    bar = _bar(listed.round / of) if listed.status == "running" and of else ""
    attempts = f"submitted {listed.attempt} times" if listed.attempt > 1 else ""
    earlier = states.EARLIER if services.made_earlier(row.listed.spec) else ""
    device = run_texts.device(listed.options.get("device"))
    notes = [f"run {row.id}", row.unusual, _outcome(result), device, attempts, earlier]
    cells = {"state": _cell(word, progress) + bar, **_numbers(result), **_facts(row)}
    with st.container(horizontal=True, vertical_alignment="top", key=f"row-{row.id}"):
        _text(row.sentence, notes, result.failure, cells)
        with st.container(horizontal=True, vertical_alignment="center", width=BUTTONS_PX):
            _buttons(row)


def _outcome(result: RunResult) -> str:
    """The result of an attack."""
    if result.auc:
        return membership_texts.outcome(*result.auc)
    return verdicts.outcome(result.psnr, result.verdict)


def example(title: str, notes: Sequence[str], result: RunResult) -> None:
    """Draws a stored example as a row without buttons."""
    state = _cell(states.STATES["stored"], "")
    _text(title, notes, "", {"state": state, **_numbers(result), "submitted": "–", "disk": "–"})


def draw_group(group: RunGroup) -> None:
    """Draws a run by itself as a row, and a batch as a title with a closed list of its runs."""
    if group.batch is None:
        draw_run(group.rows[0])
        return
    with st.container(key=f"batch-{group.id}"):
        with st.container(horizontal=True, vertical_alignment="top", key=f"row-{group.id}"):
            title = f"<h3>{html.escape(group.title)}</h3><p>{html.escape(f'{group.kind} · {group.summary}')}</p>"
            st.html(f'<div class="ll-run">{title}</div>', width="stretch")
            with st.container(horizontal=True, vertical_alignment="center", width=BUTTONS_PX):
                _group_buttons(group, group.batch)
        label = run_texts.RUNS_OF_GROUP.format(many=run_texts.runs(len(group.rows)))
        with st.expander(label, on_change="rerun", key=f"runs-of-{group.id}") as opened:
            if opened.open:
                for row in group.rows[:GROUP_PAGE]:
                    draw_run(row)
                if len(group.rows) > GROUP_PAGE:
                    messages.explain(run_texts.MORE_ROWS.format(many=len(group.rows) - GROUP_PAGE))


def _text(title: str, notes: Sequence[str], failure: str, cells: Mapping[str, str]) -> None:
    heads = run_texts.HEADS[1:]
    facts = "".join(
        f"<div><dt>{html.escape(run_texts.head(head, observer.current()))}</dt><dd>{cells[head]}</dd></div>"
        for head in heads
    )
    lines = f"<p>{html.escape(' · '.join(filter(None, notes)))}</p>"
    if failure:
        lines += f"<p>{html.escape(failure)}</p>"
    text = f"<div><h3>{html.escape(title)}</h3>{lines}</div>"
    st.html(f'<article class="ll-run"><div>{text}<dl>{facts}</dl></div></article>', width="stretch")


def _cell(value: str, note: str) -> str:
    return html.escape(value) + (f"<small>{html.escape(note)}</small>" if note else "")


def _bar(share: float) -> str:
    return f'<span class="ll-bar" aria-hidden="true"><span style="width:{100 * min(1.0, share):.0f}%"></span></span>'


def _numbers(result: RunResult) -> dict[str, str]:
    _, accuracy, epsilon, *_ = run_texts.HEADS[1:]
    return {
        accuracy: _cell(numbers.percent(result.accuracy), ""),
        epsilon: _cell(*run_texts.epsilon(result.epsilon, result.unit, result.promised)),
    }


def _facts(row: RunRow) -> dict[str, str]:
    when = datetime.fromtimestamp(row.listed.submitted, UTC).isoformat(timespec="seconds")
    submitted = f'<time datetime="{when}">{html.escape(run_texts.ago(row.listed.submitted))}</time>'
    return {"submitted": submitted, "disk": html.escape(run_texts.size(row.listed.bytes))}


# --- buttons -----------------------------------------------------------------------------------------------


def _buttons(row: RunRow) -> None:
    """The actions that this visitor may take on a run."""
    readable = bool(row.listed.spec)
    no_screen = membership_texts.NO_SCREEN if row.membership else None
    if readable and _button(run_texts.OPEN, row, disabled=row.membership, help=no_screen):
        if row.attack:
            run_requests.open_in_leak(row)
        else:
            run_requests.open_in_try(row)
    if readable and row.listed.status == "finished":
        path = url.export_path("attack" if row.attack else "run", row.id)
        st.link_button(f"{run_texts.EXPORT} *run {row.id}*", path, type="tertiary")
    if row.moving and row.own:
        _button(run_texts.CANCEL, row, on_click=run_requests.cancel, args=(row,))
    if row.listed.status in STOPPED and row.own and readable and not services.made_earlier(row.listed.spec):
        refused = fields.refused(row.listed.spec)
        _button(run_texts.RESUME, row, on_click=run_requests.resume, args=(row,), **refused)
    if readable and not row.attack:
        _pin(row)
    if row.deletable:
        _button(run_texts.DELETE, row, on_click=run_requests.request_delete, args=([row.id],))


def _pin(row: RunRow) -> None:
    pinned = pins.pinned()
    if row.id in pinned:
        _button(run_texts.UNPIN, row, on_click=pins.unpin, args=(row.id,))
        return
    full = run_texts.PINS_FULL.format(many=len(pinned)) if len(pinned) >= pins.MOST else None
    _button(run_texts.PIN, row, on_click=pins.pin, args=(row.id,), help=full, disabled=bool(full))


def _group_buttons(group: RunGroup, batch: ListedBatch) -> None:
    """The actions that this visitor may take on the whole group."""
    if batch.spec.get("screen") in run_texts.SCREENS and _button(run_texts.OPEN, group):
        run_requests.open_group(batch)
    if group.wanted and group.moving:
        _button(run_texts.CANCEL_ALL, group, on_click=run_requests.cancel_all, args=(group,))
    if group.own and group.stopped and not group.moving:
        refused = fields.refused(run_requests.run_of(group))
        _button(run_texts.RESUME_ALL, group, on_click=run_requests.resume_all, args=(group,), **refused)
    if any(row.listed.status == "finished" for row in group.rows):
        st.link_button(f"{run_texts.EXPORT} *batch {batch.id}*", url.export_path("batch", batch.id), type="tertiary")
    if group.own and not group.private:
        key = f"name-{batch.id}"
        with st.popover(run_texts.RENAME, type="tertiary", key=f"rename-{batch.id}"):
            st.text_input(
                run_texts.NAME, batch.title, max_chars=run_requests.MOST_NAME, key=key, help=run_texts.NAME_HELP,
                on_change=lambda: run_requests.rename(batch, str(st.session_state[key])),
            )  # fmt: skip
    if group.deletable and not group.moving:
        _button(run_texts.DELETE, group, on_click=run_requests.request_delete, args=(group.deletable,))


def _button(word: str, of: RunRow | RunGroup, **options: Any) -> bool:
    """A button whose label ends with the id of the run or the batch, for screen readers only."""
    kind, ending = ("run", "") if isinstance(of, RunRow) else ("batch", "-all")
    key = f"{word.lower().replace(' ', '-')}{ending}:{of.id}"
    return st.button(f"{word} *{kind} {of.id}*", key=key, type="tertiary", **options)
