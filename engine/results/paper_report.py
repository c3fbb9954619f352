"""A paper table as JSON, text and Markdown: our accuracy next to the paper's, ε with its terms, and the order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

from engine.epsilon import NO_EPSILON, Epsilon
from engine.part import hyphened
from engine.results.ranking import MethodScore, paper_order
from engine.results.summary import reasons, shared_terms
from engine.specs.paper_tables import PaperCell

if TYPE_CHECKING:
    from engine.results.summary import PointResult

Results = Mapping[PaperCell, Sequence["PointResult"]]  # by cell of one table: a result for each seed that finished


def table_body(results: Results, seeds: int, view: str | None, notes: Sequence[str]) -> dict[str, Any]:
    """Everything that `table --json` prints."""
    first = next(iter(results))
    table = first.table
    reading = table.readings[first.reading]
    view = view or reading.view
    lines: dict[tuple[str, float], list[PaperCell]] = {}
    for cell in results:
        lines.setdefault((cell.row.name, cell.noise), []).append(cell)
    finished = sum(len(of_cell) for of_cell in results.values())
    return {
        "table": table.name,
        "title": table.title,
        "source": table.source,
        "scale": first.scale,
        "settings": table.scales[first.scale],
        "reading": first.reading,
        "words": reading.words,
        "seeds": seeds,
        "view": view,
        "rows": [block(line, results, view) for line in lines.values()],
        "notes": list(notes),
        "failed": seeds * len(results) - finished,
    }


def block(line: Sequence[PaperCell], results: Results, view: str) -> dict[str, Any]:
    """One row at one noise. Methods without a finished run are left out."""
    first = line[0]
    return {
        "row": first.row.name,
        "title": first.row.title,
        "words": first.row.settings[first.scale].words[first.reading],
        "noise": first.noise,
        "cells": [entry(cell, results[cell], view) for cell in line if results[cell]],
        "order": _order(line, results),
    }


def _order(line: Sequence[PaperCell], results: Results) -> dict[str, Any] | None:
    """The comparison with the paper's order; None where there is nothing to compare."""
    scores: list[MethodScore] = []
    for cell in line:
        accuracies = {result.point.seed: result.accuracy for result in results[cell]}
        scores.append(MethodScore(cell.label, accuracies, cell.reported / 100))
    order = paper_order(scores)
    if order is None:
        return None
    body = {hyphened(name): value for name, value in asdict(order).items()}
    return {**body, "words": order.words()}


def entry(cell: PaperCell, results: Sequence[PointResult], view: str) -> dict[str, Any]:
    """Mean and spread over the seeds, and the largest ε of the seeds with its terms."""
    from engine.results.summary import summaries

    (summary,) = summaries(results)
    epsilon = summary.epsilon(view)
    return {
        "column": cell.column,
        "label": cell.label,
        "preset": cell.name,
        "accuracy": summary.mean,
        "spread": summary.spread,
        "accuracy-personal": fmean(summary.personals) if summary.personals else None,
        "spread-personal": pstdev(summary.personals) if summary.personals else None,
        "reported": cell.reported / 100,
        "seeds": summary.seeds,
        **(epsilon.json() if epsilon else NO_EPSILON),
        "runs": [result.point.id for result in results],
    }


# --- as text for a person ----------------------------------------------------------------------------------


def as_words(body: Mapping[str, Any]) -> list[str]:
    """The table as lines of text."""
    lines = heading(body)
    previous = ""
    for row in body["rows"]:
        if row["row"] != previous:
            lines += ["", f"{row['title']}. {row['words']}"]
        previous = row["row"]
        lines += ["", f"  noise {row['noise']:<12g} {'accuracy':>14}   in the paper   ε"]
        lines += [cell_line(cell) for cell in row["cells"]]
        if row["order"]:
            lines.append(f"    {row['order']['words']}")
    return [*lines, "", *body["notes"], *missing_reasons(body)]


def heading(body: Mapping[str, Any]) -> list[str]:
    """The lines above the table: its source, reading, scale and terms."""
    seeds = "seed 0" if body["seeds"] == 1 else f"seeds 0 to {body['seeds'] - 1}"
    cells = all_cells(body)
    lines = [
        f"Table {body['table']} of {body['source']}: {body['title']}",
        f"Reading {body['words']}. {body['scale'].capitalize()} scale, {seeds}. {body['settings']}",
        "Accuracy of the global model after the last round, mean ± spread over the seeds.",
    ]
    if cells:
        of_cells = [Epsilon.from_json(body["view"], cell) for cell in cells]
        lines.append(f"ε in the {body['view']} view: {shared_terms(of_cells, body['seeds'])}.")
    failed = body["failed"]
    if failed:
        lines.append(f"{failed} run{'s' * (failed > 1)} did not finish.")
    return lines


def all_cells(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [cell for row in body["rows"] for cell in row["cells"]]


def cell_line(cell: Mapping[str, Any]) -> str:
    epsilon = "none" if cell["epsilon"] is None else f"{cell['epsilon']:.3g}"
    accuracy = percent(cell, "")
    reported = f"{100 * cell['reported']:.2f} %"
    personal = "" if cell["accuracy-personal"] is None else f"   personal {percent(cell, '-personal')}"
    return f"    {cell['label']:<14} {accuracy:>14}   {reported:>12}   {epsilon:<6}{personal}".rstrip()


def percent(cell: Mapping[str, Any], suffix: str) -> str:
    """Accuracy and spread in percent; the suffix `-personal` selects those of the personal models."""
    spread = f" ± {100 * cell[f'spread{suffix}']:.1f}" if cell["seeds"] > 1 else ""
    return f"{100 * cell[f'accuracy{suffix}']:.1f}{spread} %"


def missing_reasons(body: Mapping[str, Any]) -> list[str]:
    """Why some methods have no ε."""
    view = body["view"]
    return reasons([(cell["label"], Epsilon.from_json(view, cell)) for cell in all_cells(body)], view)


# --- as Markdown -------------------------------------------------------------------------------------------


def as_markdown(body: Mapping[str, Any]) -> list[str]:
    """The table as Markdown: a line for each row and noise, with the paper's accuracy in brackets."""
    has_personal = _personal_columns(body)
    heads: list[str] = []
    for label, personal in has_personal.items():
        heads += [label, f"{label}, personal"] if personal else [label]
    lines = [*heading(body), "", f"| row | noise | {' | '.join(heads)} |", "|---" * (2 + len(heads)) + "|"]
    for row in body["rows"]:
        by_label = {cell["label"]: cell for cell in row["cells"]}
        columns: list[str] = []
        for label, personal in has_personal.items():
            columns += markdown_cells(by_label.get(label), personal)
        lines.append(f"| {row['title']} | {row['noise']:g} | {' | '.join(columns)} |")
    lines += ["", *dict.fromkeys(f"* {row['title']}: {row['words']}" for row in body["rows"])]
    for row in body["rows"]:
        if row["order"]:
            lines.append(f"* {row['title']}, noise {row['noise']:g}: {row['order']['words']}")
    return lines + [f"* {note}" for note in (*body["notes"], *missing_reasons(body))]


def _personal_columns(body: Mapping[str, Any]) -> dict[str, bool]:
    """By label: whether the method has personal models in any of its cells."""
    has_personal: dict[str, bool] = {}
    for cell in all_cells(body):
        has_personal.setdefault(cell["label"], False)
        if cell["accuracy-personal"] is not None:
            has_personal[cell["label"]] = True
    return has_personal


def markdown_cells(cell: Mapping[str, Any] | None, personal: bool) -> list[str]:
    """One cell of the Markdown table, or two where the method has personal models."""
    if cell is None:
        return ["–"] * (1 + personal)
    epsilon = "no ε" if cell["epsilon"] is None else f"ε {cell['epsilon']:.3g}"
    accuracy = f"{percent(cell, '')} ({100 * cell['reported']:.2f}), {epsilon}"
    return [accuracy, percent(cell, "-personal")] if personal else [accuracy]
