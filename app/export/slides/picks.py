"""Which pictures of an upload are on its slide: one original, and the best guess against each protection."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.results.attack_summary import AttackCell
from engine.results.verdict import rank


@dataclass(frozen=True)
class SlidePicks:
    """The picture of a slide, and the attack to show against each protection. The verdict is of the same attacks."""

    picture: int
    columns: tuple[str, ...]
    best: Mapping[str, AttackCell]  # by column

    def place(self, column: str, cell: AttackCell | None, picture: int, first_row: bool) -> int | None:
        """The place of a guess on the slide, from 1; None if only the page has it.

        A protection without a finished attack has the cell of the first row, which says so.
        """
        chosen = self.best.get(column)
        shown = first_row if chosen is None else cell is chosen
        return self.columns.index(column) + 1 if shown and picture == self.picture else None

    def original(self, picture: int, first_row: bool) -> int | None:
        """The place of the original."""
        return 0 if first_row and picture == self.picture else None


def picks(cells: Sequence[AttackCell], columns: Sequence[str], pictures: Sequence[int]) -> SlidePicks:
    """What is on the slide of these attacks: the picture that came back best against any protection."""
    ended = [cell for cell in cells if cell.best_picture is not None]
    worst = max(ended, key=_recovery, default=None)
    first = pictures[0] if pictures else 0
    picture = first if worst is None or worst.best_picture is None else worst.best_picture
    best = {}
    for column in columns:
        known = [cell for cell in ended if cell.column == column and cell.verdict(picture) is not None]
        if known:
            best[column] = max(known, key=lambda cell: _shown(cell, picture))
    return SlidePicks(picture, tuple(columns), best)


def _recovery(cell: AttackCell) -> tuple[int, float]:
    psnr = None if cell.best_picture is None else cell.psnr(cell.best_picture)
    return rank(cell.best_verdict), -math.inf if psnr is None else psnr


def _shown(cell: AttackCell, picture: int) -> tuple[int, bool, float]:
    """By the verdict; of equal ones, an attack whose guesses can be followed comes first."""
    psnr = cell.psnr(picture)
    return rank(cell.verdict(picture)), len(cell.path) > 1, -math.inf if psnr is None else psnr
