"""The frontiers of a sweep from its results: one for each protected unit, with a line for each method."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from app.charts.tradeoff import Frontier, TradeoffLine, shown_epsilon
from app.texts import sweep as sweep_texts
from engine.results.summary import PointResult, PointSummary, summaries

UNITS = ("user", "record")  # the order of the charts


def frontiers(
    results: Sequence[PointResult],
    titles: Mapping[str, str],
    view: str,
    own: bool = False,
    headless: Container[str] = (),
) -> tuple[Frontier, ...]:
    """One frontier for each unit, clients first. `own`: the accuracy of the clients' own models.

    Noise and ε per client are not comparable with noise and ε per record, so the units share no axis.
    """
    points = summaries(results, own)
    baseline_points = [point for point in points if point.noise is None]
    protected_points = [point for point in points if point.noise is not None]
    baseline = _lines(baseline_points, titles, own, headless)
    by_unit: dict[str, list[PointSummary]] = {}
    for point in protected_points:
        by_unit.setdefault(point.unit or "user", []).append(point)
    drawn = []
    for unit in sorted(by_unit, key=UNITS.index):
        lines = _lines(by_unit[unit], titles, own, headless)
        drawn.append(Frontier(unit, lines, baseline, view, own))
    return tuple(drawn)


def _lines(
    points: Sequence[PointSummary], titles: Mapping[str, str], own: bool, headless: Container[str]
) -> tuple[TradeoffLine, ...]:
    """One line for each method, its points by noise."""
    by_name: dict[str, list[PointSummary]] = {}
    for point in points:
        by_name.setdefault(point.method, []).append(point)
    lines = list[TradeoffLine]()
    for name, line_points in by_name.items():
        first = line_points[0]
        method = first.results[0].point.method
        title = sweep_texts.line(titles.get(name, name), bool(first.personals), own, method in headless)
        version = sum(line.method == method for line in lines)
        by_noise = sorted(line_points, key=lambda point: point.noise or 0.0)
        lines.append(TradeoffLine(title, method, tuple(by_noise), version))
    return tuple(lines)


def missing_epsilon_reasons(frontier: Frontier) -> list[str]:
    """Why points have no place on the axis of ε: each reason once, with its points."""
    names_by_reason: dict[str, dict[str, None]] = {}
    for line in frontier.lines:
        missing = [point for point in line.points if not shown_epsilon(point, frontier.view)]
        whole_line = len(missing) == len(line.points)
        for point in missing:
            name = line.title if whole_line else sweep_texts.at(line.title, point.noise)
            reason = sweep_texts.absent(point, frontier.view)
            names_by_reason.setdefault(reason, {})[name] = None
    return [f"{', '.join(names)}: {reason}." for reason, names in names_by_reason.items()]


def terms(frontier: Frontier) -> list[str]:
    """The terms of every ε of a frontier, one sentence for each group of points that share them."""
    rows = []
    for line in frontier.lines:
        for point in line.points:
            epsilon = point.finite_epsilon(frontier.view)
            if epsilon:
                rows.append((line.title, point.noise, epsilon))
    return sweep_texts.grouped_terms(rows)
