"""The ε of a noise multiplier, and the least noise multiplier that keeps a target ε."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial

from scipy.optimize import brentq

from engine.errors import BadInput, refusal
from engine.privacy.accountant import curve, epsilon_exact, epsilon_rdp
from engine.privacy.prv import PRV_LIMIT, epsilon_prv
from engine.records import Gaussian

EpsilonAt = Callable[[float, bool], float | None]  # (noise, precise) -> ε; precise: the number of record

CALLS = 9  # how often one search may compute the number of record
LOG_LIMIT = 30.0  # the log of ε / target is clamped to this


def solve(epsilon_at: EpsilonAt, target: float, low: float = 1e-3, high: float = 1e4, *, precise: bool = True) -> float:
    """The least noise multiplier whose ε of record is at most the target, rounded up to four digits.

    Without `precise`, only Rényi is used: the noise is slightly larger, and the search is fast enough for a slider.
    """
    _check(target > 0 and math.isfinite(target), "target ε", "must be a number above 0", target)

    def gap(noise: float, precise: bool) -> float:
        epsilon = epsilon_at(noise, precise)
        if epsilon is None:
            return LOG_LIMIT
        if not epsilon > 0:
            return -LOG_LIMIT
        return max(-LOG_LIMIT, min(LOG_LIMIT, math.log(epsilon / target)))

    rough_gap = cache(lambda log: gap(math.exp(log), False))
    below, enough_log = _bracket(rough_gap, math.log(low), math.log(high))
    if enough_log == math.log(low):
        return low
    if rough_gap(enough_log) <= 0:
        enough = math.exp(brentq(rough_gap, below, enough_log, xtol=1e-6))
        if not precise:
            return _noise(_index(enough))
    elif gap(high, True) <= 0:
        enough = high
    else:
        raise _unreachable(epsilon_at(high, True), target, high)
    return _refine(partial(gap, precise=True), _index(low), _index(enough), _index(high))


def _bracket(gap: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """The logs of a noise that is too small and of one that is enough.

    If the target is outside the range, both are the same end of it.
    """
    log = min(max(0.0, low), high)
    stride = 1.0
    while True:
        sign = 1 if gap(log) > 0 else -1
        # ε falls at least as fast as 1/noise, so a step as long as the gap passes the target
        next_log = min(max(log + sign * stride * (abs(gap(log)) + 1e-3), low), high)
        if next_log == log or (gap(next_log) > 0) != (sign > 0):
            return (log, next_log) if sign > 0 else (next_log, log)
        log = next_log
        stride = 2 * stride


def _unreachable(epsilon: float | None, target: float, high: float) -> BadInput:
    least = "no finite ε" if epsilon is None else f"ε = {epsilon:.3g}"
    rule = f"must be within reach (the noise {high:g} gives {least})"
    return refusal("target ε", rule, target, "Set a larger ε, fewer rounds or a larger δ")


def _refine(gap: Callable[[float], float], low: int, enough: int, high: int) -> float:
    """The first noise that is enough on the grid of four digits, found by the secant method in a few steps."""
    gap_low: float | None = None  # the gap at `low`, once computed
    gap_enough = gap(_noise(enough))
    while gap_enough > 0 and enough < high:
        low = enough
        gap_low = gap_enough
        enough += 1
        gap_enough = gap(_noise(enough))
    for _ in range(CALLS - 2):
        if enough - low <= 1:
            break
        # ε falls at least as fast as 1/noise, so without a gap above, this step passes the target
        share = 1.0 if gap_low is None else gap_enough / (gap_enough - gap_low)
        reach = -gap_enough if gap_low is None else math.log(_noise(enough) / _noise(low))
        index = _index(_noise(enough) * math.exp(-share * reach))
        index = min(max(index, low + 1), enough - 1)
        gap_index = gap(_noise(index))
        if gap_index > 0:
            low = index
            gap_low = gap_index
        else:
            enough = index
            gap_enough = gap_index
    return _noise(enough)


def _index(noise: float) -> int:
    """The index of a noise, rounded up, on the grid of all numbers with four significant digits."""
    decade = math.floor(math.log10(noise))
    return 9000 * decade + math.ceil(noise / 10.0 ** (decade - 3) - 1e-6) - 1000


def _noise(index: int) -> float:
    decade, digits = divmod(index, 9000)
    return float(f"{digits + 1000}e{decade - 3}")


def sampled_gaussian_epsilon(noise: float, rate: float, steps: int, delta: float) -> dict[str, float | None]:
    """The ε of a sampled Gaussian by PRV and by Rényi. At rate 1 `prv` is the exact value. None: no finite number."""
    valid = _is_number(noise) and (noise == 0 or 1e-6 <= noise <= 1e6)
    _check(valid, "epsilon: noise", "must be 0, or a number between 0.000001 and 1000000", noise)
    _check_plan(rate, steps, delta)
    if rate == 0 or steps == 0:
        return {"prv": 0.0, "rdp": 0.0}
    if noise == 0:
        return {"prv": None, "rdp": None}
    renyi = _finite(float(epsilon_rdp(steps * curve(Gaussian(noise, rate)), delta)))
    if rate == 1:
        return {"prv": _finite(epsilon_exact(math.sqrt(steps) / noise, delta)), "rdp": renyi}
    if renyi is None or renyi > PRV_LIMIT:
        return {"prv": None, "rdp": renyi}
    return {"prv": epsilon_prv([(noise, rate, steps)], delta), "rdp": renyi}


def sampled_gaussian_noise(target: float, rate: float, steps: int, delta: float) -> float:
    """The least noise multiplier that keeps a sampled Gaussian within the target ε."""
    valid = _is_number(target) and 1e-12 <= target <= 1e6
    _check(valid, "epsilon: target-epsilon", "must be a number above 0 and at most 1000000", target)
    _check_plan(rate, steps, delta)
    if rate == 0 or steps == 0:
        return 0.0

    def epsilon_at(noise: float, precise: bool) -> float | None:
        if rate == 1:
            return _finite(epsilon_exact(math.sqrt(steps) / noise, delta))
        renyi = _finite(float(epsilon_rdp(steps * curve(Gaussian(noise, rate)), delta)))
        if not precise or renyi is None or renyi > PRV_LIMIT:
            return renyi
        prv = epsilon_prv([(noise, rate, steps)], delta)
        return renyi if prv is None else min(prv, renyi)

    return solve(epsilon_at, target)


def _check_plan(rate: float, steps: int, delta: float) -> None:
    _check(_is_number(rate) and 0 <= rate <= 1, "epsilon: rate", "must be a number between 0 and 1", rate)
    whole = isinstance(steps, int) and not isinstance(steps, bool)
    _check(whole and 0 <= steps <= 10**9, "epsilon: steps", "must be a whole number between 0 and 1000000000", steps)
    _check(_is_number(delta) and 1e-100 <= delta < 1, "epsilon: delta", "must be at least 1e-100 and below 1", delta)


def _check(valid: bool, name: str, rule: str, value: object) -> None:
    if not valid:
        raise refusal(name, rule, value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
