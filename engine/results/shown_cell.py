"""Which attack of several is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.results.attack_summary import AttackCell, best_cell


def shown_cell(cells: Sequence[AttackCell], picture: int) -> AttackCell | None:
    """The attack that leaks most. Where all have ended and none leaks, the nearest by LPIPS.

    By PSNR a flat grey square would be the nearest, and hide the faint picture of another attack.
    """
    best = best_cell(cells, picture)
    ended = [cell for cell in cells if cell.done]
    if best is None or best.leaks(picture) or len(ended) < len(cells):
        return best

    def distance(cell: AttackCell) -> float:
        lpips = cell.number("lpips", picture)
        return math.inf if lpips is None else lpips

    return min(ended, key=distance)
