"""The results of the Leak screen: the grid of pictures, redrawn while attacks run, and the numbers below it."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.batch import attack_cells, follow
from app.screens.leak import columns as leak_columns
from app.screens.leak import requests as leak_requests
from app.screens.leak import series
from app.screens.leak.columns import GridColumn
from app.screens.leak.controls import attacker
from app.screens.leak.requests import STATE
from app.screens.leak.settings import LeakSettings, key_of
from app.session import messages, run_settings, services, session, url
from app.session.links import AGAINST
from app.texts import attacks as attack_texts
from app.texts import privacy, states, verdicts
from app.widgets import export as export_widget
from app.widgets import picture_grid
from app.widgets.picture_grid import ColumnHead, GridSheet
from engine.epsilon import Epsilon
from engine.errors import LeakLensError
from engine.events import Seen
from engine.examples import attacks as attack_examples
from engine.jobs.thumbnails import thumbnails
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell, AttackEvents
from engine.specs import attack_grid
from engine.specs.attack_grid import RequestedAttack

if TYPE_CHECKING:
    from engine.training.forecast import Forecast


POLL_S = 0.5
FIRST_PICTURE = LeakSettings().whose
ROW_CSS = """
<style>
@media (max-width: 700px) {  /* the note and its two buttons stay in one row on a phone */
  .st-key-leak-row:has(.st-key-leak-live) { flex-wrap: nowrap; }
  .st-key-leak-row:has(.st-key-leak-live) > :first-child { flex: 0 1 auto !important; min-width: 0; }
}
</style>
"""


@dataclass(frozen=True)
class GridView:
    """The rows and columns of the grid, before any result is read."""

    columns: tuple[GridColumn, ...]
    requests: tuple[RequestedAttack, ...]
    attacks: Mapping[str, str]  # titles, in the order of the rows
    left_out: tuple[str, ...]  # a sentence for each attack that fits no column
    forecasts: Mapping[str, Forecast]  # by column
    eyes: str  # the view of the attacker
    original: str  # PNG in base64

    @property
    def titles(self) -> dict[str, str]:
        return {column.key: column.title for column in self.columns}


def panel() -> GridView | None:
    """Draw the grid, and return it; None if it cannot be drawn. While an attack runs, draw it again at each poll."""
    try:
        view = grid_view()
    except LeakLensError as error:
        _problem(str(error))
        return None
    if not view.attacks:
        _left_out(view)
        _problem(attack_texts.NOTHING)
        return view
    moving = any(cell.moving for cell in attack_cells.read_cells(view.requests))
    if moving:
        st.fragment(messages.guarded(_draw), run_every=POLL_S)(view, moving)
    else:
        _draw(view, moving)
    return view


def grid_view() -> GridView:
    """Return the rows, the columns and the reasons for empty cells, all of them available before a run."""
    leak = STATE.current()
    columns = leak_columns.columns(leak)
    all_requests = attack_cells.with_refusals(leak.grid.requests())
    requests: list[RequestedAttack] = []
    titles: dict[str, str] = {}
    left_out: list[str] = []
    for attack in leak.attacks:
        row = [request for request in all_requests if request.attack == attack]
        title = run_settings.attack_title(attack)
        if all(request.problem for request in row):
            left_out.append(attack_texts.left_out(title, row[0].problem))
        else:
            titles[attack] = title
            requests += row
    forecasts = {column.key: services.forecast_of(column.spec.canonical()) for column in columns}
    original = thumbnails(leak.run["dataset"], [leak.whose], services.store().home)[0].png
    return GridView(columns, tuple(requests), titles, tuple(left_out), forecasts, leak.eyes, original)


def _draw(view: GridView, was_moving: bool) -> None:
    cells = attack_cells.read_cells(view.requests)
    moving = any(cell.moving for cell in cells)
    row = _progress_bar(view, cells)
    promised = any(answer.value <= privacy.VACUOUS for answer in finite_answers(view) if answer.value is not None)
    series.announce(verdicts.of_cells(cells, view.titles, attack_grid.NONE, promised))
    picture = _choose_picture()
    sheet = grid_sheet(view, cells, picture, frames=not moving)
    picture_grid.draw(sheet)
    _epsilon_terms(view)
    if moving:
        return
    if was_moving:  # the last attack has ended: the whole page runs again and shows the scrubber
        session.rerun()
    _context(cells)
    _left_out(view)
    _failures(view, cells)
    with row:
        _export(view, sheet)


def _export(view: GridView, sheet: GridSheet) -> None:
    """The control that saves exactly the cells of the grid, stored or live."""
    ids = [cell.id for cell in sheet.cells if cell.status]
    if not any(cell.done for cell in sheet.cells):
        return
    answers = finite_answers(view)
    foot = " ".join([attack_texts.terms(answers), attack_texts.NO_PROOF]) if answers else attack_texts.NO_PROOF
    st.html(ROW_CSS)
    export_widget.show(url.export_list_path("grid", ids), picture_grid.grid_json(sheet), foot)


def _left_out(view: GridView) -> None:
    for sentence in view.left_out:
        st.html(f'<p class="ll-note" role="status">{html.escape(sentence)}</p>')


def grid_sheet(view: GridView, cells: Sequence[AttackCell], picture: int, frames: bool) -> GridSheet:
    heads = []
    for column in view.columns:
        title, _ = attack_texts.head(column.title)
        heads.append(ColumnHead(column.key, title, _head_lines(view, column)))
    return GridSheet(
        heads, view.attacks, cells, picture, frames, _animation(cells), view.original, STATE.current().each
    )


def _animation(cells: Sequence[AttackCell]) -> str:
    """Return the name of a stored grid, which plays once, or an empty string if a result is not stored."""
    stored = all(cell.status in ("stored", "") for cell in cells) and any(cell.status for cell in cells)
    seen = first_seen(cells)
    return seen.originals[0][-64:] if stored and seen else ""


def first_seen(cells: Sequence[AttackCell]) -> Seen | None:
    """Return the first report of what an attacker observed."""
    return next((cell.seen for cell in cells if cell.seen), None)


def _head_lines(view: GridView, column: GridColumn) -> tuple[tuple[str, str], ...]:
    """Return the lines below a column's title: the method, who adds the noise, and the size of the promise."""
    promise = privacy.promise(answer_of(view, column))
    texts = (attack_texts.head(column.title)[1], column.split)
    return (*((text, "") for text in texts if text), promise)


def answer_of(view: GridView, column: GridColumn) -> Epsilon | None:
    """Return the forecast ε of a column for the attacker's view, or None if the method has no such view."""
    answers = view.forecasts[column.key].answers
    return next((answer for answer in answers if answer.view == view.eyes), None)


def _choose_picture() -> int:
    """Return the index of the shown picture in the upload, and ask for it where there are several."""
    leak = STATE.current()
    if leak.many > 1 and leak.upload == "listed":
        st.segmented_control(attack_texts.SHOW, range(1, leak.many + 1), default=1, required=True, key="leak-show")
    return shown_picture()


def shown_picture() -> int:
    """Return the index of the shown picture in the upload."""
    leak = STATE.current()
    if leak.many == 1 or leak.upload != "listed":
        return 0
    return min(leak.many, int(session.recall("leak-show") or 1)) - 1


# --- running and cancelling --------------------------------------------------------------------------------


def _progress_bar(view: GridView, cells: Sequence[AttackCell]) -> DeltaGenerator:
    """Show the progress, and the buttons that run and cancel the attacks. Return their row."""
    stored = [cell for cell in cells if cell.status == "stored"]
    if STATE.trouble():
        _problem(STATE.trouble())
    runs = [request.id for request in view.requests if request.spec]
    followed = follow.read(runs, list(attack_cells.stored()), "leak grid")
    row = st.container(horizontal=True, vertical_alignment="center", key="leak-row")
    with row:
        follow.bar(
            "leak", followed, attack_texts.attack, "attacks", leak_requests.attack, leak_requests.cancel, "attack"
        )
        if stored and not followed.mine:
            made = attack_cells.stored()[stored[0].id].made
            requested = sum(bool(cell.status) for cell in cells) - len(stored)
            st.caption(attack_texts.stored(len(stored), requested, len(cells), made), width="content")
            st.button(attack_texts.LIVE, key="leak-live", on_click=leak_requests.attack, args=(True,))
    return row


def _problem(text: str) -> None:
    st.html(f'<p class="ll-problem" role="alert">{html.escape(text)}</p>')


def _failures(view: GridView, cells: Sequence[AttackCell]) -> None:
    """Show why single cells have no picture: each reason once, with its columns."""
    columns_by_reason: dict[str, list[str]] = {}
    for cell in cells:
        if cell.problem and not cell.done:
            columns_by_reason.setdefault(cell.problem, []).append(view.titles[cell.column])
    for reason, columns in columns_by_reason.items():
        _problem(f"{', '.join(dict.fromkeys(columns))}: {reason}")


# --- below the pictures ------------------------------------------------------------------------------------


def _context(cells: Sequence[AttackCell]) -> None:
    """Say what the attacker lacks, and that one picture in the upload is the easiest case."""
    seen = first_seen(cells)
    if seen and seen.facts.get("lacks"):
        series.explain(attack_texts.lacks(str(seen.facts["lacks"])))
    others = sum(cell.leaking_others for cell in cells if cell.ordinary)
    if others:
        st.button(
            attack_texts.SHOW_OTHERS, key="leak-others", type="tertiary", on_click=lambda: STATE.choose(closer="upload")
        )
    if seen is None or STATE.current().content != "1":
        return
    with st.container(horizontal=True, vertical_alignment="center", key="leak-easiest"):
        st.caption(attack_texts.easiest(seen.facts), width="content")
        st.button(
            attack_texts.ORDINARY, key="leak-ordinary", type="tertiary", on_click=attacker.choose_content,
            args=("ordinary",),
        )  # fmt: skip


def finite_answers(view: GridView) -> list[Epsilon]:
    """Return the finite ε of the columns for the attacker's view."""
    answers = [answer_of(view, column) for column in view.columns]
    return [answer for answer in answers if answer and answer.value is not None]


def _epsilon_terms(view: GridView) -> None:
    """Show the unit, the view and δ of the ε in the heads. An ε means nothing without them."""
    answers = finite_answers(view)
    if not answers:
        return
    probed = STATE.current().upload == "listed" and any(answer.unit == "record" for answer in answers)
    note = attack_texts.PROBE_EPSILON if probed else ""
    text = " ".join(filter(None, [attack_texts.terms(answers), note]))
    st.html(f'<p class="ll-note ll-terms">{html.escape(text)}</p>')


# --- before the shelves are loaded -------------------------------------------------------------------------


def example() -> None:
    """Draw the stored grid of a first visit. It needs no engine."""
    examples = attack_cells.stored()
    error = attack_examples.load_error()
    if error:
        messages.show("problem", str(error))
    first = [example for example in examples.values() if _is_first_visit(example.spec)]
    if not first or url.params():
        return
    heads: dict[str, ColumnHead] = {}
    titles: dict[str, str] = {}
    attacks: dict[str, str] = {}
    cells = []
    for stored in first:
        key = key_of(stored.spec["run"]["method"])
        attack = str(stored.spec["attack"]["name"])
        titles[key] = attack_texts.NONE if key == attack_grid.NONE else attack_texts.noisy(key)
        short, method = attack_texts.head(titles[key])
        lines = (method, privacy.noise_split(stored.spec["run"]["method"]))
        heads.setdefault(key, ColumnHead(key, short, tuple((line, "") for line in lines if line)))
        attacks.setdefault(attack, attack_texts.TITLES.get(attack, attack))
        events = AttackEvents("stored", stored.events)
        cells.append(attack_summary.collect_cell(RequestedAttack(key, attack, None), events))
    st.caption(states.STORED.format(made=first[0].made))
    st.html(f'<p class="ll-lead">{html.escape(verdicts.of_cells(cells, titles, attack_grid.NONE))}</p>')
    picture_grid.draw(
        GridSheet(list(heads.values()), attacks, cells, frames=True, autoplay=_animation(cells), each=False)
    )


def _is_first_visit(spec: Mapping[str, Any]) -> bool:
    """Whether a stored attack is a cell of the grid of a first visit."""
    if "target-epsilon" in spec["run"] or spec.get("upload", "listed") != "listed" or spec["view"] != "server":
        return False
    return spec["pictures"] == [FIRST_PICTURE] and key_of(spec["run"]["method"]) in AGAINST
