"""The left side of the Trade-off screen: the run, what is varied of it, and what that costs before the click."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.screens.tradeoff import requests as tradeoff_requests
from app.screens.tradeoff import settings as tradeoff_settings
from app.screens.tradeoff import tables as tradeoff_tables
from app.screens.tradeoff.cells import ASK, DAMAGED, TradeoffCell
from app.screens.tradeoff.requests import choose, choose_of, choose_run
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import messages, run_settings, services, session, url
from app.texts import sweep as sweep_texts
from engine.errors import LeakLensError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from engine.specs.sweep import SweepPoint

FIELDS = ("model", "dataset", "clients", "sampled", "rounds", "methods", "noises", "steps", "of")


def form() -> None:
    """The question; a refusal stands under its field."""
    asked = tradeoff_requests.asked()
    for said in session.recall("tradeoff-told", []):
        messages.say("note", said)
    kinds = (sweep_texts.OF_OWN, sweep_texts.OF_PAPER)
    st.segmented_control(
        sweep_texts.ASK, kinds, required=True, width="stretch",
        **session.tie("tradeoff-kind", kinds[bool(asked.table)], _kind),
    )  # fmt: skip
    if asked.table:
        tradeoff_tables.form(asked)
        _seeds(asked)
        return
    refused = _refused()
    _run(asked, refused)
    titles = tradeoff_settings.titles()
    st.multiselect(
        sweep_texts.METHODS, tradeoff_settings.offered(asked), format_func=lambda name: titles.get(name, name),
        wrap=True,
        **session.tie("tradeoff-methods", list(asked.methods), lambda value: choose(methods=tuple(value))),
    )  # fmt: skip
    _under("methods", refused)
    _text("noises", sweep_texts.NOISES, sweep_texts.NOISES_HELP, asked.noises, refused)
    _text("steps", sweep_texts.STEPS, sweep_texts.STEPS_HELP, asked.steps, refused)
    _seeds(asked)
    st.toggle(
        sweep_texts.PLAIN, help=sweep_texts.PLAIN_HELP,
        **session.tie("tradeoff-plain", asked.plain, lambda value: choose(plain=value)),
    )  # fmt: skip
    with st.popover(sweep_texts.OF):
        _of(asked, titles, refused)
    _under("of", refused)


def _kind(chosen: str) -> None:
    tradeoff_tables.switch(chosen == sweep_texts.OF_PAPER)


def _seeds(asked: TradeoffSettings) -> None:
    st.number_input(
        sweep_texts.SEEDS, 1, tradeoff_settings.MOST_SEEDS, help=sweep_texts.SEEDS_HELP,
        **session.tie("tradeoff-seeds", asked.seeds, lambda value: choose(seeds=value)),
    )  # fmt: skip


def _refused() -> str:
    try:
        tradeoff_requests.laid_out()
    except LeakLensError as error:
        return str(error)
    return ""


def _run(asked: TradeoffSettings, refused: str) -> None:
    """The run that is varied: what tells most of it here, the rest in the Lab."""
    with st.container(horizontal=True):
        _part("model", "Train", asked)
        _part("dataset", "on", asked)
    _under("model", refused)
    _under("dataset", refused)
    with st.container(horizontal=True):
        for name, label in (("clients", "with clients"), ("sampled", "of them a round"), ("rounds", "for rounds")):
            st.number_input(label, step=1, **session.tie(f"tradeoff-{name}", asked.run[name], _choosing(name)))
    for name in ("clients", "sampled", "rounds"):
        _under(name, refused)
    title = run_settings.part_class("partition", asked.run["partition"]).title
    rest = sweep_texts.rest(asked.run, title, tradeoff_settings.unusual(asked.run))
    st.html(f'<p class="ll-why ll-faint">{html.escape(rest)}</p>')
    if st.button(sweep_texts.IN_LAB, key="tradeoff-lab", help=sweep_texts.IN_LAB_HELP, type="tertiary"):
        url.leave("lab", tradeoff_requests.lab())


def _part(part: str, label: str, asked: TradeoffSettings) -> None:
    titles = {name: run_settings.part_class(part, name).title for name in run_settings.names(part)}
    st.selectbox(
        label, list(titles), format_func=lambda name: titles.get(name, name),
        **session.tie(f"tradeoff-{part}", asked.run[part], _choosing(part)),
    )  # fmt: skip


def _choosing(name: str) -> Callable[[Any], None]:
    return lambda value: choose_run(**{name: value})


def _text(name: str, label: str, help: str, value: str, refused: str) -> None:
    st.text_input(
        label, max_chars=tradeoff_settings.MOST_TEXT, help=help,
        **session.tie(f"tradeoff-{name}", value, lambda text: choose(**{name: text or ""})),
    )  # fmt: skip
    if not refused and tradeoff_settings.may_mislead(value):
        st.caption(sweep_texts.read_as(tradeoff_settings.numbers(name, value)))
    _under(name, refused)


def _under(name: str, refused: str) -> None:
    """What there is against this field."""
    if refused and tradeoff_settings.blamed(refused) == name:
        elsewhere = name == "of" and tradeoff_settings.of_the_run(tradeoff_requests.asked())
        messages.say("problem", f"{refused.rstrip('.')}. {sweep_texts.OF_THE_RUN}" if elsewhere else refused)


# --- settings of single methods ----------------------------------------------------------------------------


def _of(asked: TradeoffSettings, titles: Mapping[str, str], refused: str) -> None:
    whole = refused and tradeoff_settings.of_the_run(asked)
    if refused and (
        whole or tradeoff_settings.blamed(refused) != "of"
    ):  # what is in force cannot be told before it is mended
        messages.say("note", sweep_texts.OF_THE_RUN if whole else sweep_texts.MEND)
        return
    for method in asked.methods:
        st.html(f'<h2 class="ll-title">{html.escape(titles[method])}</h2>')
        values = asked.of.get(method, {}) if refused else tradeoff_settings.in_force(asked, method)
        fields = run_settings.own_fields("method", method)
        for name in values:
            _field(method, name, fields[name], values[name])


def _field(method: str, name: str, info: FieldInfo, value: Any) -> None:
    label = info.title or name
    key, kind = f"tradeoff-of-{method}-{name}", run_settings.kind_of(info)
    how = {"help": info.description, **session.tie(key, value, lambda told: choose_of(method, name, told))}
    if kind is bool:
        st.toggle(label, **how)
    elif kind is str:
        st.selectbox(label, run_settings.choices(info), **how)
    elif kind is int:
        st.number_input(label, step=1, **how)
    else:
        st.number_input(label, step=0.1, format="%g", **how)


# --- before the click --------------------------------------------------------------------------------------


def before(cells: Sequence[TradeoffCell]) -> None:
    """How much there is to do, what stands in the way, and the button."""
    try:
        points = tradeoff_requests.laid_out()
    except LeakLensError as error:
        if tradeoff_settings.blamed(str(error)) not in FIELDS:  # else it stands there
            messages.say("problem", str(error))
        rest = sweep_texts.RUN.format(many="").strip()
        st.button(rest, type="primary", disabled=True, width="stretch", help=sweep_texts.MEND)
        return
    missing, known = _missing(points, cells), sum(cell.known for cell in cells)
    fatal = _problems(points)
    if trouble := str(session.recall("tradeoff-trouble", "")):
        messages.say("problem", trouble)
    going = any(cell.moving for cell in cells) or bool(tradeoff_requests.fed())
    label = sweep_texts.run(len(missing), len(points), known)
    st.button(
        sweep_texts.UNDER_WAY if going else label, key="tradeoff-run",
        type="primary", width="stretch", disabled=fatal or not missing or going,
        on_click=tradeoff_requests.run, args=ASK,
    )  # fmt: skip
    if not going and not fatal:
        st.caption(sweep_texts.expected(len(points), known, seconds(missing) if missing else None))


def _missing(points: Sequence[SweepPoint], cells: Sequence[TradeoffCell]) -> list[SweepPoint]:
    """What a click asks for: of records that cannot be read, those that this visitor may delete."""
    free = tradeoff_requests.deletable([cell.point.id for cell in cells if cell.status == DAMAGED])
    standing = {cell.point.id: cell.status for cell in cells}
    return [
        point for point in points
        if standing[point.id] in ASK and (standing[point.id] != DAMAGED or point.id in free)
    ]  # fmt: skip


def seconds(points: Sequence[SweepPoint]) -> float | None:
    """How long these would take with every core at a run of its own."""
    one = {point.method: services.forecast_of(point.spec.canonical(), threads=1).seconds for point in _first(points)}
    each = [one[point.method] for point in points]
    known = [value for value in each if value is not None]
    return sum(known) / services.shared().supervisor.workers if len(known) == len(each) else None


def _first(points: Sequence[SweepPoint]) -> list[SweepPoint]:
    """One point of each method."""
    return list({point.method: point for point in reversed(points)}.values())[::-1]


def _problems(points: Sequence[SweepPoint]) -> bool:
    """Everything against the question, each once, with the methods it is about; whether any of it stops them."""
    told: dict[tuple[str, bool], list[str]] = {}
    for point in _first(points):
        for one in services.forecast_of(point.spec.canonical(), threads=1).problems:
            told.setdefault((f"{one.reason}. {one.remedy}.", one.fatal), []).append(type(point.spec.method).title)
    everybody = len(_first(points))
    for (text, fatal), methods in told.items():
        whose = "" if len(methods) == everybody else f"{', '.join(methods)}: "
        messages.say("problem" if fatal else "note", f"{whose}{text}")
    return any(fatal for _, fatal in told)
