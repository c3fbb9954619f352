"""The command `table`: a published table run again, a line for each run as it ends and the whole table at the end."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.cli.arguments import literal, refuse_machine
from engine.cli.dry_run import Where
from engine.cli.progress import at_work
from engine.cli.sweep import dry_run, followed, machine, refuse_seeds, stop, under_way
from engine.errors import BadInput, refusal
from engine.results.paper_report import answer, as_markdown, as_words
from engine.specs.paper_tables import READINGS, SCALES, PaperCell, PaperTable, cells, table, tables

if TYPE_CHECKING:
    from engine.results.summary import PointResult
    from engine.specs.sweep import SweepPoint

VIEWS = ("server", "aggregate", "outsider", "client")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the number of the table; `list tables` shows them")
    parser.add_argument("--scale", choices=SCALES, default="quick", help="the paper's own size takes days")
    parser.add_argument("--reading", choices=READINGS, default="written", help="as the paper or as its code has it")
    parser.add_argument("--seeds", type=literal, default=3, metavar="N", help="so many, counted from 0")
    parser.add_argument("--rows", metavar="A,B", help="these rows only, with commas between")
    parser.add_argument("--view", choices=VIEWS, help="whose ε is shown")
    parser.add_argument("--markdown", action="store_true", help="in the shape of the paper, to paste into a text")


def run(asked: argparse.Namespace) -> int:
    """Follow it to its end; Ctrl-C stops all that has not ended."""
    refuse_machine(asked)
    wanted = chosen(asked)
    if asked.dry_run:
        places = {cell.point(seed): _where(cell) for cell in wanted for seed in range(asked.seeds)}
        return dry_run(asked, places, asked.view or wanted[0].table.readings[wanted[0].reading].view)
    with at_work() as (store, supervisor, mine):
        supervisor.expect(supervisor.workers)
        todo = {cell.point(seed): cell for seed in range(asked.seeds) for cell in wanted}
        notes = refuse(todo)
        mine.update(point.id for point in todo)
        found: dict[PaperCell, list[PointResult]] = {cell: [] for cell in wanted}
        theirs = under_way(store, tuple(todo))
        try:
            for point, one in followed(store, supervisor, tuple(todo), machine(asked)):
                found[todo[point]] += [] if one is None else [one]
                if not asked.json:
                    print(line(todo[point], point, one), flush=True)
        except KeyboardInterrupt:
            return stop(store, supervisor, tuple(todo), theirs)
    for results in found.values():
        results.sort(key=lambda one: one.point.seed)  # they come as they end
    body = answer(found, asked.seeds, asked.view, notes)
    if asked.json:
        print(json.dumps(body, ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join(["", *(as_markdown(body) if asked.markdown else as_words(body))]))
    return 1 if body["failed"] else 0


def chosen(asked: argparse.Namespace) -> tuple[PaperCell, ...]:
    refuse_seeds("table", asked.seeds)
    rows = [word.strip() for word in (asked.rows or "").split(",") if word.strip()]
    if asked.rows is not None and not rows:
        raise refusal(
            "table: --rows", "must name rows, with commas between", asked.rows, "Leave it out for all of them"
        )
    return cells(table(asked.name), asked.scale, asked.reading, rows)


def _where(cell: PaperCell) -> Where:
    words = f"{cell.row.name:<16} noise {cell.noise:<4g} {cell.label:<12}"
    place = {"row": cell.row.name, "noise": cell.noise, "column": cell.column, "preset": cell.name}
    return words, cell.label, place


def refuse(todo: Mapping[SweepPoint, PaperCell]) -> list[str]:
    """What would stop a cell is said before the first begins; back comes what a reader should know of the methods."""
    from engine.training.plan import make_plan

    said: dict[str, dict[str, None]] = {}  # what is told, and of which columns
    for point, cell in {(cell.row.name, cell.column): (point, cell) for point, cell in todo.items()}.values():
        try:
            plan = make_plan(point.spec)
        except BadInput as bad:
            remedy = f"{bad.remedy}; or name other rows with --rows" if bad.remedy else "Name other rows with --rows"
            raise BadInput(f"table {cell.table.name}: {cell.row.name}: {bad.message}", remedy) from None
        promise = plan.guarantee
        remarks = (one.reason for one in plan.method.remarks(plan.world))
        for words in (f"{promise.status}: {promise.reason}", *remarks):
            said.setdefault(words, {})[cell.label] = None
    return [f"{', '.join(labels)}: {words}" for words, labels in said.items()]


def line(cell: PaperCell, point: SweepPoint, found: PointResult | None) -> str:
    said = f"{cell.row.name:<16} noise {cell.noise:<4g} {cell.label:<12} seed {point.seed:<4}"
    if found is None:
        return f"{said} did not finish: `run --preset {cell.name} --seed {point.seed}` says why"
    own = "" if found.personal is None else f", personal {100 * found.personal:.1f} %"
    return f"{said} accuracy {100 * found.accuracy:.1f} %{own}"


# --- list tables -------------------------------------------------------------------------------------------


def list_tables(asked: argparse.Namespace) -> int:
    """Every table with its rows; as JSON also the name of every preset."""
    known = [table(name) for name in tables()]
    if asked.json:
        print(json.dumps([listed(one) for one in known], ensure_ascii=False))
        return 0
    for one in known:
        print(f"table {one.name:<4} {one.title} ({one.source})")
        for row in one.rows:
            print(f"  {row.name:<20} {row.title}")
    print(
        f"Each cell is a preset, such as {cells(known[0], *SCALES[:1], *READINGS[:1])[0].name}; --json names them all."
    )
    return 0


def listed(one: PaperTable) -> dict[str, Any]:
    rows = [
        {"name": row.name, "title": row.title, "words": {scale: dict(row.settings[scale].words) for scale in SCALES}}
        for row in one.rows
    ]
    presets = [cell.name for reading in READINGS for scale in SCALES for cell in cells(one, scale, reading)]
    return {"name": one.name, "title": one.title, "source": one.source, "rows": rows, "presets": presets}
