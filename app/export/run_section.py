"""The run on an exported page: its headline, its charts, its ε with every word, and the question itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.charts import accuracy, epsilon
from app.charts.base import thinned
from app.export import chart
from app.export import texts as said
from app.export.chart import SvgAxis, SvgChart, SvgLine
from app.export.gather import ExportedAttack, ExportedEpsilon, ExportedRun, PageContent
from app.export.markup import Html, joined, more, table, tag
from app.session import run_settings
from app.texts import attacks as leak_words
from app.texts import numbers, privacy, product
from engine.results.report import report

ROWS = 100  # of a table of rounds; charts show up to 500


def title(run: ExportedRun) -> str:
    """What protected the run."""
    return leak_words.column(run_settings.part_class("method", run.part["method"]).title, run.part.get("method.noise"))


def data(run: ExportedRun) -> str:
    return run_settings.part_class("dataset", run.part["dataset"]).title


# --- the headline ------------------------------------------------------------------------------------------


def headline(run: ExportedRun) -> Html:
    cells = []
    if run.known:
        body = report(run.events)
        after = f"after {body['rounds-done']} rounds"
        cells.append(_fact("accuracy", numbers.percent(body["accuracy"]), after))
        if body["accuracy-personal"] is not None:
            cells.append(_fact("personal accuracy", numbers.percent(body["accuracy-personal"]), "mean over clients"))
    for bill in run.bills:
        if bill.view in ("outsider", "server"):
            value = tag("span", f"ε {numbers.epsilon(bill.epsilon)}", class_=_side(bill))
            cells.append(_fact(privacy.SEEN_BY[bill.view], value, "lower is more private"))
    return tag("dl", *cells, _badge(run.guarantee), class_="facts")


def _fact(name: str, value: str, note: str) -> Html:
    return tag("div", tag("dt", name), tag("dd", value, " ", tag("small", note)))


def _badge(guarantee: Mapping[str, Any] | None) -> Html | None:
    if not guarantee:
        return None
    name, side, _ = privacy.STATUSES[guarantee["status"]]
    sign = "✓" if side == "private" else "✕"
    badge = tag("span", f"{sign} {name}", class_=f"badge {side}")
    return tag("div", tag("dt", f"guarantee: {guarantee['status']}"), tag("dd", badge, class_="small"))


def reason(run: ExportedRun) -> Html | None:
    """Why the badge says what it says; a promise that says next to nothing is not left alone."""
    if not run.guarantee:
        return None
    why = str(run.guarantee["reason"]).rstrip(".")
    said_of = f"{privacy.STATUSES[run.guarantee['status']][2]} {why[:1].upper()}{why[1:]}."
    numbers = [bill.epsilon for bill in run.bills if bill.epsilon is not None]
    vacuous = said.VACUOUS.format(limit=privacy.VACUOUS) if numbers and min(numbers) > privacy.VACUOUS else ""
    return tag("p", f"{said_of} {vacuous}".strip(), class_="faint")


# --- accuracy ----------------------------------------------------------------------------------------------


def learnt(run: ExportedRun) -> Html | None:
    mine = accuracy.collect(run.events)
    if mine is None:
        return None
    name, found = title(run), [("run", "", mine)]
    if run.twin and (beside := accuracy.collect(run.twin)):
        found.append(("leaking", "7 5", beside))
    lines, rows = [], []
    for kind, dash, curve in found:
        label = name if kind == "run" else product.TWIN
        lines.append(SvgLine(label, _percent(curve.rounds, curve.values), kind, dash))
        rows += [(label, curve.rounds, curve.values)]
        if curve.personal:
            lines.append(SvgLine(f"{label}, personal", _percent(curve.rounds, curve.personal), kind, "2 4"))
            rows += [(f"{label}, personal", curve.rounds, curve.personal)]
    ends = "; ".join(f"{label}: {numbers.percent(values[-1])} after round {at[-1]}" for label, at, values in rows)
    drawn = SvgChart(
        "accuracy", "Accuracy by round", f"{ends}.", lines, rounds_axis(max(one.of for _, _, one in found)),
        chart.even(said.ACCURACY_AXIS, 0, 100),
    )  # fmt: skip
    cost = privacy.cost(mine.values[-1], found[1][2].values[-1]) if len(found) > 1 else ""
    return tag(
        "section",
        tag("h2", said.ACCURACY),
        tag("p", cost) if cost else None,
        tag("figure", chart.legend(lines), chart.svg(drawn)),
        more("Accuracy by round as a table", _accuracy_table(rows)),
    )


def _percent(rounds: Sequence[int], values: Sequence[float]) -> tuple[tuple[float, float], ...]:
    return tuple((rounds[at], round(100 * values[at], 2)) for at in thinned(len(rounds)))


def _accuracy_table(rows: Sequence[tuple[str, Sequence[int], Sequence[float]]]) -> Html:
    shown = {label: dict(zip(at, values, strict=True)) for label, at, values in rows}
    every = sorted({one for _, at, _ in rows for one in at})
    body = [
        (str(every[at]), *(numbers.percent(one.get(every[at])) for one in shown.values()))
        for at in thinned(len(every), ROWS)
    ]
    return table("Accuracy by round", ("round", *shown), body)


def rounds_axis(last: int) -> SvgAxis:
    return chart.even(said.ROUND_AXIS, 1, max(last, 2), whole=True)


# --- ε -----------------------------------------------------------------------------------------------------


def spent(run: ExportedRun) -> Html:
    pieces: list[Html | None] = [tag("h2", said.EPSILON)]
    if not run.known:
        pieces.append(tag("p", said.NOT_RUN, class_="note"))
    if run.known:
        pieces.append(_by_round(run))
    pieces.append(_terms(run))
    if any(bill.epsilon is not None for bill in run.bills):
        pieces.append(tag("p", said.WHOLE_RUN, class_="faint"))
    return tag("section", *pieces)


def _by_round(run: ExportedRun) -> Html | None:
    bills = epsilon.collect(run.events)
    if bills is None:
        return None
    values = {view: [(at, one) for at, one in points if one > 0] for view, points in bills.views.items()}
    every = [one for points in values.values() for _, one in points]
    if not every:
        return None
    up, across = chart.decades(said.EPSILON_AXIS, every), rounds_axis(bills.of)
    small = []
    for view, points in values.items():
        told = (
            f"{privacy.SEEN_BY[view]}: ε {numbers.epsilon(_end(bills, view))} after round {bills.views[view][-1][0]}."
        )
        lines = [SvgLine(view, tuple(points[at] for at in thinned(len(points))), "run")]
        if view in bills.final:
            lines.append(SvgLine("counted more tightly at the end", (bills.final[view],), "run"))
        drawn = SvgChart(f"epsilon-{view}", f"ε by round, {privacy.SEEN_BY[view]}", told, lines, across, up,
                      width=264, height=190)  # fmt: skip
        small.append(tag("figure", tag("figcaption", privacy.SEEN_BY[view]), chart.svg(drawn)))
    rounds = sorted({at for points in bills.views.values() for at, _ in points})
    body = [
        (str(rounds[at]), *(numbers.epsilon(dict(points).get(rounds[at])) for points in bills.views.values()))
        for at in thinned(len(rounds), ROWS)
    ]
    heads = ("round", *(privacy.SEEN_BY[view] for view in bills.views))
    return joined([tag("div", *small, class_="small-charts"),
                   more("ε by round as a table", table("ε by round", heads, body))])  # fmt: skip


def _end(bills: epsilon.EpsilonCurves, view: str) -> float:
    return bills.final.get(view, bills.views[view][-1])[1]


def _terms(run: ExportedRun) -> Html:
    """Every view with its ε, its odds and the words that the number stands on."""
    rows = [(privacy.SEEN_BY[bill.view], *_row(bill)) for bill in run.bills]
    absent = ((run.guarantee or {}).get("absent") or {}) if run.guarantee else {}
    rows += [(privacy.SEEN_BY[view], "no ε", "does not apply", why) for view, why in absent.items()]
    if not rows:
        return tag("p", said.NOT_PROMISED)
    return table(said.STANDS, ("who looks", "ε", "what it means", "what it stands on"), rows, class_="terms")


def _side(bill: ExportedEpsilon) -> str:
    return "leaking" if bill.epsilon is None or bill.epsilon > privacy.VACUOUS else "private"


def _row(bill: ExportedEpsilon) -> tuple[str, str, str]:
    stands = (
        bill.reason
        if bill.epsilon is None
        else privacy.terms(bill.unit, bill.view, bill.adjacency, bill.delta, bill.accountant, bill.bound, bill.sampling)
    )
    odds = privacy.odds(bill.view, bill.unit, bill.epsilon)
    return tag("b", f"ε {numbers.epsilon(bill.epsilon)}", class_=_side(bill)), odds, stands


# --- the question ------------------------------------------------------------------------------------------


def asked(found: PageContent) -> Html:
    pieces: list[Html | None] = [tag("h2", said.ASKED), tag("h3", said.SETTINGS), _settings(found.run)]
    lines = [run_settings.command(found.run.spec)]
    for one in found.attacks:
        pieces.append(_attack_settings(one))
        lines.append(said.command(one.spec, run_settings.spec_of(found.run.part).id))
    pieces += [tag("h3", said.AGAIN), *map(_line, lines)]
    if own(found):
        pieces.append(tag("p", said.AGAIN_OWN, class_="faint"))
    return tag("section", *pieces)


def _line(command: str) -> Html:
    """A command that is broken between its options only."""
    first, *options = command.split(" --")
    spans = (joined([" ", tag("span", f"--{option}")]) for option in options)
    return tag("pre", tag("code", tag("span", first), *spans))


def own(found: PageContent) -> bool:
    """Is somebody's own picture on the page?"""
    return any(str(name).startswith("own-") for one in found.attacks for name in one.spec["pictures"])


def _settings(run: ExportedRun) -> Html:
    settings = dict(run.part)
    rows = []
    for path, value in settings.items():
        info = run_settings.field_of(path, settings)
        name = (info.title if info else None) or path
        if path in run_settings.PARTS:
            value = run_settings.part_class(path, value).title
        rows.append((name, said.value(value), tag("code", path)))
    return table(said.SETTINGS, ("setting", "value", "name"), rows, headed=True)


def _attack_settings(one: ExportedAttack) -> Html:
    part = one.spec["attack"]
    own_rows = [(name, said.value(value), tag("code", f"attack.{name}")) for name, value in part.items()]
    rest = ("pictures", "round", "client", "view", "restarts", "seed")
    rows = [*own_rows, *((name, said.value(one.spec.get(name)), tag("code", name)) for name in rest)]
    caption = said.ATTACK_SETTINGS.format(title=f"{run_settings.attack_title(one.mine.attack)}, {one.id}")
    return more(caption, table(caption, ("setting", "value", "name"), rows))
