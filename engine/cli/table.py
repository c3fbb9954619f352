"""The command `table`: runs a published table again. It prints a line for each run and the whole table at the end."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.cli.arguments import literal, refuse_machine
from engine.cli.dry_run import ForecastLine
from engine.cli.progress import supervised
from engine.cli.sweep import batch_of, dry_run, exit_code, follow_points, refusals, refuse_seeds, run_options, stop
from engine.errors import BadInput, Damaged, refusal
from engine.results.paper_report import as_markdown, as_words, table_body
from engine.specs.paper_tables import READINGS, SCALES, PaperCell, PaperTable, cells, table, tables

if TYPE_CHECKING:
    from engine.jobs.batches import Batch
    from engine.jobs.store import Store
    from engine.jobs.supervisor import Supervisor
    from engine.results.summary import PointResult
    from engine.specs.sweep import SweepPoint

VIEWS = ("server", "aggregate", "outsider", "client")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the number of the table; `list tables` shows them")
    scale_help = "the size of the runs; `paper` is the paper's own size and takes days"
    parser.add_argument("--scale", choices=SCALES, default="quick", help=scale_help)
    reading_help = "the method as the paper describes it or as its code runs it"
    parser.add_argument("--reading", choices=READINGS, default="written", help=reading_help)
    seeds_help = "the number of seeds, counted from 0"
    parser.add_argument("--seeds", type=literal, default=3, metavar="N", help=seeds_help)
    parser.add_argument("--rows", metavar="A,B", help="only these rows, with commas between")
    parser.add_argument("--view", choices=VIEWS, help="the view whose ε is shown")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown, in the paper's layout")


def run(args: argparse.Namespace) -> int:
    """Follow all runs to their end and print the table. Ctrl-C cancels the runs that no one else wants."""
    refuse_machine(args)
    chosen_cells = chosen(args)
    if args.dry_run:
        return _dry_run(args, chosen_cells)
    with supervised() as (store, supervisor, run_ids):
        supervisor.expect(supervisor.workers)
        cell_of = {cell.point(seed): cell for seed in range(args.seeds) for cell in chosen_cells}
        notes, problems = examined(cell_of)
        batch = batch_of("table", f"table {chosen_cells[0].table.name}, {args.scale}", tuple(cell_of), problems)
        run_ids.update(batch.runs)
        refused = refusals(tuple(cell_of), batch)
        if not args.json:
            for point, problem in refused.items():
                print(cell_line(cell_of[point], point, None, f"cannot be run: {problem}"), flush=True)
        visitor = store.visits.command()
        try:
            results = _follow(args, store, supervisor, cell_of, batch, visitor)
        except KeyboardInterrupt:
            return stop(store, supervisor, batch, visitor)
    body = table_body(results, args.seeds, args.view, notes)
    failed = body["failed"] - len(refused)
    if refused:
        body = {**body, "failed": failed, "refused": _refused_rows(cell_of, refused)}
    _print(args, body)
    return exit_code(failed, refused)


def _follow(
    args: argparse.Namespace,
    store: Store,
    supervisor: Supervisor,
    cell_of: Mapping[SweepPoint, PaperCell],
    batch: Batch,
    visitor: str,
) -> dict[PaperCell, list[PointResult]]:
    """The results of each cell, by seed. Prints a line for each run when it ends."""
    results: dict[PaperCell, list[PointResult]] = {cell: [] for cell in cell_of.values()}
    for point, result in follow_points(store, supervisor, tuple(cell_of), batch, run_options(args), visitor):
        cell = cell_of[point]
        if result is not None:
            results[cell].append(result)
        if not args.json:
            print(cell_line(cell, point, result), flush=True)
    for cell_results in results.values():
        cell_results.sort(key=lambda result: result.point.seed)  # runs end in any order
    return results


def _refused_rows(cell_of: Mapping[SweepPoint, PaperCell], refused: Mapping[SweepPoint, str]) -> list[dict[str, Any]]:
    """The runs that could not be run, as JSON."""
    rows = []
    for point, problem in refused.items():
        rows.append({"id": point.id, "preset": cell_of[point].name, "seed": point.seed, "problem": problem})
    return rows


def _dry_run(args: argparse.Namespace, chosen_cells: tuple[PaperCell, ...]) -> int:
    lines = {cell.point(seed): _forecast_line(cell) for cell in chosen_cells for seed in range(args.seeds)}
    first = chosen_cells[0]
    return dry_run(args, lines, args.view or first.table.readings[first.reading].view)


def _print(args: argparse.Namespace, body: Mapping[str, Any]) -> None:
    if args.json:
        print(json.dumps(body, ensure_ascii=False, allow_nan=False))
    else:
        lines = as_markdown(body) if args.markdown else as_words(body)
        print("\n".join(["", *lines]))


def chosen(args: argparse.Namespace) -> tuple[PaperCell, ...]:
    """The cells of the rows that the options name; all cells without --rows."""
    refuse_seeds("table", args.seeds)
    rows = [word.strip() for word in (args.rows or "").split(",") if word.strip()]
    if args.rows is not None and not rows:
        rule = "must name rows, with commas between"
        raise refusal("table: --rows", rule, args.rows, "Leave it out for all of them")
    return cells(table(args.name), args.scale, args.reading, rows)


def _forecast_line(cell: PaperCell) -> ForecastLine:
    text = f"{cell.row.name:<16} noise {cell.noise:<4g} {cell.label:<12}"
    columns = {"row": cell.row.name, "noise": cell.noise, "column": cell.column, "preset": cell.name}
    return ForecastLine(text, cell.label, columns)


def examined(cell_of: Mapping[SweepPoint, PaperCell]) -> tuple[list[str], dict[str, str]]:
    """Notes about the methods, and why runs cannot be run, by their ids. Refuses a table in which no run can."""
    from engine.training.plan import make_plan

    checked = {(cell.row.name, cell.column): (point, cell) for point, cell in cell_of.items()}
    labels_of: dict[str, dict[str, None]] = {}  # for each note the columns that it is about
    errors: dict[tuple[str, str], BadInput] = {}
    for key, (point, cell) in checked.items():
        try:
            plan = make_plan(point.spec)
        except BadInput as error:
            errors[key] = BadInput(f"table {cell.table.name}: {cell.row.name}: {error.message}", error.remedy)
            continue
        guarantee = plan.guarantee
        notes = [f"{guarantee.status}: {guarantee.reason}"]
        notes += [remark.reason for remark in plan.method.remarks(plan.world)]
        for note in notes:
            labels_of.setdefault(note, {})[cell.label] = None
    if len(errors) == len(checked):
        raise next(iter(errors.values()))
    problems = {}
    for point, cell in cell_of.items():
        key = (cell.row.name, cell.column)
        if key in errors:
            problems[point.id] = str(errors[key])
    return [f"{', '.join(labels)}: {note}" for note, labels in labels_of.items()], problems


def cell_line(cell: PaperCell, point: SweepPoint, result: PointResult | None, why: str = "") -> str:
    """The line of one run when it ends."""
    start = f"{cell.row.name:<16} noise {cell.noise:<4g} {cell.label:<12} seed {point.seed:<4}"
    if why:
        return f"{start} {why}"
    if result is None:
        return f"{start} did not finish. To see why: `run --preset {cell.name} --seed {point.seed}`"
    personal = "" if result.personal is None else f", personal {100 * result.personal:.1f} %"
    return f"{start} accuracy {100 * result.accuracy:.1f} %{personal}"


# --- list tables -------------------------------------------------------------------------------------------


def list_tables(args: argparse.Namespace) -> int:
    """Print every table with its rows; as JSON also the names of all presets."""
    known = [table(name) for name in tables()]
    if not known:
        raise Damaged("table: there are no presets in assets/presets/tables", "Download LeakLens again")
    if args.json:
        print(json.dumps([listed(paper_table) for paper_table in known], ensure_ascii=False))
        return 0
    for paper_table in known:
        print(f"table {paper_table.name:<4} {paper_table.title} ({paper_table.source})")
        for row in paper_table.rows:
            print(f"  {row.name:<20} {row.title}")
    example = cells(known[0], SCALES[0], READINGS[0])[0].name
    print(f"Each cell is a preset, such as {example}; --json names them all.")
    return 0


def listed(paper_table: PaperTable) -> dict[str, Any]:
    """One table as JSON."""
    rows = []
    for row in paper_table.rows:
        words = {scale: dict(row.settings[scale].words) for scale in SCALES}
        rows.append({"name": row.name, "title": row.title, "words": words})
    presets = []
    for reading in READINGS:
        for scale in SCALES:
            presets += [cell.name for cell in cells(paper_table, scale, reading)]
    title = paper_table.title
    return {"name": paper_table.name, "title": title, "source": paper_table.source, "rows": rows, "presets": presets}
