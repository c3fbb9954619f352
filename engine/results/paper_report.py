"""What a table came to, for scripts and for people: accuracy beside the paper's, ε with its words, and the order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

from engine.part import hyphened
from engine.results.ranking import MethodScore, paper_order
from engine.results.summary import epsilon_terms, reasons, shared_terms
from engine.specs.paper_tables import PaperCell

if TYPE_CHECKING:
    from engine.results.summary import PointResult

Found = Mapping[
    PaperCell, Sequence["PointResult"]
]  # of each cell a result for each seed that finished; cells of one table


def answer(found: Found, seeds: int, view: str | None, notes: Sequence[str]) -> dict[str, Any]:
    """Everything as `table --json` prints it."""
    one = next(iter(found))
    reading = one.table.readings[one.reading]
    view = view or reading.view
    lines: dict[tuple[str, float], list[PaperCell]] = {}
    for cell in found:
        lines.setdefault((cell.row.name, cell.noise), []).append(cell)
    return {
        "table": one.table.name,
        "title": one.table.title,
        "source": one.table.source,
        "scale": one.scale,
        "settings": one.table.scales[one.scale],
        "reading": one.reading,
        "words": reading.words,
        "seeds": seeds,
        "view": view,
        "rows": [block(line, found, view) for line in lines.values()],
        "notes": list(notes),
        "failed": seeds * len(found) - sum(map(len, found.values())),
    }


def block(line: Sequence[PaperCell], found: Found, view: str) -> dict[str, Any]:
    """One row at one noise; methods of which no run finished are left out."""
    first = line[0]
    standing = paper_order(
        [
            MethodScore(cell.label, {one.point.seed: one.accuracy for one in found[cell]}, cell.reported / 100)
            for cell in line
        ]
    )
    told = standing and {hyphened(name): value for name, value in asdict(standing).items()}
    return {
        "row": first.row.name,
        "title": first.row.title,
        "words": first.row.settings[first.scale].words[first.reading],
        "noise": first.noise,
        "cells": [entry(cell, found[cell], view) for cell in line if found[cell]],
        "order": standing and {**(told or {}), "words": standing.words()},
    }


def entry(cell: PaperCell, results: Sequence[PointResult], view: str) -> dict[str, Any]:
    """Mean and spread over the seeds, and the largest ε among them with the words that must stand beside it."""
    from engine.results.summary import summaries

    (spot,) = summaries(results)
    return {
        "column": cell.column,
        "label": cell.label,
        "preset": cell.name,
        "accuracy": spot.mean,
        "spread": spot.spread,
        "accuracy-personal": fmean(spot.personals) if spot.personals else None,
        "spread-personal": pstdev(spot.personals) if spot.personals else None,
        "reported": cell.reported / 100,
        "seeds": spot.seeds,
        **epsilon_terms(spot, view),
        "runs": [one.point.id for one in results],
    }


# --- as a person reads it ----------------------------------------------------------------------------------


def as_words(body: Mapping[str, Any]) -> list[str]:
    said, before = heading(body), ""
    for row in body["rows"]:
        if row["row"] != before:
            said += ["", f"{row['title']}. {row['words']}"]
        before = row["row"]
        said += ["", f"  noise {row['noise']:<12g} {'accuracy':>14}   in the paper   ε"]
        said += [cell_line(cell) for cell in row["cells"]]
        said += [f"    {row['order']['words']}"] if row["order"] else []
    return [*said, "", *body["notes"], *whys(body)]


def heading(body: Mapping[str, Any]) -> list[str]:
    seeds = "seed 0" if body["seeds"] == 1 else f"seeds 0 to {body['seeds'] - 1}"
    told = [cell for row in body["rows"] for cell in row["cells"]]
    said = [
        f"Table {body['table']} of {body['source']}: {body['title']}",
        f"Reading {body['words']}. {body['scale'].capitalize()} scale, {seeds}. {body['settings']}",
        "Accuracy of the global model after the last round, mean ± spread over the seeds.",
    ]
    if told:
        said.append(f"ε in the {body['view']} view: {shared_terms(told, body['seeds'])}.")
    if many := body["failed"]:
        said.append(f"{many} run{'s' * (many > 1)} did not finish.")
    return said


def cell_line(cell: Mapping[str, Any]) -> str:
    epsilon = "none" if cell["epsilon"] is None else f"{cell['epsilon']:.3g}"
    here, there = percent(cell, ""), f"{100 * cell['reported']:.2f} %"
    own = "" if cell["accuracy-personal"] is None else f"   personal {percent(cell, '-personal')}"
    return f"    {cell['label']:<14} {here:>14}   {there:>12}   {epsilon:<6}{own}".rstrip()


def percent(cell: Mapping[str, Any], whose: str) -> str:
    spread = f" ± {100 * cell[f'spread{whose}']:.1f}" if cell["seeds"] > 1 else ""
    return f"{100 * cell[f'accuracy{whose}']:.1f}{spread} %"


def whys(body: Mapping[str, Any]) -> list[str]:
    return reasons([(cell["label"], cell) for row in body["rows"] for cell in row["cells"]], body["view"])


def as_markdown(body: Mapping[str, Any]) -> list[str]:
    """One line for each row and noise; beside each accuracy, in brackets, the paper's."""
    told = [cell for row in body["rows"] for cell in row["cells"]]
    owns = {cell["label"]: False for cell in told} | {
        cell["label"]: True for cell in told if cell["accuracy-personal"] is not None
    }
    heads = [head for label, own in owns.items() for head in ([label, f"{label}, personal"] if own else [label])]
    said = [*heading(body), "", f"| row | noise | {' | '.join(heads)} |", "|---" * (2 + len(heads)) + "|"]
    for row in body["rows"]:
        held = {cell["label"]: cell for cell in row["cells"]}
        places = [place for label, own in owns.items() for place in marked(held.get(label), own)]
        said.append(f"| {row['title']} | {row['noise']:g} | {' | '.join(places)} |")
    said += ["", *dict.fromkeys(f"* {row['title']}: {row['words']}" for row in body["rows"])]
    ordered = [row for row in body["rows"] if row["order"]]
    said += [f"* {row['title']}, noise {row['noise']:g}: {row['order']['words']}" for row in ordered]
    return said + [f"* {note}" for note in (*body["notes"], *whys(body))]


def marked(cell: Mapping[str, Any] | None, own: bool) -> list[str]:
    """A cell of the Markdown table, or two where the method is personal."""
    if cell is None:
        return ["–"] * (1 + own)
    epsilon = "no ε" if cell["epsilon"] is None else f"ε {cell['epsilon']:.3g}"
    here = f"{percent(cell, '')} ({100 * cell['reported']:.2f}), {epsilon}"
    return [here, percent(cell, "-personal")] if own else [here]
