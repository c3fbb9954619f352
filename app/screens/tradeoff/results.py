"""The right side of the Trade-off screen: the frontier, drawn again while points appear."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from app.charts import tradeoff as panel
from app.charts.base import Panel
from app.charts.tradeoff import Frontier
from app.screens.tradeoff import cells as tradeoff_cells
from app.screens.tradeoff import points as tradeoff_points
from app.screens.tradeoff import requests as tradeoff_requests
from app.screens.tradeoff import settings as tradeoff_settings
from app.screens.tradeoff.cells import DAMAGED, STOPPED, TradeoffCell, TradeoffView
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import limits as class_limits
from app.session import messages, services, session, url
from app.texts import attacks as attack_texts
from app.texts import numbers, privacy, states
from app.texts import sweep as sweep_texts
from app.widgets import chart as chart_widget
from engine.examples import sweep
from engine.specs.sweep import SweepPoint

POLL_S = 0.5
FORECASTS = 24  # a twentieth of a second each, the first time
CSS = """
<style>
.st-key-tradeoff-charts-user > div, .st-key-tradeoff-charts-record > div { flex: 1 1 360px !important; min-width: 0; }
</style>
"""


def show(view: TradeoffView, cells: Sequence[TradeoffCell]) -> None:
    """The whole right side; while something still runs it draws itself again and again."""
    if any(cell.moving for cell in cells) or tradeoff_requests.fed():
        st.fragment(messages.guarded(_followed), run_every=POLL_S)(view)
    else:
        _drawn(view, cells, False)


def read(view: TradeoffView) -> tuple[TradeoffCell, ...]:
    ship = sweep.frontier()
    if not view.live:
        return tradeoff_cells.of_example(ship) if ship else ()
    return tradeoff_cells.read(view.points)


def _followed(view: TradeoffView) -> None:
    """Ask for what may be asked by now, and draw what is known by now."""
    if problem := services.attempt(tradeoff_requests.feed):
        messages.say("problem", problem)
    cells = read(view)
    if not tradeoff_requests.fed() and not any(cell.moving for cell in cells):  # the last of them has just ended
        session.again()
    _drawn(view, cells, True)


def _drawn(view: TradeoffView, cells: Sequence[TradeoffCell], going: bool) -> None:
    if view.stale:
        messages.say("note", sweep_texts.LAST_GOOD)
    if view.live:
        _bar(view, cells, going)
    _origin(view, cells, going)
    asked = _looked(view, cells)
    found = tradeoff_cells.frontiers(cells, view.titles, asked, view.headless)
    _frontiers(found, going, tradeoff_cells.several_steps(cells))
    _whose(view, found, asked.own)
    if not found:
        messages.say("said", sweep_texts.WAITING)
        _buys(view, asked.eyes)
    if found and view.live and not going:
        panels = [each for one in found for each in _panels(one, panel.heights(found), len(found) > 1)]
        tradeoff_points.details(view, cells, found, asked, panels)


# --- asking and waiting ------------------------------------------------------------------------------------


def _bar(view: TradeoffView, cells: Sequence[TradeoffCell], going: bool) -> None:
    """How far it is, and the buttons that stop it and go on."""
    waiting = tradeoff_requests.fed()
    known = sum(cell.result is not None for cell in cells)
    done = sum(bool(cell.result and not cell.moving and cell.point.id not in waiting) for cell in cells)
    stopped = [cell for cell in cells if cell.status in STOPPED]
    failed = [cell for cell in cells if cell.problem]
    if going:
        with st.container(horizontal=True, vertical_alignment="center", key="tradeoff-bar"):
            text = sweep_texts.progress(done, len(cells), _left(done, len(cells)))
            if stuck := services.shared().supervisor.trouble:
                text = f"{text} · {stuck}"
            st.progress(done / max(1, len(cells)), text)
            st.button(sweep_texts.CANCEL, key="tradeoff-cancel", on_click=tradeoff_requests.cancel, args=(view.points,))
        _turns(cells)
    elif stopped:
        with st.container(horizontal=True, vertical_alignment="center", key="tradeoff-bar"):
            said = sweep_texts.STOPPED.format(known=known, all=len(cells))
            st.html(f'<p class="ll-said" role="status">{html.escape(said)}</p>', width="content")
            st.button(
                sweep_texts.GO_ON,
                key="tradeoff-go-on",
                on_click=tradeoff_requests.run,
                args=("", *STOPPED),
            )
    _failures(view, failed, going)


def _turns(cells: Sequence[TradeoffCell]) -> None:
    """Why not everything is in the queue at once, where visitors share the machine."""
    if not tradeoff_requests.fed():
        return
    caps = class_limits.caps()
    by_turns = caps.runs is not None and (caps.waiting is None or any(cell.moving for cell in cells))
    words_of = sweep_texts.BY_TURNS if by_turns else sweep_texts.PAUSED
    messages.say("note", words_of.format(most=caps.runs, waiting=caps.waiting))


def _left(known: int, many: int) -> float | None:
    """Seconds until all are done, as fast as it went since the click."""
    began, now = session.recall("tradeoff-began"), session.now()
    if not began or began[1] > known:
        session.remember("tradeoff-began", (now, known))
        return None
    start, before = began
    return float((now - start) * (many - known) / (known - before)) if known - before > 1 else None


def _failures(view: TradeoffView, failed: Sequence[TradeoffCell], going: bool) -> None:
    """Why single points are missing, each reason once, and the way to try them again."""
    told: dict[str, list[str]] = {}
    lost = {cell.point.id for cell in failed if cell.status == DAMAGED}
    free = tradeoff_requests.deletable(sorted(lost))
    for cell in failed:
        one = cell.point
        name = f"{view.titles.get(one.name, one.name)}, {sweep_texts.noise(one.noise)}"
        problem = sweep_texts.lost(one.id, one.id in free) if one.id in lost else cell.problem
        told.setdefault(problem, []).append(name)
    for problem, names in told.items():
        messages.say("problem", f"{'; '.join(dict.fromkeys(names))}: {problem}")
    if not going and any(cell.status != DAMAGED or cell.point.id in free for cell in failed):
        states = ("failed", DAMAGED)
        st.button(sweep_texts.RETRY, key="tradeoff-retry", on_click=tradeoff_requests.run, args=states)


def _origin(view: TradeoffView, cells: Sequence[TradeoffCell], going: bool) -> None:
    """Where the points that nobody here has computed come from."""
    ship = sweep.frontier()
    many = sum(cell.shipped for cell in cells)
    if not ship or not many:
        return
    whole = many == len(cells)
    said = states.STORED.format(made=ship.made) if whole else sweep_texts.stored(many, ship.made)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(said, width="content")
        if view.live and not going:
            st.button(sweep_texts.LIVE, key="tradeoff-live", on_click=tradeoff_requests.live)


# --- the picture -------------------------------------------------------------------------------------------


def _looked(view: TradeoffView, cells: Sequence[TradeoffCell]) -> TradeoffSettings:
    """Whose ε and whose accuracy: both may be changed while points appear."""
    if not view.live:
        return view.asked
    asked = tradeoff_requests.asked()
    with st.container(horizontal=True, vertical_alignment="bottom", key="tradeoff-look"):
        st.selectbox(
            sweep_texts.EYES, privacy.VIEWS, format_func=_observer, width=330,
            **session.tie("tradeoff-eyes", asked.eyes, lambda value: tradeoff_requests.look(eyes=value)),
        )  # fmt: skip
        if tradeoff_cells.personal(cells):
            st.segmented_control(
                sweep_texts.WHOSE, tradeoff_settings.WHOSE, format_func=sweep_texts.MODELS.__getitem__, required=True,
                **session.tie("tradeoff-whose", asked.whose, lambda value: tradeoff_requests.look(whose=value)),
            )  # fmt: skip
    found = replace(view.asked, eyes=asked.eyes, whose=asked.whose)
    if not view.stale:
        url.sign("tradeoff", tradeoff_settings.link(found))  # the page itself may not be drawn again for long
    return found


def _observer(view: str) -> str:
    return f"{privacy.OBSERVERS[view]}: {privacy.SEES[view]}"


def _buys(view: TradeoffView, eyes: str) -> None:
    """ε of every method at every noise, which needs no run; a table for each unit."""
    first = {(point.name, point.noise): point for point in reversed(view.points) if point.noise is not None}
    if not 0 < len(first) <= FORECASTS:
        return
    units: dict[str, list[SweepPoint]] = {}
    for point in reversed(first.values()):
        units.setdefault(point.spec.method.unit() or "user", []).append(point)
    for unit, points in units.items():
        messages.why(sweep_texts.BUYS.format(seen=privacy.SEEN_BY[eyes], per=privacy.PER[unit]))
        st.html(f'{attack_texts.TABLE_CSS}<div class="ll-numbers" tabindex="0">{_bill(points, view, eyes)}</div>')
        _stands(unit, points, view, eyes)


def _stands(unit: str, points: Sequence[SweepPoint], view: TradeoffView, eyes: str) -> None:
    """What the ε of that table stand on, and why some are missing."""
    found = [(point, _answer(point, eyes)) for point in points]
    finite = [(point, one) for point, one in found if one and one.epsilon is not None]
    if finite:
        told = []
        for point, one in finite:
            terms = (one.adjacency, one.delta, one.accountant, one.bound, one.sampling)
            told.append((view.titles.get(point.name, point.name), point.noise, terms))
        for said in sweep_texts.stands(unit, eyes, told):
            messages.why(said)
    missing: dict[str, dict[str, None]] = {}
    for point, one in found:
        if one is None or one.epsilon is None:
            promise = services.forecast_of(point.spec.canonical(), threads=1).guarantee
            why = one.reason if one else promise.absent.get(eyes, "") if promise else ""
            missing.setdefault(why or sweep_texts.UNPROMISED, {})[view.titles.get(point.name, point.name)] = None
    for why, titles in missing.items():
        messages.why(f"{', '.join(titles)}: {sweep_texts.no_epsilon(eyes, why)}.")


def _bill(points: Sequence[SweepPoint], view: TradeoffView, eyes: str) -> str:
    at = {(point.name, point.noise): _bought(point, eyes) for point in points}
    noises = sorted({point.noise for point in points if point.noise is not None}, reverse=True)
    heads = "".join(f'<th scope="col">{html.escape(sweep_texts.noise(noise))}</th>' for noise in noises)
    rows = []
    for name in dict.fromkeys(point.name for point in points):
        cells = "".join(f"<td>{at.get((name, noise), '–')}</td>" for noise in noises)
        rows.append(f'<tr><th scope="row">{html.escape(view.titles.get(name, name))}</th>{cells}</tr>')
    head = f'<thead><tr><th scope="col">{sweep_texts.HEADS["method"]}</th>{heads}</tr></thead>'
    return f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"


def _answer(point: SweepPoint, eyes: str) -> Any:
    """As the ledger tells it; None where this view does not apply."""
    told = services.forecast_of(point.spec.canonical(), threads=1)
    return next((answer for answer in told.answers if answer.view == eyes), None)


def _bought(point: SweepPoint, eyes: str) -> str:
    one = _answer(point, eyes)
    if one is None or one.epsilon is None:
        return "no ε"
    value = f"ε {numbers.epsilon(one.epsilon)}"
    if one.epsilon > privacy.VACUOUS:
        return f'<b class="ll-leaking">{value}</b> <small>{sweep_texts.NOTHING_SAID}</small>'
    return f'<b class="ll-private">{value}</b>'


def _frontiers(found: Sequence[Frontier], going: bool, several_steps: bool) -> None:
    up = panel.heights(found)
    for one in found:
        if len(found) > 1:
            st.html(f'<h2 class="ll-title">{html.escape(sweep_texts.UNITS[one.unit])}</h2>')
        _frontier(one, up, going)
        known = [(line.title, told) for line in one.lines for spot in line.spots if (told := spot.dearest(one.view))]
        read_so = sweep_texts.bands(one.spots, several_steps)
        for note in filter(None, [*sweep_texts.all_terms(known, one.view), read_so]):
            messages.say("note", note)
    if len(found) > 1:
        messages.say("note", sweep_texts.APART)


def _whose(view: TradeoffView, found: Sequence[Frontier], own: bool) -> None:
    """What the ε beside models of the clients' own say, and what stands for a shared model where there is none."""
    lines = [line for one in found for line in one.lines]
    if own and lines:
        plain = dict.fromkeys(view.titles.get(line.method, line.method) for one in found for line in one.plain)
        messages.say("note", sweep_texts.own_models(list(plain)))
    if not own and (titles := dict.fromkeys(line.title for line in lines if line.method in view.headless)):
        messages.say("note", sweep_texts.HEADLESS.format(titles=", ".join(titles)))


def _frontier(one: Frontier, up: tuple[float, float], going: bool) -> None:
    plain = one.plain[0].spots[0] if one.plain else None
    lines = {line.title: line.spots for line in one.lines}
    if text := sweep_texts.verdict(lines, plain, one.view, one.own):
        st.html(f'<p class="ll-said" role="status" aria-live="polite">{html.escape(text)}</p>')
    with st.container(horizontal=True, key=f"tradeoff-charts-{one.unit}"):
        for each in _panels(one, up):
            _chart(each, one, going)
    for said in tradeoff_cells.absent(one):
        messages.why(said)


def _panels(one: Frontier, up: tuple[float, float], several: bool = False) -> list[Panel[Any]]:
    """The two charts of one unit; by ε only where anything has one. Of `several` units each is named."""
    of = f", {privacy.PER[one.unit]}" if several else ""
    noise = Panel[Any](
        f"tradeoff-noise-{one.unit}", f"{sweep_texts.BY_NOISE}{of}", (), lambda events: None,
        lambda found, dark: panel.by_noise(one, up, dark), lambda found: panel.tell_noise(one),
    )  # fmt: skip
    price = Panel[Any](
        f"tradeoff-epsilon-{one.unit}", f"{sweep_texts.BY_EPSILON}{of}", (), lambda events: None,
        lambda found, dark: panel.by_epsilon(one, up, dark), lambda found: panel.tell_epsilon(one),
    )  # fmt: skip
    return [noise, price] if one.finite else [noise]


def _chart(each: Panel[Any], one: Frontier, going: bool) -> None:
    with st.container():
        st.html(f'<h2 class="ll-title">{html.escape(each.title)}</h2>')
        key = f"chart-{each.name}"
        pick: dict[str, Any] = {} if going else {"on_select": lambda: _picked(key), "selection_mode": "points"}
        st.plotly_chart(
            each.draw([], session.dark()),
            key=key,
            theme=None,
            config=chart_widget.CONFIG,
            alt=each.describe([]),
            **pick,
        )


def _picked(key: str) -> None:
    points = session.recall(key, {}).get("selection", {}).get("points", [])
    if points and points[0].get("customdata"):
        tradeoff_requests.pick(*points[0]["customdata"])
