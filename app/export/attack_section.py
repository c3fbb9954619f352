"""The attacks on an exported page: originals and reconstructions side by side, one scrubber over all of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.charts.base import thinned
from app.export import chart, run_section
from app.export import texts as said
from app.export.chart import SvgAxis, SvgChart, SvgLine
from app.export.gather import ExportedAttack, PageContent
from app.export.markup import Html, more, table, tag
from app.session import run_settings
from app.texts import attacks as attack_texts
from app.texts.attacks import decibel
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell, moment
from engine.specs import attack_grid
from engine.training.forecast import REGION

FRAMES = 240  # pictures on one page, so that the file stays small
FEWEST = 6  # of one cell
LEAST = 10.0  # dB from foot to top of a chart: tiny differences stay tiny
SHORT = ("psnr", "ssim", "lpips")
DASHES = ("", "7 5", "2 4", "10 4 2 4", "14 6", "4 3")


class ScrubberFrames:
    """What the scrubber moves: the moments of each cell, thinned where there are many."""

    def __init__(self, cells: int) -> None:
        self.most = max(FEWEST, FRAMES // max(1, cells))
        self.cells: list[dict[str, Any]] = []

    def add(self, cell: AttackCell, picture: int, what: str) -> str:
        path = [cell.path[at] for at in thinned(len(cell.path), self.most)]
        shown = [moment(guess, picture) for guess in path]
        key, plain = f"cell-{len(self.cells)}", cell.trivial(picture)
        self.cells.append(
            {
                "id": key,
                "what": what,
                "shares": [_share(guess.iteration, guess.of) for guess in path],
                "iterations": [guess.iteration for guess in path],
                "of": path[-1].of if path else 0,
                "limit": None if plain is None else round(plain + attack_summary.BETTER, 4),
                "frames": [one[0] if one else None for one in shown],
                "psnr": [None if one is None or one[1] is None else round(one[1], 4) for one in shown],
            }
        )
        return key

    @property
    def moments(self) -> list[float]:
        return sorted({share for cell in self.cells for share in cell["shares"]} | {1.0})

    def script(self) -> Html:
        """Data for the script; `<` is spelt out, so that no text can end it."""
        words = {"now": said.NOW, "at": said.AT, "play": said.PLAY, "pause": said.PAUSE, "step": said.STEP}
        body = {"moments": self.moments, "cells": self.cells, "words": words}
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        return tag("script", Html(text), type="application/json", id="film")


def _share(iteration: int, of: int) -> float:
    return round(iteration / of, 4) if of else 1.0


def attacks(found: PageContent) -> tuple[Html, Html | None]:
    """The section, and the data of its script; without an attack only how to make one."""
    if not found.attacks:
        return tag("section", tag("h2", said.LEAK), tag("p", said.NO_ATTACK.format(id=found.id))), None
    many = sum(len(_pictures(one)) * len(one.cells) for one in found.attacks)
    film = ScrubberFrames(many)
    cases = [_case(found, place, case, film) for place, case in enumerate(found.cases)]
    notes = [said.LEFT_OUT.format(many=found.left_out)] if found.left_out else []
    notes += [said.OWN] if run_section.own(found) else []
    section = tag(
        "section",
        tag("h2", said.LEAK),
        *(tag("p", note, class_="note") for note in notes),
        _player(len(film.moments)),
        *cases,
        id="leak",
    )
    return section, film.script()


def _player(moments: int) -> Html:
    slider = tag(
        "input", type="range", id="scrub", min=0, max=moments - 1, value=moments - 1, step=1, aria_valuetext="100 %"
    )
    return tag(
        "div",
        tag("button", said.PLAY, type="button", id="play"),
        tag("label", said.SCRUB, for_="scrub"),
        slider,
        tag("output", said.NOW.format(share=100), id="now", for_="scrub", aria_live="polite"),
        class_="player",
        id="player",
        hidden=True,
    )


# --- one upload --------------------------------------------------------------------------------------------


def _case(found: PageContent, place: int, case: Sequence[ExportedAttack], film: ScrubberFrames) -> Html:
    spec, first = case[0].spec, case[0].mine
    eyes = f"{attack_texts.VIEWS[str(spec['view'])]}"
    head = said.CASE.format(pictures=said.pictures(spec["pictures"]), when=said.when(spec["round"]), eyes=eyes)
    facts = first.seen.facts if first.seen else {}
    controlled = any(one.control for one in case)
    return tag(
        "section",
        tag("h3", head),
        tag("p", verdict(found, case), class_="said"),
        _envelope(case),
        _grid(found, case, film, controlled),
        tag("p", said.HAS_CONTROL if controlled else "" if found.run.bare else said.NO_CONTROL, class_="faint"),
        *(tag("p", text, class_="faint") for text in _beside(facts, str(spec["view"]), case[0])),
        *_curves(found, place, case),
        more("Every number as a table", _numbers(found, case)),
        class_="case",
    )


def verdict(found: PageContent, case: Sequence[ExportedAttack]) -> str:
    """What happened. Without the control nothing is said about protection."""
    title = run_section.title(found.run)
    cells = [cell for one in case for cell in one.cells]
    titles = {attack_grid.NONE: attack_texts.NONE, attack_grid.OF_RUN: title}
    if any(cell.column == attack_grid.NONE for cell in cells):
        there = {key: titles[key] for key in titles if attack_summary.of_column(cells, key)}
        return attack_texts.verdict_of_cells(cells, there, attack_grid.NONE)
    fate = attack_summary.fate(cells, attack_grid.OF_RUN, title)
    plain = decibel(cells[0].trivial(0))
    if not fate.open:
        return said.HELD.format(title=title, better=attack_summary.BETTER, plain=plain)
    what = "the picture" if fate.whole else "something of the picture"
    return said.CAME.format(title=title, what=what, near=decibel(fate.psnr), plain=plain)


def _envelope(case: Sequence[ExportedAttack]) -> Html | None:
    ends = [(value, one) for one in case for at in _pictures(one) if (value := one.mine.psnr(at)) is not None]
    if len(case) < 2 or not ends:
        return None
    value, one = max(ends, key=lambda pair: pair[0])
    attack = run_settings.attack_title(one.mine.attack)
    return tag("p", said.ENVELOPE.format(attack=attack, near=decibel(value)), class_="faint")


def _beside(facts: Mapping[str, Any], view: str, one: ExportedAttack) -> Iterator[str]:
    """How realistic, how loud, and what else should be known."""
    if not facts:
        return
    yield attack_texts.realistic(facts, view)
    if loud := said.loudness(facts.get("noise-to-signal"), REGION):
        yield loud
    if facts.get("tampered"):
        yield said.TAMPERED
    if (shown := len(_pictures(one))) < int(facts["pictures"]):
        yield said.FEWER.format(of=facts["pictures"], many=shown)


def _pictures(one: ExportedAttack) -> tuple[int, ...]:
    """The originals that a guess belongs to."""
    return one.mine.judged.places if one.mine.judged else ()


# --- side by side ------------------------------------------------------------------------------------------


def _grid(found: PageContent, case: Sequence[ExportedAttack], film: ScrubberFrames, controlled: bool) -> Html:
    mine = attack_texts.NONE if found.run.bare else run_section.title(found.run)
    heads = ["attack", attack_texts.ORIGINAL, *([attack_texts.NONE] if controlled else []), mine]
    body = []
    for one in case:
        title = run_settings.attack_title(one.mine.attack)
        for line, picture in enumerate(_pictures(one)):
            cells = [_original(one, picture)]
            if controlled:
                cells.append(_cell(one, one.control, picture, film, title, attack_texts.NONE))
            cells.append(_cell(one, one.mine, picture, film, title, mine))
            rows = len(_pictures(one))
            name = tag("th", title, scope="rowgroup", rowspan=rows) if line == 0 else None
            body.append(tag("tr", name, *cells))
    top = tag("thead", tag("tr", *(tag("th", head, scope="col") for head in heads)))
    inner = tag("table", tag("caption", said.TABLE, class_="unseen"), top, tag("tbody", *body))
    kind = "wide grid many" if max(len(_pictures(one)) for one in case) > 2 else "wide grid"
    return tag("div", inner, class_=kind, tabindex=0, role="group", aria_label=said.TABLE)


def _original(one: ExportedAttack, picture: int) -> Html:
    seen = one.mine.seen
    if seen is None or picture >= len(seen.originals):
        return tag("td")
    labels = seen.facts.get("labels", ())
    name = one.classes[labels[picture]] if picture < len(labels) and labels[picture] < len(one.classes) else ""
    alt = f"{attack_texts.ORIGINAL_ALT}{f': {name}' if name else ''}"
    return tag("td", _picture(seen.originals[picture], alt), tag("span", name), class_="truth")


def _cell(
    one: ExportedAttack, cell: AttackCell | None, picture: int, film: ScrubberFrames, title: str, column: str
) -> Html:
    """What came back, and how near that is; the state beside it is never a word about protection."""
    last = next((found for guess in reversed(cell.path) if (found := moment(guess, picture))), None) if cell else None
    if cell is None or last is None or cell.judged is None:
        return tag("td", tag("span", attack_texts.UNASKED if cell is None else "–"))
    psnr, state, end = cell.psnr(picture), attack_texts.state(cell), cell.path[-1]
    leaking = (cell.gain(picture) or 0.0) > attack_summary.BETTER
    return tag(
        "td",
        _picture(last[0], attack_texts.alt(title, column, psnr, state)),
        tag("b", decibel(psnr), class_="near leaking" if leaking else "near"),
        tag("span", said.AT.format(now=f"{end.iteration:,}", of=f"{end.of:,}"), class_="at"),
        tag("span", _ending(cell, picture)),
        tag("span", f"{attack_texts.LEAKS}, {state}" if leaking else state, class_="leaking" if leaking else None),
        *(_why(cell) if picture == _pictures(one)[0] else ()),
        id=film.add(cell, picture, f"{title} against {column}"),
    )


def _ending(cell: AttackCell, picture: int) -> str:
    numbers = {name: cell.number(name, picture) for name in SHORT[1:]}
    return said.END.format(
        numbers=", ".join(f"{name.upper()} {value:.2f}" for name, value in numbers.items() if value is not None)
    )


def _why(cell: AttackCell) -> Iterator[Html]:
    """What holds for all pictures of one attack is said beside the first."""
    if cell.judged is not None:
        if cell.judged.reason:
            yield tag("span", cell.judged.reason)
        if (many := len(cell.judged.restarts)) > 1:
            yield tag("span", said.RESTARTS.format(many=many))


def _picture(png: str, alt: str) -> Html:
    return tag("img", src=f"data:image/png;base64,{png}", alt=alt)


# --- curves and numbers ------------------------------------------------------------------------------------


def _series(found: PageContent, case: Sequence[ExportedAttack]) -> list[tuple[SvgLine, AttackCell]]:
    made = []
    for row, one in enumerate(case):
        for cell in one.cells:
            control = cell.column == attack_grid.NONE and not found.run.bare
            points = tuple(
                (100 * _share(guess.iteration, guess.of), round(sum(near) / len(near), 2))
                for guess in cell.path
                if (near := [value for value in guess.psnr if value is not None and math.isfinite(value)])
            )
            title = attack_texts.NONE if cell.column == attack_grid.NONE else run_section.title(found.run)
            name = f"{run_settings.attack_title(one.mine.attack)}, {title}"
            dash = DASHES[row % len(DASHES)]
            made.append((SvgLine(name, points, "leaking" if control else "run", dash), cell))
    return [(line, cell) for line, cell in made if line.points]


def _curves(found: PageContent, place: int, case: Sequence[ExportedAttack]) -> list[Html]:
    series = _series(found, case)
    if not series:
        return []
    lines = [line for line, _ in series]
    plain = case[0].mine.judged.trivial.get("psnr", ()) if case[0].mine.judged else ()
    level = sum(plain) / len(plain) if plain else None
    values = [y for line in lines for _, y in line.points] + ([level] if level is not None else [])
    low = min(values)
    across = SvgAxis(said.SHARE_AXIS, 0, 100, tuple((at, str(at)) for at in range(0, 101, 20)))
    ends = "; ".join(f"{line.name} ends at {decibel(line.points[-1][1])}" for line in lines)
    told = f"{ends}. {attack_texts.GREY.capitalize()} reaches {decibel(level)}."
    drawn = SvgChart(
        f"psnr-{place}", said.CURVES, told, lines, across, chart.even(said.PSNR_AXIS, low, max(*values, low + LEAST)),
        (level, attack_texts.GREY) if level is not None else None, follows=True,
    )  # fmt: skip
    return [tag("h4", said.CURVES), tag("figure", chart.legend(lines), chart.svg(drawn))]


def _numbers(found: PageContent, case: Sequence[ExportedAttack]) -> Html:
    rows: list[tuple[str, ...]] = []
    names = sorted({name for one in case for cell in one.cells if cell.judged for name in cell.judged.numbers})
    names = [*(name for name in SHORT if name in names), *(name for name in names if name not in SHORT)]
    for one in case:
        for cell in one.cells:
            column = attack_texts.NONE if cell.column == attack_grid.NONE else run_section.title(found.run)
            for at in cell.judged.places if cell.judged else ():
                told = [_number(cell.number(name, at)) for name in names]
                title = run_settings.attack_title(one.mine.attack)
                rows.append((title, column, str(at + 1), *told, _number(cell.trivial(at)),
                             attack_texts.state(cell)))  # fmt: skip
    heads = ("attack", "against", "picture", *names, "psnr of a grey square", "state")
    return table(said.NUMBERS, heads, rows)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
