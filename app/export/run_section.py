"""The run on an exported page: its headline, its accuracy, its ε with all terms, its settings and commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.charts import accuracy, epsilon
from app.charts.base import thinned
from app.export import chart
from app.export import texts as export_texts
from app.export.chart import SvgAxis, SvgChart, SvgLine
from app.export.gather import ExportedAttack, ExportedRun, PageContent
from app.export.markup import Html, joined, more, table, tag
from app.export.slides import deck
from app.session import run_settings
from app.texts import attacks as attack_texts
from app.texts import numbers, privacy, product
from engine.epsilon import Epsilon
from engine.results.report import report

ROWS = 100  # of a table of rounds; charts show up to 500

AccuracyRow = tuple[str, Sequence[int], Sequence[float]]  # label, rounds, accuracy


def title(run: ExportedRun) -> str:
    """The method of the run and its noise, or its target ε: then the engine solves the noise."""
    settings = run.settings
    method = run_settings.part_class("method", settings["method"]).title
    target = settings.get("target-epsilon")
    if target is not None:
        return attack_texts.at_budget(method, target)
    return attack_texts.column(method, settings.get("method.noise"))


def split(run: ExportedRun) -> str:
    """Who adds the noise; empty if the method has no such option, or no noise."""
    names = ("noise", "noise-split")
    return privacy.noise_split({name: run.settings.get(f"method.{name}") for name in names})


def data(run: ExportedRun) -> str:
    """The title of the data set."""
    return run_settings.part_class("dataset", run.settings["dataset"]).title


# --- the headline ------------------------------------------------------------------------------------------


def headline(run: ExportedRun) -> Html:
    """The main facts: accuracy, and the size and the kind of the promise."""
    cells = []
    if run.recorded:
        body = report(run.events)
        after = f"after {body['rounds-done']} rounds"
        if body["device"] != "cpu":
            after += f", computed on {body['device']}"
        cells.append(_fact("accuracy", numbers.percent(body["accuracy"]), after))
        if body["accuracy-personal"] is not None:
            cells.append(_fact("personal accuracy", numbers.percent(body["accuracy-personal"]), "mean over clients"))
    for record in run.epsilons:
        if record.view in ("outsider", "server"):
            cells.append(_badge(privacy.AGAINST[record.view], *privacy.promise(record)))
    if run.guarantee:
        name, side, _ = privacy.STATUSES[run.guarantee["status"]]
        cells.append(_badge(privacy.KIND, name, side))
    return tag("dl", *cells, class_="facts")


def _fact(name: str, value: str, note: str) -> Html:
    return tag("div", tag("dt", name), tag("dd", value, " ", tag("small", note)))


def _badge(title: str, text: str, side: str) -> Html:
    """The size or the kind of a promise."""
    return tag("div", tag("dt", title), tag("dd", tag("span", text, class_=f"badge {side}"), class_="small"))


def reason(run: ExportedRun) -> Html | None:
    """The reason for the status of the guarantee, with a warning if every ε is large."""
    if not run.guarantee:
        return None
    why = str(run.guarantee["reason"]).rstrip(".")
    status = privacy.STATUSES[run.guarantee["status"]][2]
    text = f"{status} {why[:1].upper()}{why[1:]}."
    values = [record.value for record in run.epsilons if record.value is not None]
    if values and min(values) > privacy.VACUOUS:
        text += f" {privacy.ALL_VACUOUS.format(limit=privacy.VACUOUS)}"
    return tag("p", text, class_="faint")


# --- a run next to other results ---------------------------------------------------------------------------


def short_sections(runs: Mapping[str, ExportedRun]) -> Iterator[Html]:
    """The accuracy of each run and its ε of every observer, on a page that shows more than one run."""
    for place, (id, run) in enumerate(runs.items()):
        heading = export_texts.RUN.format(title=title(run), seed=run.settings["seed"])
        yield tag(
            "section",
            tag("h2", heading, " ", tag("small", id)),
            headline(run),
            reason(run),
            *_accuracy(run, f"accuracy-{id}"),
            tag("div", _terms(run), data_page=True),
            data_slide=deck.COST if place < deck.ANSWERS else None,
        )


def only_method(runs: Mapping[str, ExportedRun]) -> str:
    """The method whose colour the lines of these runs have; empty if they have several."""
    methods = {str(run.settings["method"]) for run in runs.values()}
    return methods.pop() if len(methods) == 1 else ""


def short_requests(runs: Mapping[str, ExportedRun]) -> Html:
    """The settings of these runs, and the commands that start them in a terminal."""
    pieces = []
    for id, run in runs.items():
        caption = f"{title(run)}, {id}"
        pieces.append(more(caption, settings_table(run.settings, caption)))
    commands = [command_block(run_settings.command(run.spec)) for run in runs.values()]
    return tag(
        "section",
        tag("h2", export_texts.REQUEST),
        tag("div", *pieces, data_page=True),
        tag("h3", export_texts.AGAIN),
        *commands,
        data_slide=deck.SETTINGS,
    )


# --- accuracy ----------------------------------------------------------------------------------------------


def accuracy_section(run: ExportedRun) -> Html | None:
    """The accuracy of the run and of its baseline, as a chart and as a table."""
    pieces = _accuracy(run, "accuracy")
    if not pieces:
        return None
    return tag("section", tag("h2", export_texts.ACCURACY), *pieces, data_slide=deck.COST)


def _accuracy(run: ExportedRun, key: str) -> list[Html | None]:
    """The pieces of that section; empty without an accuracy. `key` is for the names of elements in the page."""
    curve = accuracy.collect(run.events)
    if curve is None:
        return []
    lines, rows = _curve(title(run), curve, "run", "")
    last = curve.of
    cost = ""
    baseline = accuracy.collect(run.baseline) if run.baseline else None
    if baseline:
        baseline_lines, baseline_rows = _curve(product.NO_PROTECTION, baseline, "baseline", "7 5")
        lines += baseline_lines
        rows += baseline_rows
        last = max(last, baseline.of)
        cost = privacy.cost(curve.values[-1], baseline.values[-1])
    ends = "; ".join(f"{label}: {numbers.percent(values[-1])} after round {at[-1]}" for label, at, values in rows)
    drawing = SvgChart(
        key, "Accuracy by round", f"{ends}.", lines, rounds_axis(last),
        chart.even(export_texts.ACCURACY_AXIS, 0, 100),
    )  # fmt: skip
    return [
        tag("p", cost) if cost else None,
        tag("figure", chart.legend(lines), chart.svg(drawing)),
        tag("div", more("Accuracy by round as a table", _accuracy_table(rows)), data_page=True),
    ]


def _curve(label: str, curve: accuracy.AccuracyCurve, kind: str, dash: str) -> tuple[list[SvgLine], list[AccuracyRow]]:
    """The lines and the table columns of one run: its accuracy and, if it has one, its personal accuracy."""
    lines = [SvgLine(label, _percent(curve.rounds, curve.values), kind, dash)]
    rows: list[AccuracyRow] = [(label, curve.rounds, curve.values)]
    if curve.personal:
        personal = f"{label}, personal"
        lines.append(SvgLine(personal, _percent(curve.rounds, curve.personal), kind, "2 4"))
        rows.append((personal, curve.rounds, curve.personal))
    return lines, rows


def _percent(rounds: Sequence[int], values: Sequence[float]) -> tuple[tuple[float, float], ...]:
    return tuple((rounds[place], round(100 * values[place], 2)) for place in thinned(len(rounds)))


def _accuracy_table(rows: Sequence[AccuracyRow]) -> Html:
    columns = {label: dict(zip(rounds, values, strict=True)) for label, rounds, values in rows}
    every_round = sorted({round for _, rounds, _ in rows for round in rounds})
    body = []
    for place in thinned(len(every_round), ROWS):
        round = every_round[place]
        body.append((str(round), *(numbers.percent(column.get(round)) for column in columns.values())))
    return table("Accuracy by round", ("round", *columns), body)


def rounds_axis(last: int) -> SvgAxis:
    """The horizontal axis of a chart by round."""
    return chart.even(export_texts.ROUND_AXIS, 1, max(last, 2), whole=True)


# --- ε -----------------------------------------------------------------------------------------------------


def epsilon_section(run: ExportedRun) -> Html:
    """ε by round, and the ε of every view with its terms."""
    pieces: list[Html | None] = [tag("h2", export_texts.EPSILON)]
    if run.recorded:
        pieces.append(tag("div", _by_round(run), data_page=True))
    else:
        pieces.append(tag("p", export_texts.NOT_RUN, class_="note"))
    pieces.append(_terms(run))
    if any(record.value is not None for record in run.epsilons):
        pieces.append(tag("p", export_texts.WHOLE_RUN, class_="faint"))
    return tag("section", *pieces, data_slide=deck.OBSERVERS)


def _by_round(run: ExportedRun) -> Html | None:
    """One small chart for each view, and a table of all of them."""
    curves = epsilon.collect(run.events)
    if curves is None:
        return None
    positive = {view: [point for point in points if point[1] > 0] for view, points in curves.views.items()}
    values = [value for points in positive.values() for _, value in points]
    if not values:
        return None
    up = chart.decades(export_texts.EPSILON_AXIS, values)
    across = rounds_axis(curves.of)
    charts = []
    for view, points in positive.items():
        seen_by = privacy.SEEN_BY[view]
        lines = [SvgLine(view, tuple(points[place] for place in thinned(len(points))), "run")]
        if view in curves.final:
            lines.append(SvgLine("counted more tightly at the end", (curves.final[view],), "run"))
        last = curves.views[view][-1]
        end = numbers.epsilon(curves.final.get(view, last)[1])
        drawing = SvgChart(
            f"epsilon-{view}", f"ε by round, {seen_by}", f"{seen_by}: ε {end} after round {last[0]}.", lines, across,
            up, width=264, height=190,
        )  # fmt: skip
        charts.append(tag("figure", tag("figcaption", seen_by), chart.svg(drawing)))
    rows = more("ε by round as a table", _epsilon_table(curves))
    return joined([tag("div", *charts, class_="small-charts"), rows])


def _epsilon_table(curves: epsilon.EpsilonCurves) -> Html:
    columns = [dict(points) for points in curves.views.values()]
    rounds = sorted({round for column in columns for round in column})
    body = []
    for place in thinned(len(rounds), ROWS):
        round = rounds[place]
        body.append((str(round), *(numbers.epsilon(column.get(round)) for column in columns)))
    return table("ε by round", ("round", *(privacy.SEEN_BY[view] for view in curves.views)), body)


def _terms(run: ExportedRun) -> Html:
    """A table of every view with its ε, its odds and its terms. A view without an ε has the reason."""
    rows = [(privacy.SEEN_BY[record.view], *term_cells(record)) for record in run.epsilons]
    absent = (run.guarantee.get("absent") or {}) if run.guarantee else {}
    rows += [(privacy.SEEN_BY[view], "no ε", "does not apply", why) for view, why in absent.items()]
    if not rows:
        return tag("p", export_texts.NOT_PROMISED)
    return table(export_texts.TERMS, export_texts.TERM_HEADS, rows, class_="terms")


def term_cells(record: Epsilon) -> tuple[str, str, str]:
    """An ε with the size of its promise, its meaning and its terms, as cells of a table.

    The number of a promise that means nothing is not bold.
    """
    terms = record.reason if record.value is None else privacy.terms(record)
    size = privacy.size_of(record)
    word = tag("small", f"{size.sign} {size.word}", class_=size.side)
    name = "span" if size == privacy.NO_PROMISE else "b"
    value = tag(name, f"ε {privacy.rounded_text(record)}", class_=size.side)
    return joined([value, " ", word]), privacy.odds(record), terms


# --- settings and commands ---------------------------------------------------------------------------------


def request_section(content: PageContent) -> Html:
    """The settings of the run and its attacks, and the commands that start them in a terminal."""
    settings = settings_table(content.run.settings, export_texts.SETTINGS)
    pieces: list[Html | None] = [
        tag("h2", export_texts.REQUEST),
        tag("h3", export_texts.SETTINGS, data_page=True),
        settings,
    ]
    commands = [run_settings.command(content.run.spec)]
    pieces.append(tag("div", *(_attack_settings(attack) for attack in content.attacks), data_page=True))
    run_id = run_settings.spec_of(content.run.settings).id
    specs = [*(attack.spec for attack in content.attacks), *(attack.spec for attack in content.memberships)]
    commands += [export_texts.command(spec, run_id) for spec in specs]
    first, *others = map(command_block, commands)
    pieces += [tag("h3", export_texts.AGAIN), first, tag("div", *others, data_page=True)]
    if own(content):
        pieces.append(tag("p", export_texts.AGAIN_OWN, class_="faint"))
    return tag("section", *pieces, data_slide=deck.SETTINGS)


def command_block(command: str) -> Html:
    """A command whose lines break only between options."""
    first, *options = command.split(" --")
    spans = (joined([" ", tag("span", f"--{option}")]) for option in options)
    return tag("pre", tag("code", tag("span", first), *spans))


def own(content: PageContent) -> bool:
    """Whether the page shows a picture that a visitor uploaded."""
    return any(str(name).startswith("own-") for attack in content.attacks for name in attack.spec["pictures"])


def settings_table(given: Mapping[str, Any], caption: str) -> Html:
    """The settings of a run by name, under a heading with these words."""
    settings = dict(given)
    rows = []
    for path, value in settings.items():
        info = run_settings.field_of(path, settings)
        name = (info.title if info else None) or path
        if path in run_settings.PARTS:
            value = run_settings.part_class(path, value).title
        text = export_texts.value(value)
        if path == "method.noise" and settings.get("target-epsilon") is not None:
            text = export_texts.SOLVED  # the field has the default of the method, which the run does not use
        rows.append((name, text, tag("code", path)))
    return table(caption, ("setting", "value", "name"), rows, class_="settings", headed=True)


def _attack_settings(attack: ExportedAttack) -> Html:
    rows = []
    for name, value in attack.spec["attack"].items():
        rows.append((name, export_texts.value(value), tag("code", f"attack.{name}")))
    for name in ("pictures", "round", "client", "view", "restarts", "seed"):
        rows.append((name, export_texts.value(attack.spec.get(name)), tag("code", name)))
    attack_title = run_settings.attack_title(attack.cell.attack)
    caption = export_texts.ATTACK_SETTINGS.format(title=f"{attack_title}, {attack.id}")
    return more(caption, table(caption, ("setting", "value", "name"), rows))
