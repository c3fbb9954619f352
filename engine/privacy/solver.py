"""Home of the questions about noise: the ε of a noise multiplier, and the least noise that keeps to an ε."""

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

CALLS = 9  # answers of record that one search may cost
STEEP = 30.0  # log of the largest ratio of an ε to its target that is told apart


def solve(epsilon_at: EpsilonAt, target: float, low: float = 1e-3, high: float = 1e4, *, precise: bool = True) -> float:
    """The least noise multiplier, of four digits and rounded up, whose ε of record is at most the target.

    Not `precise`: by Rényi alone, which asks for a little more noise and answers while a slider is being moved.
    """
    _check(target > 0 and math.isfinite(target), "target ε", "must be a number above 0", target)

    def gap(noise: float, precise: bool) -> float:
        epsilon = epsilon_at(noise, precise)
        if epsilon is None:
            return STEEP
        return max(-STEEP, min(STEEP, math.log(epsilon / target))) if epsilon > 0 else -STEEP

    rough = cache(lambda log: gap(math.exp(log), False))
    over, under = _bracket(rough, math.log(low), math.log(high))
    if under == math.log(low):
        return low
    if rough(under) <= 0:
        enough = math.exp(brentq(rough, over, under, xtol=1e-6))
        if not precise:
            return _noise(_index(enough))
    elif gap(high, True) <= 0:
        enough = high
    else:
        raise _unreachable(epsilon_at(high, True), target, high)
    return _refine(partial(gap, precise=True), _index(low), _index(enough), _index(high))


def _bracket(gap: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """The logs of a noise above the goal and of one that keeps it; twice the same end where the goal lies beyond."""
    here, stride = min(max(0.0, low), high), 1.0
    while True:
        sign = 1 if gap(here) > 0 else -1
        # ε falls at least as fast as 1/noise: a step as long as the gap lands beyond the goal
        there = min(max(here + sign * stride * (abs(gap(here)) + 1e-3), low), high)
        if there == here or (gap(there) > 0) != (sign > 0):
            return (here, there) if sign > 0 else (there, here)
        here, stride = there, 2 * stride


def _unreachable(epsilon: float | None, target: float, high: float) -> BadInput:
    least = "no finite ε" if epsilon is None else f"ε = {epsilon:.3g}"
    law = f"must be within reach (the noise {high:g} gives {least})"
    return refusal("target ε", law, target, "Ask for a larger ε, for fewer rounds, or for a larger δ")


def _refine(gap: Callable[[float], float], low: int, enough: int, high: int) -> float:
    """Walk the grid of four digits down to its first noise that is enough; secants make it a short walk."""
    over: float | None = None  # the gap at `low`, once known
    under = gap(_noise(enough))
    while under > 0 and enough < high:
        low, over, enough = enough, under, enough + 1
        under = gap(_noise(enough))
    for _ in range(CALLS - 2):
        if enough - low <= 1:
            break
        # ε falls at least as fast as 1/noise, so without a gap above this lands below the goal
        share = 1.0 if over is None else under / (under - over)
        reach = -under if over is None else math.log(_noise(enough) / _noise(low))
        tried = _index(_noise(enough) * math.exp(-share * reach))
        tried = min(max(tried, low + 1), enough - 1)
        if (found := gap(_noise(tried))) > 0:
            low, over = tried, found
        else:
            enough, under = tried, found
    return _noise(enough)


def _index(noise: float) -> int:
    """The place of a noise, rounded up, on the grid of all numbers with four significant digits."""
    decade = math.floor(math.log10(noise))
    return 9000 * decade + math.ceil(noise / 10.0 ** (decade - 3) - 1e-6) - 1000


def _noise(index: int) -> float:
    decade, digits = divmod(index, 9000)
    return float(f"{digits + 1000}e{decade - 3}")


def answer_epsilon(noise: float, rate: float, steps: int, delta: float) -> dict[str, float | None]:
    """The ε of a sampled Gaussian by both accountants; at rate 1 `prv` is the exact value, None is no answer."""
    fine = _number(noise) and (noise == 0 or 1e-6 <= noise <= 1e6)
    _check(fine, "epsilon: noise", "must be 0, or a number between 0.000001 and 1000000", noise)
    _check_plan(rate, steps, delta)
    if rate == 0 or steps == 0:
        return {"prv": 0.0, "rdp": 0.0}
    if noise == 0:
        return {"prv": None, "rdp": None}
    renyi = _finite(float(epsilon_rdp(steps * curve(Gaussian(noise, rate)), delta)))
    if rate == 1:
        return {"prv": _finite(epsilon_exact(math.sqrt(steps) / noise, delta)), "rdp": renyi}
    asked = renyi is not None and renyi <= PRV_LIMIT
    return {"prv": epsilon_prv([(noise, rate, steps)], delta) if asked else None, "rdp": renyi}


def answer_noise(target: float, rate: float, steps: int, delta: float) -> float:
    """The least noise multiplier that keeps a sampled Gaussian within the target ε."""
    fine = _number(target) and 1e-12 <= target <= 1e6
    _check(fine, "epsilon: target-epsilon", "must be a number above 0 and at most 1000000", target)
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
    _check(_number(rate) and 0 <= rate <= 1, "epsilon: rate", "must be a number between 0 and 1", rate)
    whole = isinstance(steps, int) and not isinstance(steps, bool)
    _check(whole and 0 <= steps <= 10**9, "epsilon: steps", "must be a whole number between 0 and 1000000000", steps)
    _check(_number(delta) and 1e-100 <= delta < 1, "epsilon: delta", "must be at least 1e-100 and below 1", delta)


def _check(holds: bool, who: str, law: str, got: object) -> None:
    if not holds:
        raise refusal(who, law, got)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
