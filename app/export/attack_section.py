"""The attacks on an exported page: originals next to reconstructions, with one scrubber for all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.export import cells as export_cells
from app.export import chart, run_section
from app.export import texts as export_texts
from app.export.cells import SHORT
from app.export.chart import SvgAxis, SvgChart, SvgLine
from app.export.frames import ScrubberFrames, player, share
from app.export.gather import ExportedAttack, PageContent
from app.export.markup import Html, more, table, tag
from app.export.slides import deck
from app.export.slides.picks import picks
from app.session import run_settings
from app.texts import attacks as attack_texts
from app.texts import verdicts
from app.texts.attacks import decibel
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell
from engine.specs import attack_grid

LEAST = 10.0  # dB from the bottom to the top of a chart, so that tiny differences look tiny
DASHES = ("", "7 5", "2 4", "10 4 2 4", "14 6", "4 3")


def attacks(content: PageContent) -> tuple[Html | None, Html | None]:
    """The section of the attacks, and the data of its script. Without an attack: how to start one."""
    heading = tag("h2", export_texts.LEAK)
    if not content.attacks and (content.memberships or content.stored):
        return None, None
    if not content.attacks:
        return tag("section", heading, tag("p", export_texts.NO_ATTACK.format(id=content.id))), None
    frames = ScrubberFrames(sum(len(_pictures(attack)) * len(attack.cells) for attack in content.attacks))
    uploads = [_upload(content, index, group, frames) for index, group in enumerate(content.uploads)]
    notes = []
    if content.left_out:
        notes.append(export_texts.LEFT_OUT.format(count=content.left_out))
    if run_section.own(content):
        notes.append(export_texts.OWN)
    section = tag(
        "section",
        heading,
        *(tag("p", note, class_="note") for note in notes),
        player(len(frames.moments)),
        *uploads,
        id="leak",
    )
    return section, frames.script()


# --- one upload --------------------------------------------------------------------------------------------


def _upload(content: PageContent, index: int, group: Sequence[ExportedAttack], frames: ScrubberFrames) -> Html:
    """All attacks on one upload."""
    spec = group[0].spec
    seen = group[0].cell.seen
    heading = export_texts.UPLOAD.format(
        pictures=export_texts.upload(spec),
        when=export_texts.when(spec["round"]),
        view=attack_texts.VIEWS[str(spec["view"])],
    )
    notes = _notes(content, seen.facts if seen else {}, str(spec["view"]), group[0])
    return tag(
        "section",
        tag("h3", heading),
        tag("p", verdict(content, group), class_="verdict"),
        _best(group),
        _grid(content, group, frames),
        deck.left_out(len(group), len(_pictures(group[0]))),
        tag("p", _baseline_note(content, group), class_="faint"),
        *(tag("p", text, class_="faint", data_page=True) for text in notes),
        tag("div", *_curves(content, index, group), data_page=True),
        tag("div", more("Every number as a table", _numbers(content, group)), data_page=True),
        class_="upload",
        data_slide=deck.ANSWER if index < deck.ANSWERS else None,
    )


def _has_baseline(group: Sequence[ExportedAttack]) -> bool:
    return any(attack.baseline for attack in group)


def _baseline_note(content: PageContent, group: Sequence[ExportedAttack]) -> str:
    """A note about the baseline. A run without protection is its own baseline and needs none."""
    if _has_baseline(group):
        return export_texts.HAS_BASELINE
    return "" if content.run.is_baseline else export_texts.NO_BASELINE


def verdict(content: PageContent, group: Sequence[ExportedAttack]) -> str:
    """The results in words. Without a baseline, the text makes no claim about protection."""
    title = run_section.title(content.run)
    cells = [cell for attack in group for cell in attack.cells]
    if any(cell.column == attack_grid.NONE for cell in cells):
        titles = {attack_grid.NONE: attack_texts.NONE, attack_grid.OF_RUN: title}
        columns = {key: titles[key] for key in titles if attack_summary.of_column(cells, key)}
        return verdicts.of_cells(cells, columns, attack_grid.NONE)
    result = attack_summary.protection_result(cells, attack_grid.OF_RUN, title)
    return verdicts.alone(result)


def _best(group: Sequence[ExportedAttack]) -> Html | None:
    """The attack with the highest PSNR, if there are several attacks. An attacker cannot make this choice."""
    best: ExportedAttack | None = None
    best_psnr = -math.inf
    for attack in group:
        for picture in _pictures(attack):
            psnr = attack.cell.psnr(picture)
            if psnr is not None and psnr > best_psnr:
                best = attack
                best_psnr = psnr
    if len(group) < 2 or best is None:
        return None
    name = run_settings.attack_title(best.cell.attack)
    return tag("p", export_texts.BEST.format(attack=name, psnr=decibel(best_psnr)), class_="faint", data_page=True)


def _notes(content: PageContent, facts: Mapping[str, Any], view: str, attack: ExportedAttack) -> Iterator[str]:
    """How realistic the upload is, how loud its noise is, and other facts that matter."""
    if not facts:
        return
    yield attack_texts.realistic(facts, view)
    loudness = export_texts.loudness(facts.get("noise-to-signal"), attack.noise_region)
    if loudness:
        yield loudness
    if any(answer.unit == "record" for answer in content.run.epsilons) and facts.get("upload") == "listed":
        yield attack_texts.PROBE_EPSILON
    if facts.get("tampered"):
        yield export_texts.TAMPERED
    shown = len(_pictures(attack))
    if shown < int(facts["pictures"]):
        yield export_texts.FEWER.format(of=facts["pictures"], shown=shown)


def _pictures(attack: ExportedAttack) -> tuple[int, ...]:
    """The indices of the originals that are paired with a guess."""
    return attack.cell.judged.places if attack.cell.judged else ()


# --- originals next to reconstructions ---------------------------------------------------------------------


def _grid(content: PageContent, group: Sequence[ExportedAttack], frames: ScrubberFrames) -> Html:
    """A row for each attack and original: the original, the guess against the baseline, the guess against the run."""
    column = attack_texts.NONE if content.run.is_baseline else run_section.title(content.run)
    controlled = _has_baseline(group)
    heads = ["attack", attack_texts.ORIGINAL, column]
    if controlled:
        heads.insert(2, attack_texts.NONE)
    keys = {cell.column: None for attack in group for cell in attack.cells}
    chosen = picks([cell for attack in group for cell in attack.cells], list(keys), _pictures(group[0]))
    body = []
    for attack in group:
        title = run_settings.attack_title(attack.cell.attack)
        pictures = _pictures(attack)
        first = attack is group[0]
        name: Html | None = tag("th", title, scope="rowgroup", rowspan=len(pictures))
        for picture in pictures:
            place = chosen.original(picture, first)
            boxes = [export_cells.original(attack.cell, picture, attack.classes, place)]
            if controlled:
                place = chosen.place(attack_grid.NONE, attack.baseline, picture, first)
                boxes.append(
                    export_cells.guess(attack.baseline, picture, frames, title, attack_texts.NONE, place=place)
                )
            place = chosen.place(attack.cell.column, attack.cell, picture, first)
            boxes.append(export_cells.guess(attack.cell, picture, frames, title, column, place=place))
            body.append(tag("tr", name, *boxes))
            name = None  # the first row has the heading of all rows
    split = run_section.split(content.run)
    small = {column: tag("small", f" {split}")} if split else {}
    top = tag("thead", tag("tr", *(tag("th", head, small.get(head), scope="col") for head in heads)))
    inner = tag("table", tag("caption", export_texts.TABLE, class_="unseen"), top, tag("tbody", *body))
    kind = "wide grid many" if max(len(_pictures(attack)) for attack in group) > 2 else "wide grid"
    return tag("div", inner, class_=kind, tabindex=0, role="group", aria_label=export_texts.TABLE)


# --- curves and scores -------------------------------------------------------------------------------------


def _column_title(content: PageContent, cell: AttackCell) -> str:
    return attack_texts.NONE if cell.column == attack_grid.NONE else run_section.title(content.run)


def _lines(content: PageContent, group: Sequence[ExportedAttack]) -> list[SvgLine]:
    """The mean PSNR of each cell over the progress of its attack."""
    lines = []
    for row, attack in enumerate(group):
        name = run_settings.attack_title(attack.cell.attack)
        for cell in attack.cells:
            points = tuple(_mean_psnr(cell))
            if points:
                baseline = cell.column == attack_grid.NONE and not content.run.is_baseline
                label = f"{name}, {_column_title(content, cell)}"
                lines.append(SvgLine(label, points, "baseline" if baseline else "run", DASHES[row % len(DASHES)]))
    return lines


def _mean_psnr(cell: AttackCell) -> Iterator[tuple[float, float]]:
    """Progress in % and the mean PSNR over the pictures, for each guess with a finite PSNR."""
    for guess in cell.path:
        values = [value for value in guess.psnr if value is not None and math.isfinite(value)]
        if values:
            yield 100 * share(guess), round(sum(values) / len(values), 2)


def _curves(content: PageContent, index: int, group: Sequence[ExportedAttack]) -> list[Html]:
    lines = _lines(content, group)
    if not lines:
        return []
    judged = group[0].cell.judged
    trivial = judged.trivial.get("psnr", ()) if judged else ()
    grey = sum(trivial) / len(trivial) if trivial else None
    values = [psnr for line in lines for _, psnr in line.points]
    if grey is not None:
        values.append(grey)
    low = min(values)
    across = SvgAxis(export_texts.SHARE_AXIS, 0, 100, tuple((tick, str(tick)) for tick in range(0, 101, 20)))
    up = chart.even(export_texts.PSNR_AXIS, low, max(*values, low + LEAST))
    ends = "; ".join(f"{line.name} ends at {decibel(line.points[-1][1])}" for line in lines)
    description = f"{ends}. {attack_texts.GREY.capitalize()} reaches {decibel(grey)}."
    level = (grey, attack_texts.GREY) if grey is not None else None
    drawing = SvgChart(f"psnr-{index}", export_texts.CURVES, description, lines, across, up, level, follows=True)
    return [tag("h4", export_texts.CURVES), tag("figure", chart.legend(lines), chart.svg(drawing))]


def _numbers(content: PageContent, group: Sequence[ExportedAttack]) -> Html:
    """A table of every score of every attack."""
    names = _metrics(group)
    rows: list[tuple[str, ...]] = []
    for attack in group:
        title = run_settings.attack_title(attack.cell.attack)
        for cell in attack.cells:
            for picture in cell.judged.places if cell.judged else ():
                scores = [export_cells.number(name, cell.number(name, picture)) for name in names]
                first = (title, _column_title(content, cell), str(picture + 1))
                trivial = export_cells.number("psnr", cell.trivial(picture))
                rows.append((*first, *scores, trivial, verdicts.caption(cell, picture)))
    heads = ("attack", "against", "picture", *names, "psnr of a grey square", "verdict")
    return table(export_texts.NUMBERS, heads, rows)


def _metrics(group: Sequence[ExportedAttack]) -> list[str]:
    """The names of all scores, the best known first."""
    names: set[str] = set()
    for attack in group:
        for cell in attack.cells:
            if cell.judged:
                names.update(cell.judged.numbers)
    first = [name for name in SHORT if name in names]
    return [*first, *(name for name in sorted(names) if name not in SHORT)]
