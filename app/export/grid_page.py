"""The exported page of a grid: the pictures of every attack against every protection, the scores and each ε."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from app.export import cells as export_cells
from app.export import document, run_section
from app.export import grid_texts as texts
from app.export import texts as export_texts
from app.export.cells import SHORT
from app.export.closeness import content as closeness_content
from app.export.document import PageParts
from app.export.frames import ScrubberFrames, player
from app.export.gather import ExportedRun
from app.export.grid_content import OF_COLUMN, ExportedColumn, ExportedGrid, FoundAttack, grids
from app.export.markup import Html, more, table, tag
from app.export.slides import deck
from app.export.slides.picks import SlidePicks, picks
from app.session import run_settings
from app.texts import attacks as attack_texts
from app.texts import privacy, verdicts
from engine.capabilities import HasNoise
from engine.results import attack_summary
from engine.results.attack_summary import METRICS, AttackCell
from engine.specs import attack_grid

if TYPE_CHECKING:
    from engine.specs.run import RunSpec

WIDE = 5  # protections next to each other at most, so that no picture is cut on paper
BEST = "best"  # the key of the row of the best attack


def grid_page(
    name: str,
    attacks: Sequence[FoundAttack],
    made: date | None = None,
    notes: Sequence[str] = (),
    style: str = deck.STYLES[0],
    left_out: int = 0,
    trained: Mapping[str, ExportedRun] | None = None,
) -> str:
    """These attacks as one HTML file without links to other files. `name` is for the foot, such as `Batch 1a2b3c`.

    `left_out` more attacks belong to them, but have no room on the page. `trained`: the runs that the page shows with
    their accuracy, by their id.
    """
    if left_out:
        every = attack_texts.count(len(attacks) + left_out)
        notes = [*notes, texts.FIRST.format(most=len(attacks), all=every)]
    return document.checked(
        name, lambda: document.written(_parts(name, attacks, notes, left_out, trained or {}), made, style)
    )


def _parts(
    name: str,
    attacks: Sequence[FoundAttack],
    notes: Sequence[str],
    left_out: int,
    trained: Mapping[str, ExportedRun],
) -> PageParts:
    uploads = grids(attacks)
    cells = sum(len(grid.pictures) * len(grid.cells) for grid in uploads)
    frames = ScrubberFrames(cells)
    drawn = [_upload(grid, frames, place < deck.ANSWERS) for place, grid in enumerate(uploads)]
    sections = (
        player(len(frames.moments)),
        *drawn,
        *run_section.short_sections(trained),
        _request(uploads, trained),
        document.limits(),
    )
    title = texts.title(attacks[0].spec["run"])
    top = [document.brand(), tag("h1", title), *(tag("p", line) for line in _progress(attacks))]
    warnings = [*notes, export_texts.OWN] if any(map(_own, attacks)) else notes
    top += [tag("p", note, class_="note") for note in warnings]
    foot = f"LeakLens{document.version()}. {name}. {texts.finished(attacks)}"
    system = closeness_content.of_grids(uploads, left_out)
    question = tag("div", *top, data_slide=deck.QUESTION)
    return PageParts(title, (question,), sections, foot, system, run_section.only_method(trained), frames.script())


def _progress(attacks: Sequence[FoundAttack]) -> Iterator[str]:
    """How many attacks have finished, and which come from a stored example."""
    yield texts.finished(attacks)
    made = [attack.made for attack in attacks if attack.made]
    if made:
        yield attack_texts.stored(len(made), len(attacks) - len(made), len(attacks), max(made))


def _own(attack: FoundAttack) -> bool:
    """Whether the attack is on a picture that a visitor uploaded."""
    return any(str(name).startswith("own-") for name in attack.spec.get("pictures", ()))


# --- one upload --------------------------------------------------------------------------------------------


def _upload(grid: ExportedGrid, frames: ScrubberFrames, on_slide: bool) -> Html:
    """One upload. Its slide has the verdict and the best pictures, others the further protections and each ε."""
    heading = export_texts.UPLOAD.format(
        pictures=export_texts.upload(grid.spec),
        when=export_texts.when(grid.spec["round"]),
        view=attack_texts.VIEWS[str(grid.spec["view"])],
    )
    seen = next((cell.seen for cell in grid.cells if cell.seen), None)
    notes = [attack_texts.realistic(seen.facts, str(grid.spec["view"]))] if seen else []
    first, *others = [_pictures(grid, block, frames) for block in _blocks(grid.columns)]
    name = tag("h3", heading, class_="slide-only")
    further = [tag("div", name, block, data_slide=deck.ANSWER if on_slide else None) for block in others]
    promises = tag(
        "div",
        tag("h3", texts.EPSILON),
        _epsilons(grid),
        *(tag("p", note, class_="faint") for note in _epsilon_notes(grid)),
        data_slide=deck.COST if on_slide else None,
    )
    return tag(
        "section",
        tag("h2", heading),
        *(tag("p", sentence, class_="verdict") for sentence in _verdicts(grid)),
        first,
        *further,
        deck.left_out(len(grid.rows), len(grid.pictures)),
        *(tag("p", note, class_="faint") for note in _terms(grid)),
        *(tag("p", note, class_="faint", data_page=True) for note in notes),
        promises,
        tag("div", tag("h3", texts.SCORES), _scores(grid), data_page=True),
        class_="upload",
        data_slide=deck.ANSWER if on_slide else None,
    )


def _blocks(columns: Sequence[ExportedColumn]) -> list[Sequence[ExportedColumn]]:
    """The columns of each table, so that a wide grid becomes several tables below each other."""
    tables = math.ceil(len(columns) / WIDE)
    each = math.ceil(len(columns) / tables)
    return [columns[start : start + each] for start in range(0, len(columns), each)]


def _verdicts(grid: ExportedGrid) -> list[str]:
    """The results in words. Without a baseline, no sentence makes a claim about protection."""
    titles = {column.key: column.title for column in grid.columns}
    if attack_grid.NONE in titles:
        sizes = [privacy.size_of(column.epsilon) for column in grid.columns if column.epsilon]
        promised = any(size != privacy.NO_PROMISE for size in sizes)
        return list(filter(None, [verdicts.of_cells(grid.cells, titles, attack_grid.NONE, promised)]))
    results = [attack_summary.protection_result(grid.cells, key, title) for key, title in titles.items()]
    sentences = [verdicts.alone(result) for result in results]
    return [*filter(None, sentences), export_texts.NO_BASELINE]


def _pictures(grid: ExportedGrid, columns: Sequence[ExportedColumn], frames: ScrubberFrames) -> Html:
    """A table of pictures: a row for each attack and original, and last the best of all attacks."""
    heads = [tag("th", "attack", scope="col"), tag("th", attack_texts.ORIGINAL, scope="col")]
    heads += [_head(grid, column) for column in columns]
    chosen = picks(grid.cells, [column.key for column in columns], grid.pictures)
    body = [row for key, title in grid.rows.items() for row in _attack_rows(grid, key, title, columns, frames, chosen)]
    if len(grid.rows) > 1:
        body += _best_rows(grid, columns)
    caption = tag("caption", export_texts.TABLE, class_="unseen")
    inner = tag("table", caption, tag("thead", tag("tr", *heads)), tag("tbody", *body))
    kind = "wide grid many" if len(columns) > 2 or len(grid.pictures) > 2 else "wide grid"
    return tag("div", inner, class_=kind, tabindex=0, role="group", aria_label=export_texts.TABLE)


def _head(grid: ExportedGrid, column: ExportedColumn) -> Html:
    """The head of a column: the protection, who adds the noise, the size of its promise, and noise to signal."""
    seen = [cell.seen for cell in attack_summary.of_column(grid.cells, column.key) if cell.seen]
    ratio = attack_texts.loudness(seen[0].facts.get("noise-to-signal")) if seen else ""
    promise, side = privacy.promise(column.epsilon)
    return tag(
        "th",
        column.title,
        tag("small", column.split) if column.split else None,
        tag("small", promise, class_=side),
        tag("small", ratio) if ratio else None,
        scope="col",
    )


def _attack_rows(
    grid: ExportedGrid,
    key: str,
    title: str,
    columns: Sequence[ExportedColumn],
    frames: ScrubberFrames,
    chosen: SlidePicks,
) -> Iterator[Html]:
    pictures = grid.pictures or (0,)
    first = key == next(iter(grid.rows))
    name: Html | None = tag("th", title, scope="rowgroup", rowspan=len(pictures))
    for picture in pictures:
        boxes = [_original(grid, picture, chosen.original(picture, first))]
        for column in columns:
            cell = grid.cell(key, column.key)
            place = chosen.place(column.key, cell, picture, first)
            boxes.append(export_cells.guess(cell, picture, frames, title, column.title, remarks=False, place=place))
        yield tag("tr", name, *boxes)
        name = None  # the first row has the heading of all rows


def _original(grid: ExportedGrid, picture: int, place: int | None = None) -> Html:
    source = next((cell for cell in grid.cells if cell.seen), None)
    return export_cells.original(source, picture, grid.classes, place) if source else tag("td")


def _best_rows(grid: ExportedGrid, columns: Sequence[ExportedColumn]) -> Iterator[Html]:
    """The best attack against each protection, by original. It repeats pictures of the rows above, at their end."""
    pictures = grid.pictures
    best = attack_texts.BEST.format(count=len(grid.rows))
    note = tag("small", attack_texts.BEST_NOTE)
    name: Html | None = tag("th", best, note, scope="rowgroup", rowspan=len(pictures))
    for picture in pictures:
        boxes = [_original(grid, picture), *(_best(grid, column, picture) for column in columns)]
        yield tag("tr", name, *boxes, class_=BEST)
        name = None


def _best(grid: ExportedGrid, column: ExportedColumn, picture: int) -> Html:
    finished = [cell for cell in attack_summary.of_column(grid.cells, column.key) if cell.done]
    best = attack_summary.best_cell(finished, picture)
    png = export_cells.last_png(best, picture) if best else None
    if best is None or png is None:
        return tag("td", tag("span", "–"))
    leaking = "leaking" if best.leaks(picture) else None
    state = verdicts.caption(best, picture)
    psnr = best.psnr(picture)
    title = grid.rows[best.attack]
    return tag(
        "td",
        export_cells.image(png, attack_texts.alt(title, column.title, state)),
        tag("b", state, class_=leaking),
        tag("span", attack_texts.decibel(psnr)),
        tag("span", attack_texts.BY.format(attack=title)),
    )


# --- ε and scores ------------------------------------------------------------------------------------------


def _epsilons(grid: ExportedGrid) -> Html:
    """The ε of each protection in the view of the attacker, with its meaning and its terms."""
    rows = []
    for column in grid.columns:
        if column.epsilon is None:
            rows.append((column.title, "no ε", "–", column.absent))
        else:
            rows.append((column.title, *run_section.term_cells(column.epsilon)))
    caption = texts.EPSILON_TABLE.format(seen=privacy.SEEN_BY[str(grid.spec["view"])])
    return table(caption, texts.EPSILON_HEADS, rows, class_="terms")


def _terms(grid: ExportedGrid) -> Iterator[str]:
    """The terms of every ε in the heads of the columns: without them a number means nothing."""
    answers = [column.epsilon for column in grid.columns if column.epsilon and column.epsilon.value is not None]
    if answers:
        yield attack_texts.terms(answers)


def _epsilon_notes(grid: ExportedGrid) -> Iterator[str]:
    answers = [column.epsilon for column in grid.columns if column.epsilon]
    if any(answer.value is not None for answer in answers):
        yield export_texts.WHOLE_RUN
    if any(answer.unit == "record" for answer in answers) and grid.spec.get("upload", "listed") == "listed":
        yield attack_texts.PROBE_EPSILON


def _scores(grid: ExportedGrid) -> Html:
    """PSNR, SSIM and LPIPS of every guess, next to the trivial guess of a grey square."""
    titles = {column.key: column.title for column in grid.columns}
    rows: list[tuple[str, ...]] = []
    for picture in grid.pictures:
        judged = next((cell for cell in grid.cells if cell.judged and picture in cell.judged.places), None)
        if judged:
            trivial = [export_cells.number(name, judged.trivial(picture, name)) for name in SHORT]
            rows.append((attack_texts.GREY, "–", str(picture + 1), *trivial, texts.TRIVIAL, "–"))
        for cell in grid.cells:
            if cell.judged and picture in cell.judged.places:
                rows.append(_score_row(cell, picture, grid.rows[cell.attack], titles[cell.column]))
    heads = ("attack", "against", "picture", *(name.upper() for name in METRICS), "verdict", "remark")
    return table(export_texts.NUMBERS, heads, rows)


def _score_row(cell: AttackCell, picture: int, row: str, column: str) -> tuple[str, ...]:
    values = [export_cells.number(name, cell.number(name, picture)) for name in SHORT]
    return (row, column, str(picture + 1), *values, verdicts.caption(cell, picture), verdicts.remark(cell.judged))


# --- settings and commands ---------------------------------------------------------------------------------


def _request(uploads: Sequence[ExportedGrid], trained: Mapping[str, ExportedRun]) -> Html:
    """The settings of the runs and attacks, and the commands that repeat them in a terminal."""
    runs = {column.run.id: column for grid in uploads for column in grid.columns}
    attacks = [attack for grid in uploads for attack in grid.attacks]
    first = next(iter(runs.values()))
    settings = run_settings.flat(first.run.canonical())
    specs = {id: column.run.canonical() for id, column in runs.items()} | {id: run.spec for id, run in trained.items()}
    starts = [run_settings.command(spec) for spec in specs.values()]
    commands = [command for grid in uploads for command in _commands(grid)]
    shared = {name: value for name, value in settings.items() if name.partition(".")[0] not in ("method", *OF_COLUMN)}
    methods = {column.title: _method_settings(column.run) for column in runs.values()}
    again = tag(
        "div",
        tag("h3", export_texts.AGAIN),
        tag("p", texts.AGAIN_RUNS.format(runs=len(specs), attacks=attack_texts.count(len(attacks))), class_="faint"),
        *map(run_section.command_block, starts),
        more(texts.ATTACK_COMMANDS, *map(run_section.command_block, commands)),
        data_page=True,
    )
    return tag(
        "section",
        tag("h2", export_texts.REQUEST),
        tag("h3", texts.SHARED, data_page=True),
        run_section.settings_table(shared, texts.SHARED),
        tag("div", tag("h3", texts.PROTECTIONS), _listed(texts.PROTECTIONS, methods), data_page=True),
        tag("div", tag("h3", texts.ATTACKS), _listed(texts.ATTACKS, _attack_settings(uploads)), data_page=True),
        again,
        data_slide=deck.SETTINGS,
    )


def _method_settings(run: RunSpec) -> dict[str, object]:
    """The fields of the method, and those of the run that belong to its promise.

    With a target ε, the field of the noise has a default that the run does not use.
    """
    fields = run.method.values()
    promise = run.canonical()
    fields |= {name: promise[name] for name in OF_COLUMN if promise.get(name) is not None}
    if run.target_epsilon is not None and isinstance(run.method, HasNoise):
        fields[run.method.noise_name()] = export_texts.SOLVED
    return fields


def _commands(grid: ExportedGrid) -> Iterator[str]:
    """The command of each attack. It needs the run that it attacks."""
    for attack in grid.attacks:
        run = run_settings.spec_of(run_settings.flat(attack.spec["run"]))
        yield export_texts.command(attack.spec, run.id)


def _attack_settings(uploads: Sequence[ExportedGrid]) -> dict[str, Mapping[str, object]]:
    settings: dict[str, Mapping[str, object]] = {}
    for grid in uploads:
        for attack, cell in zip(grid.attacks, grid.cells, strict=True):
            fields = {name: attack.spec.get(name) for name in ("restarts", "seed")}
            settings.setdefault(grid.rows[cell.attack], {**attack.spec["attack"], **fields})
    return settings


def _listed(caption: str, rows: Mapping[str, Mapping[str, object]]) -> Html:
    """A table with one row for each title and its fields in one cell."""
    body = []
    for title, fields in rows.items():
        texts_of_fields = [f"{name} {export_texts.value(value)}" for name, value in fields.items()]
        body.append((title, ", ".join(texts_of_fields)))
    return table(caption, ("name", "settings"), body, headed=True)
