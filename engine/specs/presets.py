"""Presets: specs with a name, from the files in assets/presets and from the cells of paper tables."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

from engine.environment import ROOT
from engine.errors import BadInput, Damaged, LeakLensError, UnknownName, shown
from engine.specs import paper_tables

FOLDER = ROOT / "assets" / "presets"


def read_preset(name: str) -> dict[str, Any]:
    """The fields of a preset: of a file, or else of a cell of a paper's table."""
    files = sorted(path.stem for path in FOLDER.glob("*.json"))
    if name in files:
        return read_spec_file(FOLDER / f"{name}.json")
    cells = cell_names()
    if name in cells:
        return cell_preset(name)
    similar = difflib.get_close_matches(name, [*files, *cells], n=3)
    hint = f"Did you mean {', '.join(similar)}? " if similar else ""
    known = ", ".join(files) or "none yet"
    others = "`python3 -m engine list tables` lists those of the tables"
    raise UnknownName(f"preset: no {shown(name)}", f"{hint}Known here: {known}; {others}")


def read_spec_file(path: Path) -> dict[str, Any]:
    """The fields of a spec in a JSON file."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"spec: {path}: {error.strerror or error}", "Name a file that can be read") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"spec: {path}: is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise BadInput(f"spec: {path}: must be an object of fields")
    return values


def read_checked(path: Path) -> None:
    """Damaged if the file holds no spec of a run."""
    from engine.specs.run import RunSpec

    try:
        RunSpec(**read_spec_file(path))
    except LeakLensError as error:
        raise Damaged(f"presets: {path.name}: {error.message}", "Restore this file from the repository") from None


def cell_names() -> tuple[str, ...]:
    """The preset names of all tables: each cell at each scale in each reading."""
    return tuple(paper_tables.cells_by_name(paper_tables.FILES))


def cell_preset(name: str) -> dict[str, Any]:
    """The fields of one cell of a table."""
    cell = paper_tables.cells_by_name(paper_tables.FILES).get(name)
    if cell is None:
        raise UnknownName(f"preset: no {shown(name)}", "`python3 -m engine list tables` lists them")
    return cell.values()
