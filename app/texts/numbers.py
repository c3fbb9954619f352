"""Numbers as people write them."""

from __future__ import annotations

import math

RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def times(epsilon: float) -> str:
    """e to the ε as people say it."""
    if epsilon > math.log(1e6):
        return "10" + f"{epsilon / math.log(10):.0f}".translate(RAISED)
    grown = math.exp(epsilon)
    return f"{grown:.3g}" if grown < 100 else f"{float(f'{grown:.2g}'):,.0f}"


def tiny(value: float) -> str:
    """1e-05 as people write it."""
    return f"{value:.2g}".replace("e-0", "e-")


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def epsilon(value: float | None) -> str:
    if value is None:
        return "∞"
    return f"{value:.3g}" if value < 1000 else f"{float(f'{value:.2g}'):,.0f}"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 1:
        return "under a second"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
