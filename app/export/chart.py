"""Line charts as inline SVG: drawn here, so that the page needs no script and no library for them."""

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
    """One curve: `kind` is the class that gives its colour, `dash` tells it from its neighbours without colour."""

    name: str
    points: tuple[tuple[float, float], ...]
    kind: str
    dash: str = ""


@dataclass(frozen=True)
class SvgAxis:
    """From where to where, and what is written along it."""

    title: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def place(self, value: float) -> float:
        """0 at the low end, 1 at the high one."""
        low, high, at = (math.log10(one) for one in (self.low, self.high, value)) if self.log else (
            self.low, self.high, value
        )  # fmt: skip
        return (at - low) / (high - low)


@dataclass(frozen=True)
class SvgChart:
    """What is drawn, and the same in words."""

    key: str
    title: str
    told: str
    lines: Sequence[SvgLine]
    x: SvgAxis
    y: SvgAxis
    level: tuple[float, str] | None = None  # a dotted line across, with its name
    follows: bool = False  # a mark moves along with the scrubber
    width: int = 640
    height: int = 270


def even(title: str, low: float, high: float, many: int = 5, whole: bool = False) -> SvgAxis:
    """Round numbers from at most `low` to at least `high`; whole ones between the very ends."""
    step = nice((high - low or 1.0) / many)
    step = max(1.0, round(step)) if whole else step
    first, last = math.floor(low / step), math.ceil(high / step)
    ticks = [place * step for place in range(first, last + 1)]
    if whole:
        return SvgAxis(title, low, high, tuple((at, f"{at:,.0f}") for at in ticks if low <= at <= high))
    return SvgAxis(title, first * step, last * step, tuple((at, f"{at:g}") for at in ticks))


def decades(title: str, values: Sequence[float]) -> SvgAxis:
    """Powers of ten around the values."""
    low = math.floor(math.log10(min(values)))
    high = max(low + 1, math.ceil(math.log10(max(values))))
    every = math.ceil((high - low) / 6)
    ticks = tuple((10.0**power, _power(power)) for power in range(low, high + 1, every))
    return SvgAxis(title, 10.0**low, 10.0**high, ticks, log=True)


def nice(step: float) -> float:
    """1, 2, 5 or ten times that."""
    unit = 10.0 ** math.floor(math.log10(step))
    return next((unit * one for one in (1, 2, 5) if step <= unit * one * 1.0001), unit * 10)


def svg(chart: SvgChart) -> Html:
    """The drawing with its title and description for those who do not see it."""
    names = f"{chart.key}-title", f"{chart.key}-told"
    return tag(
        "svg",
        tag("title", chart.title, id=names[0]),
        tag("desc", chart.told, id=names[1]),
        *_grid(chart),
        *_level(chart),
        *(_line(chart, one) for one in chart.lines),
        _mark(chart) if chart.follows else None,
        viewBox=f"0 0 {chart.width} {chart.height}",
        role="img",
        aria_labelledby=names[0],
        aria_describedby=names[1],
        class_="chart",
    )


def legend(lines: Sequence[SvgLine]) -> Html:
    """Each curve's name beside a piece of it."""
    rows = []
    for one in lines:
        piece = tag("line", x1=1, x2=31, y1=6, y2=6, class_=f"line {one.kind}", stroke_dasharray=one.dash or None)
        rows.append(tag("li", tag("svg", piece, viewBox="0 0 32 12", aria_hidden="true"), one.name))
    return tag("ul", *rows, class_="legend")


# --- its pieces --------------------------------------------------------------------------------------------


def _across(chart: SvgChart, value: float) -> float:
    return round(LEFT + chart.x.place(value) * (chart.width - LEFT - RIGHT), 1)


def _up(chart: SvgChart, value: float) -> float:
    return round(chart.height - BOTTOM - chart.y.place(value) * (chart.height - TOP - BOTTOM), 1)


def _grid(chart: SvgChart) -> list[Html]:
    right, foot = chart.width - RIGHT, chart.height - BOTTOM
    found = []
    for value, text in chart.y.ticks:
        at = _up(chart, value)
        found.append(tag("line", x1=LEFT, x2=right, y1=at, y2=at, class_="hair"))
        found.append(tag("text", text, x=LEFT - 8, y=at + 4, class_="end"))
    for value, text in chart.x.ticks:
        at = _across(chart, value)
        found.append(tag("line", x1=at, x2=at, y1=foot, y2=foot + 5, class_="axis"))
        found.append(tag("text", text, x=at, y=foot + 19, class_="mid"))
    found.append(tag("line", x1=LEFT, x2=right, y1=foot, y2=foot, class_="axis"))
    found.append(tag("text", chart.x.title, x=(LEFT + right) / 2, y=chart.height - 7, class_="mid name"))
    middle = (TOP + foot) / 2
    turned = f"rotate(-90 14 {middle})"
    found.append(tag("text", chart.y.title, x=14, y=middle, class_="mid name", transform=turned))
    return found


def _level(chart: SvgChart) -> list[Html]:
    if chart.level is None:
        return []
    value, name = chart.level
    at, right = _up(chart, value), chart.width - RIGHT
    return [
        tag("line", x1=LEFT, x2=right, y1=at, y2=at, class_="level", stroke_dasharray="2 4"),
        tag("text", name, x=right, y=at - 5, class_="end"),
    ]


def _line(chart: SvgChart, line: SvgLine) -> Html:
    at = [(_across(chart, x), _up(chart, y)) for x, y in line.points]
    way = " ".join(f"{x:g},{y:g}" for x, y in at)
    drawn = tag("polyline", points=way, class_=f"line {line.kind}", stroke_dasharray=line.dash or None)
    dots = [tag("circle", cx=x, cy=y, r=DOT, class_=f"dot {line.kind}") for x, y in at] if len(at) < 4 else []
    return joined([drawn, *dots])


def _mark(chart: SvgChart) -> Html:
    right, foot = chart.width - RIGHT, chart.height - BOTTOM
    return tag("line", x1=right, x2=right, y1=TOP, y2=foot, class_="mark", data_from=LEFT, data_to=right)


def _power(power: int) -> str:
    if -3 <= power <= 3:
        return f"{10.0**power:g}"
    return f"10{str(power).translate(numbers.RAISED).replace('-', '⁻')}"
