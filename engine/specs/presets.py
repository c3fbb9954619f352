"""Requests by name: the files in assets/presets, and every cell of a paper's table."""

from __future__ import annotations

from typing import Any

from engine.errors import UnknownName, shown
from engine.specs.paper_tables import FILES, _cells


def names() -> tuple[str, ...]:
    """Of every preset: each cell at each scale in each reading."""
    return tuple(_cells(FILES))


def preset(name: str) -> dict[str, Any]:
    """The question of one cell."""
    found = _cells(FILES).get(name)
    if found is None:
        raise UnknownName(f"preset: no {shown(name)}", "`python3 -m engine list tables` names them")
    return found.question()
