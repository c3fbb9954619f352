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
    """What is on the slide of these attacks: the picture that the protections together gave away most of.

    `cells` are all attacks on the upload, so that all of its slides have the same picture.
    """
    ended = [cell for cell in cells if cell.done]
    every = dict.fromkeys(cell.column for cell in ended)
    picture = max(pictures, key=lambda picture: _given_away(ended, list(every), picture), default=0)
    chosen = _best(ended, picture)
    return SlidePicks(picture, tuple(columns), {column: chosen[column] for column in columns if column in chosen})


def _best(cells: Sequence[AttackCell], picture: int) -> dict[str, AttackCell]:
    """The best attack against each protection, for one picture."""
    best: dict[str, AttackCell] = {}
    for cell in cells:
        if cell.verdict(picture) is None:
            continue
        known = best.get(cell.column)
        if known is None or _shown(cell, picture) > _shown(known, picture):
            best[cell.column] = cell
    return best


def _given_away(cells: Sequence[AttackCell], columns: Sequence[str], picture: int) -> tuple[int, float]:
    """How much of a picture came back against all protections, by the verdicts, then by PSNR."""
    best = _best(cells, picture)
    ranks = [rank(best[column].verdict(picture)) for column in columns if column in best]
    return sum(ranks), max((_psnr(cell, picture) for cell in best.values()), default=-math.inf)


def _shown(cell: AttackCell, picture: int) -> tuple[int, bool, float]:
    """By the verdict; of equal ones, an attack whose guesses can be followed comes first."""
    return rank(cell.verdict(picture)), len(cell.path) > 1, _psnr(cell, picture)


def _psnr(cell: AttackCell, picture: int) -> float:
    psnr = cell.psnr(picture)
    return -math.inf if psnr is None else psnr
