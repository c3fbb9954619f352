"""The left side of the Trade-off screen: the run, what is varied of it, and what that costs before the click."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from app import notes, question, state, tradeoff, tradeoff_orders, tradeoff_tables, words_tradeoff
from app.tradeoff import Tradeoff
from app.tradeoff_cells import ASK, DAMAGED, Cell
from app.tradeoff_orders import choose, choose_of, choose_run
from engine.errors import LeakLensError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from engine.specs.sweep import Point

FIELDS = ("model", "dataset", "clients", "sampled", "rounds", "methods", "noises", "steps", "of")


def form() -> None:
    """The question; a refusal stands under its field."""
    asked = tradeoff_orders.asked()
    for said in state.recall("tradeoff-told", []):
        notes.say("note", said)
    kinds = (words_tradeoff.OF_OWN, words_tradeoff.OF_PAPER)
    st.segmented_control(
        words_tradeoff.ASK, kinds, required=True, width="stretch",
        **state.tie("tradeoff-kind", kinds[bool(asked.table)], _kind),
    )  # fmt: skip
    if asked.table:
        tradeoff_tables.form(asked)
        _seeds(asked)
        return
    refused = _refused()
    _run(asked, refused)
    titles = tradeoff.titles()
    st.multiselect(
        words_tradeoff.METHODS, tradeoff.offered(asked), format_func=lambda name: titles.get(name, name), wrap=True,
        **state.tie("tradeoff-methods", list(asked.methods), lambda value: choose(methods=tuple(value))),
    )  # fmt: skip
    _under("methods", refused)
    _text("noises", words_tradeoff.NOISES, words_tradeoff.NOISES_HELP, asked.noises, refused)
    _text("steps", words_tradeoff.STEPS, words_tradeoff.STEPS_HELP, asked.steps, refused)
    _seeds(asked)
    st.toggle(
        words_tradeoff.PLAIN, help=words_tradeoff.PLAIN_HELP,
        **state.tie("tradeoff-plain", asked.plain, lambda value: choose(plain=value)),
    )  # fmt: skip
    with st.popover(words_tradeoff.OF):
        _of(asked, titles, refused)
    _under("of", refused)


def _kind(chosen: str) -> None:
    tradeoff_tables.switch(chosen == words_tradeoff.OF_PAPER)


def _seeds(asked: Tradeoff) -> None:
    st.number_input(
        words_tradeoff.SEEDS, 1, tradeoff.MOST_SEEDS, help=words_tradeoff.SEEDS_HELP,
        **state.tie("tradeoff-seeds", asked.seeds, lambda value: choose(seeds=value)),
    )  # fmt: skip


def _refused() -> str:
    try:
        tradeoff_orders.laid_out()
    except LeakLensError as error:
        return str(error)
    return ""


def _run(asked: Tradeoff, refused: str) -> None:
    """The run that is varied: what tells most of it here, the rest in the Lab."""
    with st.container(horizontal=True):
        _part("model", "Train", asked)
        _part("dataset", "on", asked)
    _under("model", refused)
    _under("dataset", refused)
    with st.container(horizontal=True):
        for name, label in (("clients", "with clients"), ("sampled", "of them a round"), ("rounds", "for rounds")):
            st.number_input(label, step=1, **state.tie(f"tradeoff-{name}", asked.run[name], _choosing(name)))
    for name in ("clients", "sampled", "rounds"):
        _under(name, refused)
    title = question.part_class("partition", asked.run["partition"]).title
    rest = words_tradeoff.rest(asked.run, title, tradeoff.unusual(asked.run))
    st.html(f'<p class="ll-why ll-faint">{html.escape(rest)}</p>')
    if st.button(words_tradeoff.IN_LAB, key="tradeoff-lab", help=words_tradeoff.IN_LAB_HELP, type="tertiary"):
        state.leave("lab", tradeoff_orders.lab())


def _part(part: str, label: str, asked: Tradeoff) -> None:
    titles = {name: question.part_class(part, name).title for name in question.names(part)}
    st.selectbox(
        label, list(titles), format_func=lambda name: titles.get(name, name),
        **state.tie(f"tradeoff-{part}", asked.run[part], _choosing(part)),
    )  # fmt: skip


def _choosing(name: str) -> Callable[[Any], None]:
    return lambda value: choose_run(**{name: value})


def _text(name: str, label: str, help: str, value: str, refused: str) -> None:
    st.text_input(
        label, max_chars=tradeoff.MOST_TEXT, help=help,
        **state.tie(f"tradeoff-{name}", value, lambda text: choose(**{name: text or ""})),
    )  # fmt: skip
    if not refused and tradeoff.may_mislead(value):
        st.caption(words_tradeoff.read_as(tradeoff.numbers(name, value)))
    _under(name, refused)


def _under(name: str, refused: str) -> None:
    """What there is against this field."""
    if refused and tradeoff.blamed(refused) == name:
        elsewhere = name == "of" and tradeoff.of_the_run(tradeoff_orders.asked())
        notes.say("problem", f"{refused.rstrip('.')}. {words_tradeoff.OF_THE_RUN}" if elsewhere else refused)


# --- settings of single methods ----------------------------------------------------------------------------


def _of(asked: Tradeoff, titles: Mapping[str, str], refused: str) -> None:
    whole = refused and tradeoff.of_the_run(asked)
    if refused and (whole or tradeoff.blamed(refused) != "of"):  # what is in force cannot be told before it is mended
        notes.say("note", words_tradeoff.OF_THE_RUN if whole else words_tradeoff.MEND)
        return
    for method in asked.methods:
        st.html(f'<h2 class="ll-title">{html.escape(titles[method])}</h2>')
        values = asked.of.get(method, {}) if refused else tradeoff.in_force(asked, method)
        fields = question.own_fields("method", method)
        for name in values:
            _field(method, name, fields[name], values[name])


def _field(method: str, name: str, info: FieldInfo, value: Any) -> None:
    label = info.title or name
    key, kind = f"tradeoff-of-{method}-{name}", question.kind_of(info)
    how = {"help": info.description, **state.tie(key, value, lambda told: choose_of(method, name, told))}
    if kind is bool:
        st.toggle(label, **how)
    elif kind is str:
        st.selectbox(label, question.choices(info), **how)
    elif kind is int:
        st.number_input(label, step=1, **how)
    else:
        st.number_input(label, step=0.1, format="%g", **how)


# --- before the click --------------------------------------------------------------------------------------


def before(cells: Sequence[Cell]) -> None:
    """How much there is to do, what stands in the way, and the button."""
    try:
        points = tradeoff_orders.laid_out()
    except LeakLensError as error:
        if tradeoff.blamed(str(error)) not in FIELDS:  # else it stands there
            notes.say("problem", str(error))
        rest = words_tradeoff.RUN.format(many="").strip()
        st.button(rest, type="primary", disabled=True, width="stretch", help=words_tradeoff.MEND)
        return
    missing, known = _missing(points, cells), sum(cell.known for cell in cells)
    fatal = _problems(points)
    if trouble := str(state.recall("tradeoff-trouble", "")):
        notes.say("problem", trouble)
    going = any(cell.moving for cell in cells) or bool(tradeoff_orders.fed())
    label = words_tradeoff.run(len(missing), len(points), known)
    st.button(
        words_tradeoff.UNDER_WAY if going else label, key="tradeoff-run",
        type="primary", width="stretch", disabled=fatal or not missing or going,
        on_click=tradeoff_orders.run, args=ASK,
    )  # fmt: skip
    if not going and not fatal:
        st.caption(words_tradeoff.expected(len(points), known, seconds(missing) if missing else None))


def _missing(points: Sequence[Point], cells: Sequence[Cell]) -> list[Point]:
    """What a click asks for: of records that cannot be read, those that this visitor may delete."""
    free = tradeoff_orders.deletable([cell.point.id for cell in cells if cell.status == DAMAGED])
    standing = {cell.point.id: cell.status for cell in cells}
    return [
        point for point in points
        if standing[point.id] in ASK and (standing[point.id] != DAMAGED or point.id in free)
    ]  # fmt: skip


def seconds(points: Sequence[Point]) -> float | None:
    """How long these would take with every core at a run of its own."""
    one = {point.method: state.forecast_of(point.spec.canonical(), threads=1).seconds for point in _first(points)}
    each = [one[point.method] for point in points]
    known = [value for value in each if value is not None]
    return sum(known) / state.kitchen().supervisor.workers if len(known) == len(each) else None


def _first(points: Sequence[Point]) -> list[Point]:
    """One point of each method."""
    return list({point.method: point for point in reversed(points)}.values())[::-1]


def _problems(points: Sequence[Point]) -> bool:
    """Everything against the question, each once, with the methods it is about; whether any of it stops them."""
    told: dict[tuple[str, bool], list[str]] = {}
    for point in _first(points):
        for one in state.forecast_of(point.spec.canonical(), threads=1).problems:
            told.setdefault((f"{one.reason}. {one.remedy}.", one.fatal), []).append(type(point.spec.method).title)
    everybody = len(_first(points))
    for (text, fatal), methods in told.items():
        whose = "" if len(methods) == everybody else f"{', '.join(methods)}: "
        notes.say("problem" if fatal else "note", f"{whose}{text}")
    return any(fatal for _, fatal in told)
