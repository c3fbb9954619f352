"""Line charts as inline SVG. The page needs no script and no library for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.export.markup import Html, joined, tag
from app.texts import numbers

LEFT, RIGHT, TOP, BOTTOM = 58, 14, 12, 44
DOT = 3.2


@dataclass(frozen=True)
class SvgLine:
    """One curve. `kind` is the CSS class of its colour; `dash` keeps it distinct without colour."""

    name: str
    points: tuple[tuple[float, float], ...]
    kind: str
    dash: str = ""
    bars: tuple[tuple[float, float, float], ...] = ()  # x, and the ends of a range there
    dots: bool = False  # whether every point is marked; else only those of a short curve


@dataclass(frozen=True)
class SvgAxis:
    """The range of an axis, its title and its ticks."""

    title: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def place(self, value: float) -> float:
        """The position of a value: 0 at the low end, 1 at the high end."""
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        low = math.log10(self.low)
        high = math.log10(self.high)
        return (math.log10(value) - low) / (high - low)


@dataclass(frozen=True)
class SvgChart:
    """The lines and axes of a chart, and its description in words."""

    key: str
    title: str
    description: str
    lines: Sequence[SvgLine]
    x: SvgAxis
    y: SvgAxis
    level: tuple[float, str] | None = None  # a dotted horizontal line, with its name
    follows: bool = False  # whether a mark follows the scrubber
    width: int = 640
    height: int = 270


def even(title: str, low: float, high: float, steps: int = 5, whole: bool = False) -> SvgAxis:
    """A linear axis with about `steps` round steps.

    It reaches from at most `low` to at least `high`. With `whole`, ticks are integers and the ends stay exact.
    """
    step = nice((high - low or 1.0) / steps)
    step = max(1.0, round(step)) if whole else step
    first = math.floor(low / step)
    last = math.ceil(high / step)
    ticks = [number * step for number in range(first, last + 1)]
    if whole:
        inside = [tick for tick in ticks if low <= tick <= high]
        return SvgAxis(title, low, high, tuple((tick, f"{tick:,.0f}") for tick in inside))
    return SvgAxis(title, first * step, last * step, tuple((tick, f"{tick:g}") for tick in ticks))


def decades(title: str, values: Sequence[float]) -> SvgAxis:
    """A logarithmic axis between the powers of ten around the values."""
    low = math.floor(math.log10(min(values)))
    high = max(low + 1, math.ceil(math.log10(max(values))))
    every = math.ceil((high - low) / 6)
    ticks = tuple((10.0**power, _power(power)) for power in range(low, high + 1, every))
    return SvgAxis(title, 10.0**low, 10.0**high, ticks, log=True)


def nice(step: float) -> float:
    """The next step of 1, 2 or 5 times a power of ten."""
    unit = 10.0 ** math.floor(math.log10(step))
    for factor in (1, 2, 5):
        if step <= unit * factor * 1.0001:
            return unit * factor
    return unit * 10


def svg(chart: SvgChart) -> Html:
    """The chart as an SVG element, with a title and a description for screen readers."""
    title_id = f"{chart.key}-title"
    description_id = f"{chart.key}-description"
    return tag(
        "svg",
        tag("title", chart.title, id=title_id),
        tag("desc", chart.description, id=description_id),
        *_axes(chart),
        *_level(chart),
        *(_line(chart, line) for line in chart.lines),
        _mark(chart) if chart.follows else None,
        viewBox=f"0 0 {chart.width} {chart.height}",
        role="img",
        aria_labelledby=title_id,
        aria_describedby=description_id,
        class_="chart",
    )


def legend(lines: Sequence[SvgLine]) -> Html:
    """A list with a sample of each line and its name."""
    rows = []
    for line in lines:
        sample = tag("line", x1=1, x2=31, y1=6, y2=6, class_=f"line {line.kind}", stroke_dasharray=line.dash or None)
        rows.append(tag("li", tag("svg", sample, viewBox="0 0 32 12", aria_hidden="true"), line.name))
    return tag("ul", *rows, class_="legend")


# --- the elements of a chart -------------------------------------------------------------------------------


def _across(chart: SvgChart, value: float) -> float:
    return round(LEFT + chart.x.place(value) * (chart.width - LEFT - RIGHT), 1)


def _up(chart: SvgChart, value: float) -> float:
    return round(chart.height - BOTTOM - chart.y.place(value) * (chart.height - TOP - BOTTOM), 1)


def _axes(chart: SvgChart) -> list[Html]:
    right = chart.width - RIGHT
    foot = chart.height - BOTTOM
    elements = []
    for value, text in chart.y.ticks:
        y = _up(chart, value)
        elements.append(tag("line", x1=LEFT, x2=right, y1=y, y2=y, class_="hair"))
        elements.append(tag("text", text, x=LEFT - 8, y=y + 4, class_="end"))
    for value, text in chart.x.ticks:
        x = _across(chart, value)
        elements.append(tag("line", x1=x, x2=x, y1=foot, y2=foot + 5, class_="axis"))
        elements.append(tag("text", text, x=x, y=foot + 19, class_="mid"))
    elements.append(tag("line", x1=LEFT, x2=right, y1=foot, y2=foot, class_="axis"))
    elements.append(tag("text", chart.x.title, x=(LEFT + right) / 2, y=chart.height - 7, class_="mid name"))
    middle = (TOP + foot) / 2
    turned = f"rotate(-90 14 {middle})"
    elements.append(tag("text", chart.y.title, x=14, y=middle, class_="mid name", transform=turned))
    return elements


def _level(chart: SvgChart) -> list[Html]:
    if chart.level is None:
        return []
    value, name = chart.level
    y = _up(chart, value)
    right = chart.width - RIGHT
    return [
        tag("line", x1=LEFT, x2=right, y1=y, y2=y, class_="level", stroke_dasharray="2 4"),
        tag("text", name, x=right, y=y - 5, class_="end"),
    ]


def _line(chart: SvgChart, line: SvgLine) -> Html:
    """The line of a curve with its ranges. A curve of fewer than four points has dots as well."""
    places = [(_across(chart, x), _up(chart, y)) for x, y in line.points]
    path = " ".join(f"{x:g},{y:g}" for x, y in places)
    elements = []
    for x, low, high in line.bars:
        across = _across(chart, x)
        ends = {"y1": _up(chart, low), "y2": _up(chart, high)}
        elements.append(tag("line", x1=across, x2=across, **ends, class_=f"line range {line.kind}"))
    elements.append(tag("polyline", points=path, class_=f"line {line.kind}", stroke_dasharray=line.dash or None))
    if line.dots or len(places) < 4:
        elements += [tag("circle", cx=x, cy=y, r=DOT, class_=f"dot {line.kind}") for x, y in places]
    return joined(elements)


def _mark(chart: SvgChart) -> Html:
    right = chart.width - RIGHT
    foot = chart.height - BOTTOM
    return tag("line", x1=right, x2=right, y1=TOP, y2=foot, class_="mark", data_from=LEFT, data_to=right)


def _power(power: int) -> str:
    if -3 <= power <= 3:
        return f"{10.0**power:g}"
    return f"10{str(power).translate(numbers.RAISED).replace('-', '⁻')}"
