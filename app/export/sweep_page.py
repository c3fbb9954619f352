"""The exported page of a sweep: accuracy by ε and by noise, every point with its ε and seeds, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date

from app.charts import frontiers as frontier_chart
from app.charts import tradeoff
from app.charts.tradeoff import Frontier, TradeoffLine, accuracy_range, shown_epsilon
from app.export import chart, document, run_section, sweep_command
from app.export import grid_texts as texts
from app.export import texts as export_texts
from app.export.chart import SvgAxis, SvgChart, SvgLine
from app.export.closeness import content as closeness_content
from app.export.document import PageParts
from app.export.markup import Child, Html, more, table, tag
from app.export.slides import deck
from app.export.sweep_content import ExportedSweep, FoundRun, sweep
from app.session import run_settings
from app.texts import numbers, privacy, sweep_verdicts
from app.texts import sweep as sweep_texts
from app.texts.runs import runs as run_count
from engine.capabilities import HasNoise
from engine.results.summary import PointSummary

DASHES = ("", "7 5", "2 4", "10 4 2 4")
ROOM = 1.25  # factor beyond the outermost points of a logarithmic axis

Place = Callable[[PointSummary], float | None]  # of a point on the horizontal axis


def sweep_page(
    name: str,
    runs: Sequence[FoundRun],
    view: str,
    whose: str = "global",
    made: date | None = None,
    notes: Sequence[str] = (),
    style: str = deck.STYLES[0],
) -> str:
    """These runs as one HTML file without links to other files. `name` is for the foot, such as `Batch 1a2b3c`."""
    return document.checked(name, lambda: document.written(_parts(name, sweep(runs), view, whose, notes), made, style))


def _parts(name: str, shown: ExportedSweep, view: str, whose: str, notes: Sequence[str]) -> PageParts:
    own = whose == "personal"
    frontiers = frontier_chart.frontiers(shown.results, shown.titles, view, own, shown.headless)
    up = accuracy_range(frontiers)
    spec = shown.runs[0].spec
    title = texts.SWEEP_TITLE.format(dataset=spec.dataset.title, model=spec.model.title, rounds=spec.rounds)
    top = [document.brand(), tag("h1", title), *(tag("p", line) for line in _progress(shown.runs))]
    top += [tag("p", note, class_="note") for note in notes]
    drawn = [_frontier(frontier, up, len(frontiers) > 1, shown.several_steps) for frontier in frontiers]
    if not frontiers:
        drawn = [tag("section", _table(_baseline_rows(shown, view, own)), data_slide=deck.ANSWER)]
    apart = tag("p", sweep_texts.APART, class_="note") if len(frontiers) > 1 else None
    sections = (*drawn, apart, *_model_notes(shown, frontiers, own), _request(shown, view), document.limits(sweep=True))
    foot = f"LeakLens{document.version()}. {name}. {texts.runs_finished(shown.runs)}"
    question = tag("div", *top, data_slide=deck.QUESTION)
    return PageParts(title, (question,), sections, foot, closeness_content.of_runs([run.spec for run in shown.runs]))


def _progress(runs: Sequence[FoundRun]) -> Iterator[str]:
    """How many runs have finished, and which come from the stored example."""
    yield texts.runs_finished(runs)
    made = [run.made for run in runs if run.made]
    if made:
        yield sweep_texts.stored(len(made), max(made))


# --- one unit ----------------------------------------------------------------------------------------------


def _frontier(frontier: Frontier, up: tuple[float, float], name_unit: bool, several_steps: bool) -> Html:
    """The verdict, the charts and the points of all methods that protect the same unit."""
    lines = {line.title: line.points for line in frontier.lines}
    baseline = frontier.baselines[0].points[0] if frontier.baselines else None
    compare = sweep_verdicts.at_budget if frontier.finite else sweep_verdicts.at_noise
    verdict = compare(lines, baseline, frontier.view, frontier.own)
    notes = [sweep_texts.bands(frontier.points, several_steps)]
    notes += frontier_chart.missing_epsilon_reasons(frontier)
    first, *others = _charts(frontier, up)
    return tag(
        "section",
        tag("h2", sweep_texts.UNITS[frontier.unit]) if name_unit else None,
        tag("p", verdict, class_="verdict") if verdict else None,
        _figure(first),
        *(tag("div", _figure(drawing), data_slide=deck.COST) for drawing in others),
        *(tag("p", note, class_="faint") for note in frontier_chart.terms(frontier)),
        *(tag("p", note, class_="faint", data_page=True) for note in notes if note),
        tag("div", _table(_rows(frontier)), data_page=True),
        class_="upload",
        data_slide=deck.ANSWER,
    )


def _charts(frontier: Frontier, up: tuple[float, float]) -> list[SvgChart]:
    """Accuracy by ε, if a point has one, and accuracy by noise."""
    y = chart.even(sweep_texts.ACCURACY, *up)
    per = privacy.PER[frontier.unit]
    charts = []
    if frontier.finite:
        seen = privacy.SEEN_BY[frontier.view]
        across = _epsilon_axis(frontier)
        lines = _lines(frontier, lambda point: shown_epsilon(point, frontier.view), across)
        title = texts.BY_EPSILON.format(per=per, seen=seen)
        key = f"epsilon-{frontier.unit}"
        charts.append(SvgChart(key, title, tradeoff.describe_by_epsilon(frontier), lines, across, y))
    across = _noise_axis(frontier)
    lines = _lines(frontier, lambda point: point.noise, across)
    title = texts.BY_NOISE.format(per=per)
    charts.append(SvgChart(f"noise-{frontier.unit}", title, tradeoff.describe_by_noise(frontier), lines, across, y))
    return charts


def _figure(drawing: SvgChart) -> Html:
    return tag("figure", tag("figcaption", drawing.title), chart.legend(drawing.lines), chart.svg(drawing))


def _epsilon_axis(frontier: Frontier) -> SvgAxis:
    """A logarithmic axis on which ε falls to the right, as protection grows."""
    values = [value for value in (shown_epsilon(point, frontier.view) for point in frontier.points) if value]
    low, high = min(values) / ROOM, max(values) * ROOM
    ticks = tuple((tick, f"{tick:g}") for tick in tradeoff.decades(low, high))
    if len(ticks) < 2:  # a narrow range has no round numbers: its ends say where it is
        ticks = tuple((end, numbers.epsilon(end)) for end in dict.fromkeys((max(values), min(values))))
    title = texts.EPSILON_AXIS.format(per=privacy.PER[frontier.unit], seen=privacy.SEEN_BY[frontier.view])
    return SvgAxis(title, high, low, ticks, log=True)


def _noise_axis(frontier: Frontier) -> SvgAxis:
    levels = sorted({point.noise for point in frontier.points if point.noise is not None})
    ticks = tuple((level, f"{level:g}") for level in levels)
    if levels[0] > 0:
        return SvgAxis(texts.NOISE_AXIS, levels[0] / ROOM, levels[-1] * ROOM, ticks, log=True)
    return SvgAxis(texts.NOISE_AXIS, 0.0, levels[-1] * ROOM or 1.0, ticks)


def _lines(frontier: Frontier, place: Place, across: SvgAxis) -> list[SvgLine]:
    """A line for each method in the colour of its family, and the baselines from end to end."""
    lines: list[SvgLine] = []
    for line in frontier.lines:
        drawn = _line(frontier, line, place, len(lines))
        if drawn.points:
            lines.append(drawn)
    for line in frontier.baselines:
        accuracy = round(100 * line.points[0].score(frontier.own), 2)
        ends = ((across.low, accuracy), (across.high, accuracy))
        lines.append(SvgLine(f"{line.title}, {sweep_texts.NO_PROTECTION}", ends, "baseline", "7 5"))
    return lines


def _line(frontier: Frontier, line: TradeoffLine, place: Place, number: int) -> SvgLine:
    points = []
    bars = []
    for point in line.points:
        x = place(point)
        if x is None:
            continue
        scores = [round(100 * score, 2) for score in point.scores(frontier.own)]
        points.append((x, round(100 * point.score(frontier.own), 2)))
        bars.append((x, min(scores), max(scores)))
    kind = f"family-{document.family(line.method)}"
    return SvgLine(line.title, tuple(points), kind, DASHES[number % len(DASHES)], tuple(bars), dots=True)


# --- the points --------------------------------------------------------------------------------------------


def _table(rows: Sequence[Sequence[Child]]) -> Html:
    return tag(
        "div", tag("h3", texts.POINTS), table(texts.POINTS, texts.POINT_HEADS, rows, class_="points", headed=True)
    )


def _rows(frontier: Frontier) -> list[Sequence[Child]]:
    rows = []
    for line in (*frontier.lines, *frontier.baselines):
        rows += [_row(line.title, point, frontier.view, frontier.own) for point in line.points]
    return rows


def _row(title: str, point: PointSummary, view: str, own: bool) -> Sequence[Child]:
    scores = point.scores(own)
    ends = f"{100 * min(scores):.1f} to {100 * max(scores):.1f} %"
    epsilon = point.finite_epsilon(view)
    noise = "none" if point.noise is None else f"{point.noise:g}"
    if epsilon:
        value, _, terms = run_section.term_cells(epsilon)
    else:
        value, terms = "no ε", point.missing_reason(view) or sweep_texts.UNPROMISED
    step = f"{point.step:g}"
    return (title, noise, step, numbers.percent(point.score(own)), ends, str(point.seeds), value, terms)


def _baseline_rows(shown: ExportedSweep, view: str, own: bool) -> list[Sequence[Child]]:
    """The points of runs without noise, where no method has any."""
    from engine.results.summary import summaries

    points = summaries(shown.results, own)
    return [_row(shown.titles.get(point.method, point.method), point, view, own) for point in points]


def _model_notes(shown: ExportedSweep, frontiers: Sequence[Frontier], own: bool) -> Iterator[Html]:
    """Which models the accuracy is of."""
    if own and frontiers:
        baselines = [line.method for frontier in frontiers for line in frontier.baselines]
        titles = dict.fromkeys(shown.titles.get(method, method) for method in baselines)
        yield tag("p", sweep_texts.own_models(list(titles)), class_="note")
    methods = {line.method: line.title for frontier in frontiers for line in frontier.lines}
    headless = [title for method, title in methods.items() if method in shown.headless]
    if headless and not own:
        yield tag("p", sweep_texts.HEADLESS.format(titles=", ".join(headless)), class_="note")


# --- settings and commands ---------------------------------------------------------------------------------


def _request(shown: ExportedSweep, view: str) -> Html:
    """The settings of the runs, and the command that repeats them."""
    specs = [run.spec for run in shown.runs]
    spec = next((spec for spec in specs if isinstance(spec.method, HasNoise)), specs[0])  # a baseline has no target ε
    settings = run_settings.flat(spec.canonical())
    shared = {name: value for name, value in settings.items() if name.partition(".")[0] not in ("method", "seed")}
    methods: dict[str, str] = {}
    for run in shown.runs:
        fields = sweep_command.method_fields(run.spec)
        methods.setdefault(type(run.spec.method).title, ", ".join(f"{name} {value}" for name, value in fields.items()))
    command = sweep_command.command(specs, view)
    return tag(
        "section",
        tag("h2", export_texts.REQUEST),
        tag("h3", texts.SHARED, data_page=True),
        run_section.settings_table(shared, texts.SHARED),
        tag(
            "div",
            tag("h3", texts.METHODS),
            table(texts.METHODS, ("method", "settings"), methods.items(), headed=True),
            data_page=True,
        ),
        tag("h3", export_texts.AGAIN),
        run_section.command_block(command) if command else _commands(shown.runs),
        data_slide=deck.SETTINGS,
    )


def _commands(runs: Sequence[FoundRun]) -> Html:
    blocks = [run_section.command_block(run_settings.command(run.spec.canonical())) for run in runs]
    return more(texts.EVERY_RUN.format(runs=run_count(len(runs))), *blocks)
