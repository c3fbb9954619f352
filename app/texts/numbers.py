"""Functions that format numbers for people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.errors import plain_number

RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def tiny(value: float) -> str:
    """A small number without a padded exponent: 1e-5, not 1e-05."""
    return f"{value:.2g}".replace("e-0", "e-")


def percent(share: float | None) -> str:
    """A fraction as a percentage, and a dash for None."""
    return "–" if share is None else f"{100 * share:.1f} %"


def epsilon(value: float | None) -> str:
    """An ε with three digits (two from 1,000 on), and ∞ for None. Rounded up: a promise is never shown too small."""
    if value is None:
        return "∞"
    if value <= 0:
        return plain_number(value)
    digits = 3 if value < 1000 else 2
    step = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    rounded = math.ceil(value / step - 1e-9) * step
    return f"{rounded:.3g}" if rounded < 1000 else _two_digits(rounded)


def ratio(value: float) -> str:
    """A ratio with two digits and without an exponent: 500, not 5e+02."""
    return _two_digits(value) if value >= 10 else plain_number(float(f"{value:.2g}"))


def _two_digits(value: float) -> str:
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}"


def duration(seconds: float | None) -> str:
    """A time in seconds, minutes or hours. Empty for None."""
    if seconds is None:
        return ""
    if seconds < 1:
        return "under a second"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def joined(names: Sequence[str]) -> str:
    """Names as people list them: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
