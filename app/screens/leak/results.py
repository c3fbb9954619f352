"""The lower part of the Leak screen: the pictures, drawn again while attacks run, and every number beside them."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from app.charts import psnr
from app.screens.leak import grid as picture_grid
from app.screens.leak import requests as leak_requests
from app.screens.leak import series
from app.screens.leak import settings as leak_settings
from app.screens.leak.grid import ColumnHead, GridSheet
from app.screens.leak.settings import GridColumn
from app.session import messages, run_settings, services, session, url
from app.texts import attacks as attack_texts
from app.texts import numbers, privacy, states
from app.widgets import chart as chart_widget
from engine.errors import LeakLensError
from engine.jobs.thumbnails import thumbnails
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell, AttackEvents
from engine.specs import attack_grid
from engine.specs.attack_grid import RequestedAttack
from engine.training.forecast import Forecast

POLL_S = 0.5


@dataclass(frozen=True)
class GridView:
    """What one pass shows: the question laid out, before anything is read of its answers."""

    columns: tuple[GridColumn, ...]
    asked: tuple[RequestedAttack, ...]
    attacks: Mapping[str, str]  # of the rows, with their titles
    left_out: tuple[str, ...]  # sentences about attacks that fit nowhere
    promises: Mapping[str, Forecast]
    eyes: str
    original: str

    @property
    def titles(self) -> dict[str, str]:
        return {one.key: one.title for one in self.columns}


def panel() -> None:
    """The grid and what belongs to it; while an attack runs it draws itself again and again."""
    try:
        view = laid_out()
    except LeakLensError as error:
        _problem(str(error))
        return
    if not view.attacks:
        _left_out(view)
        _problem(attack_texts.NOTHING)
        return
    cells = read(view.asked)
    moving = any(cell.moving for cell in cells)
    if moving:
        st.fragment(messages.guarded(_drawn), run_every=POLL_S)(view, moving)
    else:
        _drawn(view, moving)


def laid_out() -> GridView:
    """Rows, columns and why some cells stay empty: known before the click."""
    leak = leak_requests.leak()
    columns, asked, rows, left = leak_settings.columns(leak), [], dict[str, str](), list[str]()
    whole = leak_requests.fitted(leak_settings.cells(leak))
    for attack in leak.attacks:
        row = [one for one in whole if one.attack == attack]
        if all(one.problem for one in row):
            left.append(attack_texts.left_out(run_settings.attack_title(attack), row[0].problem))
            continue
        rows[attack] = run_settings.attack_title(attack)
        asked += row
    promises = {one.key: services.forecast_of(one.spec.canonical()) for one in columns}
    face = thumbnails(leak.run["dataset"], [leak.whose], services.store().home)[0].png
    return GridView(columns, tuple(asked), rows, tuple(left), promises, leak.eyes, face)


def read(asked: Sequence[RequestedAttack]) -> list[AttackCell]:
    """Every cell as it stands: from the store, else from a stored example."""
    ship = leak_requests.stored()
    found = []
    for one in asked:
        told: AttackEvents | None = None
        if one.id and (known := services.read(one.id)):
            told = AttackEvents(known[0].status, known[1], known[0].place)
        elif one.id in ship:
            told = AttackEvents("stored", ship[one.id].events)
        found.append(attack_summary.collect_cell(one, told))
    return found


def _drawn(view: GridView, moving: bool) -> None:
    cells = read(view.asked)
    going = any(cell.moving for cell in cells)
    _bar(cells)
    said = attack_texts.verdict_of_cells(cells, view.titles, attack_grid.NONE)
    st.html(f'<p class="ll-said" role="status" aria-live="polite">{html.escape(said)}</p>')
    picture = _which()
    picture_grid.draw(sheet(view, cells, picture, frames=not going))
    _terms(view)
    if going:
        return
    if moving:  # the last of them has just ended: now with the scrubber
        session.again()
    _realistic(cells, view.eyes)
    _left_out(view)
    _failures(view, cells)
    _details(view, cells, picture)


def _left_out(view: GridView) -> None:
    for said in view.left_out:
        st.html(f'<p class="ll-note" role="status">{html.escape(said)}</p>')


def sheet(view: GridView, cells: Sequence[AttackCell], picture: int, frames: bool) -> GridSheet:
    heads = [ColumnHead(one.key, attack_texts.head(one.title)[0], _lines(view, one, cells)) for one in view.columns]
    return GridSheet(heads, view.attacks, cells, picture, frames, autoplay=_name(cells), original=view.original)


def _name(cells: Sequence[AttackCell]) -> str:
    """Of a stored grid, which plays itself once; empty where anything is not stored."""
    stored = all(cell.status in ("stored", "") for cell in cells) and any(cell.status for cell in cells)
    seen = next((cell.seen for cell in cells if cell.seen), None)
    return seen.originals[0][-64:] if stored and seen else ""


def _lines(view: GridView, column: GridColumn, cells: Sequence[AttackCell]) -> tuple[tuple[str, str], ...]:
    """What a protection promises in this view, and how loud its noise was."""
    answer = next((one for one in view.promises[column.key].answers if one.view == view.eyes), None)
    promise = attack_texts.epsilon(answer.epsilon if answer else None, answer is not None)
    seen = next((cell.seen for cell in attack_summary.of_column(cells, column.key) if cell.seen), None)
    loud = attack_texts.loudness(seen.facts.get("noise-to-signal")) if seen else ""
    return tuple((text, "") for text in (attack_texts.head(column.title)[1], promise, loud) if text)


def _which() -> int:
    """Which picture of the upload is shown."""
    many = leak_requests.leak().many
    if many == 1:
        return 0
    chosen = st.segmented_control(attack_texts.SHOW, range(1, many + 1), default=1, required=True, key="leak-show")
    return min(many, int(chosen or 1)) - 1


# --- asking and waiting ------------------------------------------------------------------------------------


def _bar(cells: Sequence[AttackCell]) -> None:
    """How far everything is, and the buttons that begin and end it."""
    moving = [cell for cell in cells if cell.moving]
    missing = [cell for cell in cells if cell.id and cell.status in leak_requests.AGAIN[:-1]]
    stored = [cell for cell in cells if cell.status == "stored"]
    if trouble := str(session.recall("leak-trouble", "")):
        _problem(trouble)
    with st.container(horizontal=True, vertical_alignment="center", key="leak-bar"):
        if moving:
            asked = [cell for cell in cells if cell.status]
            done = sum(not cell.moving for cell in asked)
            text = attack_texts.progress(done, len(asked), series.left("leak", cells))
            if stuck := services.shared().supervisor.trouble:
                text = f"{text} · {stuck}"
            st.progress(min(1.0, attack_summary.fractions(cells)), text)
            st.button(attack_texts.CANCEL, key="leak-cancel", on_click=leak_requests.cancel)
        elif missing:
            st.button(
                attack_texts.attack(len(missing), len(cells)),
                key="leak-attack",
                type="primary",
                on_click=leak_requests.attack,
            )
        if stored and not moving:
            made = leak_requests.stored()[stored[0].id].made
            st.caption(states.STORED.format(made=made), width="content")
            st.button(attack_texts.LIVE, key="leak-live", on_click=leak_requests.attack, args=(True,))


def _problem(text: str) -> None:
    st.html(f'<p class="ll-problem" role="alert">{html.escape(text)}</p>')


def _failures(view: GridView, cells: Sequence[AttackCell]) -> None:
    """Why single cells have no picture."""
    told: dict[str, list[str]] = {}
    for cell in cells:
        if cell.problem and not cell.done:
            told.setdefault(cell.problem, []).append(view.titles[cell.column])
    for problem, columns in told.items():
        _problem(f"{', '.join(dict.fromkeys(columns))}: {problem}")


# --- beside the pictures -----------------------------------------------------------------------------------


def _realistic(cells: Sequence[AttackCell], eyes: str) -> None:
    if seen := next((cell.seen for cell in cells if cell.seen), None):
        real = attack_texts.realistic(seen.facts, eyes)
        st.html(f'<p class="ll-why">{html.escape(real)} {html.escape(attack_texts.NO_PROOF)}</p>')


def _terms(view: GridView) -> None:
    """The words without which the ε above each column means nothing."""
    answers = [one for told in view.promises.values() for one in told.answers if one.view == view.eyes]
    if promised := next((one for one in answers if one.epsilon is not None), None):
        said = attack_texts.terms(promised.unit, promised.view, promised.delta)
        st.html(f'<p class="ll-note">{html.escape(said)}</p>')


def _details(view: GridView, cells: Sequence[AttackCell], picture: int) -> None:
    if any(cell.done for cell in cells):
        st.html(f'<h2 class="ll-title">{html.escape(attack_texts.TABLE)}</h2>{table(view, cells, picture)}')
    curves = curves_of(view, cells, picture)
    if curves:
        plain = next((value for cell in cells if (value := cell.trivial(picture)) is not None), None)
        st.html(f'<h2 class="ll-title">{html.escape(attack_texts.CURVES)}</h2>')
        st.plotly_chart(
            psnr.draw(curves, plain, session.dark()), key="chart-psnr", theme=None, config=chart_widget.CONFIG,
            alt=psnr.describe(curves, plain),
        )  # fmt: skip
    with st.expander(attack_texts.COLUMNS):
        st.html(promises(view))
    with st.expander(attack_texts.HOW):
        st.html("".join(f"<p><b>{html.escape(title)}</b>. {html.escape(text)}</p>" for title, text in _attacks(view)))


def _attacks(view: GridView) -> list[tuple[str, str]]:
    parts = {name: run_settings.attack_class(name) for name in view.attacks}
    return [(title, f"{parts[name].summary()} ({parts[name].source})") for name, title in view.attacks.items()]


def table(view: GridView, cells: Sequence[AttackCell], picture: int) -> str:
    """PSNR, SSIM and LPIPS of every cell, and of the mean colour."""
    heads = "".join(f'<th scope="col">{html.escape(one.title)}</th>' for one in view.columns)
    found = {(cell.attack, cell.column): cell for cell in cells}
    rows = []
    for attack, title in view.attacks.items():
        boxes = [_numbers(found.get((attack, one.key)), picture) for one in view.columns]
        rows.append(f'<tr><th scope="row">{html.escape(title)}</th>{"".join(f"<td>{box}</td>" for box in boxes)}</tr>')
    plain = next((cell for cell in cells if cell.judged), None)
    if plain:
        told = _three({metric: plain.trivial(picture, metric) for metric in attack_summary.METRICS})
        rows.append(f'<tr><th scope="row">{attack_texts.GREY}</th><td colspan="{len(view.columns)}">{told}</td></tr>')
    head = f'<thead><tr><th scope="col">{attack_texts.METRICS}</th>{heads}</tr></thead>'
    body = f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"
    return f'{attack_texts.TABLE_CSS}<div class="ll-numbers" tabindex="0">{body}</div>'


def _numbers(cell: AttackCell | None, picture: int) -> str:
    if cell is None or not cell.done:
        return "–"
    told = _three({metric: cell.number(metric, picture) for metric in attack_summary.METRICS})
    return f"{told}<small>{html.escape(attack_texts.state(cell))}</small>"


def _three(numbers: Mapping[str, float | None]) -> str:
    shapes = {"psnr": "{:.1f}", "ssim": "{:.2f}", "lpips": "{:.2f}"}
    return " / ".join("–" if value is None else shapes[name].format(value) for name, value in numbers.items())


def curves_of(view: GridView, cells: Sequence[AttackCell], picture: int) -> list[psnr.PsnrCurve]:
    places = {one.key: place for place, one in enumerate(view.columns)}
    rows, found = {attack: row for row, attack in enumerate(view.attacks)}, list[psnr.PsnrCurve]()
    for cell in cells:
        near = [(one.iteration, shown[1]) for one in cell.path if (shown := attack_summary.moment(one, picture))]
        known = [(iteration, value) for iteration, value in near if value is not None]
        if known:
            names = view.attacks[cell.attack], view.titles[cell.column]
            found.append(
                psnr.PsnrCurve(*names, rows[cell.attack], places[cell.column], *map(tuple, zip(*known, strict=True)))
            )
    return found


def promises(view: GridView) -> str:
    """Each column's ε in the chosen view, with the words without which it means nothing."""
    found = []
    for one in view.columns:
        told = view.promises[one.key]
        answer = next((one for one in told.answers if one.view == view.eyes), None)
        if answer is None:
            absent = told.guarantee.absent.get(view.eyes, "") if told.guarantee else ""
            text = absent or attack_texts.UNPROMISED
        else:
            odds = privacy.odds(answer.view, answer.unit, answer.epsilon)
            terms = privacy.terms(
                answer.unit,
                answer.view,
                answer.adjacency,
                answer.delta,
                answer.accountant,
                answer.bound,
                answer.sampling,
            )
            text = f"ε = {numbers.epsilon(answer.epsilon)} ({terms}), {attack_texts.WHOLE_RUN}. {odds}"
        found.append(f"<p><b>{html.escape(one.title)}</b>. {html.escape(text)}</p>")
    return "".join(found)


# --- before the shelves are loaded -------------------------------------------------------------------------


def example() -> None:
    """The stored grid of a first visit: it needs no engine."""
    ship = leak_requests.stored()
    if not ship or url.in_address():
        return
    asked, heads, attacks, told, titles = [], dict[str, ColumnHead](), dict[str, str](), {}, dict[str, str]()
    for run, one in ship.items():
        key, attack = leak_settings.key_of(one.spec["run"]["method"]), str(one.spec["attack"]["name"])
        title = attack_texts.NONE if key == attack_grid.NONE else attack_texts.noisy(key)
        short, name = attack_texts.head(title)
        heads.setdefault(key, ColumnHead(key, short, ((name, ""),) if name else ()))
        titles[key] = title
        attacks.setdefault(attack, attack_texts.TITLES.get(attack, attack))
        asked.append((run, RequestedAttack(key, attack, None)))
        told[run] = AttackEvents("stored", one.events)
    cells = [attack_summary.collect_cell(one, told[run]) for run, one in asked]
    st.caption(states.STORED.format(made=next(iter(ship.values())).made))
    st.html(f'<p class="ll-said">{html.escape(attack_texts.verdict_of_cells(cells, titles, attack_grid.NONE))}</p>')
    picture_grid.draw(GridSheet(list(heads.values()), attacks, cells, frames=True, autoplay=_name(cells)))
