"""Home of the third accountant: PRV, for the number of record; Opacus' own, with a quicker mean."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from engine.privacy.accountant import curve, epsilon_rdp
from engine.records import Gaussian

History = Sequence[tuple[float, float, int]]  # (noise multiplier, rate, steps)

PRV_LIMIT = 50.0  # above this Rényi ε, PRV hangs or answers infinity: callers ask it below only
PRV_ERROR = 0.01  # asked of PRV, less where ε is small; found: at most 0.0115 above the truth
PRV_FINEST = 1e-4  # an ε near 0 would ask for a grid that takes seconds
PRV_POINTS = 2**23  # the most grid points PRV is given, over all laws of a history
PRV_DELTA = 1e-12  # below this δ, rounding in the Fourier transform reaches the answer
NODES, SHARES = np.polynomial.legendre.leggauss(48)

_ONE_AT_A_TIME = threading.Lock()  # the warning filter belongs to the whole process


def epsilon_prv(history: History, delta: float) -> float | None:
    """The ε of Opacus' PRV accountant, or None where it has no trustworthy answer."""
    steps = [(z, rate, count) for z, rate, count in history if count > 0 and rate > 0]
    if not steps:
        return 0.0
    if delta < PRV_DELTA or min(z for z, _, _ in steps) <= 0:
        return None
    with _ONE_AT_A_TIME, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            epsilon = _composed(tuple(steps), delta)
        except (ArithmeticError, IndexError, MemoryError, RuntimeError, ValueError):
            return None
    return max(epsilon, 0.0) if math.isfinite(epsilon) else None


@lru_cache(maxsize=1024)
def _composed(history: tuple[tuple[float, float, int], ...], delta: float) -> float:
    from opacus.accountants.analysis import prv

    slack, total = delta / 1000, sum(count for _, _, count in history)
    vectors = np.array([curve(Gaussian(z, rate)) for z, rate, _ in history])  # (laws, orders)
    spent = np.array([count for _, _, count in history]) @ vectors
    reach = 3 + max(float(epsilon_rdp(spent, slack / 4)), *epsilon_rdp(vectors, slack / 8 / total))
    spread = math.sqrt(total * math.log(12 / slack) / 2)
    least = 2 * reach * spread * len(history) / PRV_POINTS
    error = min(PRV_ERROR, max(float(epsilon_rdp(spent, delta)) / 50, PRV_FINEST, least))
    if not least <= error:
        return math.inf
    width = error / spread
    size = 2 * int(next_fast_len(math.ceil(reach / width) + 1, real=True))  # even, and quick to transform
    domain = prv.Domain(-(size // 2 - 1) * width, size // 2 * width, size)  # zero lies on it
    laws = [prv.PoissonSubsampledGaussianPRV(rate, z) for z, rate, _ in history]
    parts = [_discretized(_truncated(law, reach), domain) for law in laws]
    counts = [count for _, _, count in history]
    composed = prv.DiscretePRV(_sum([part.pmf for part in parts], counts), domain.shift_right(_shift(parts, counts)))
    return float(composed.compute_epsilon(delta, slack, error)[2])


def _discretized(part: Any, domain: Any) -> Any:
    """As Opacus does it; but where one step ends the next begins, and each edge is asked for once."""
    from opacus.accountants.analysis import prv

    edges = np.append(domain.ts - domain.dt / 2, domain.t_max + domain.dt / 2)
    density = np.diff(part.cdf(edges))
    shift = part.mean() - float(domain.ts @ density)
    if abs(shift) >= domain.dt / 2:
        raise RuntimeError("the grid moves the mean by more than half a step")
    return prv.DiscretePRV(density, domain.shift_right(shift))


def _sum(densities: Sequence[Any], counts: Sequence[int]) -> Any:
    """The density of the sum of all losses, each so many times, round the circle of the grid: one way there and back.

    What goes round lies beyond the reach, and the slack covers it.
    """
    size, total = len(densities[0]), sum(counts)
    product = math.prod(rfft(density) ** count for density, count in zip(densities, counts, strict=True))
    # zero stands one place before the middle: of a sum of n it stands where n times that comes to
    return np.roll(irfft(product, size), (total - 1) * (1 - size // 2))


def _shift(parts: Sequence[Any], counts: Sequence[int]) -> float:
    return float(sum(part.domain.shifts * count for part, count in zip(parts, counts, strict=True)))


def _truncated(law: Any, reach: float) -> Any:
    from opacus.accountants.analysis import prv

    part = prv.TruncatedPrivacyRandomVariable(law, -reach, reach)
    setattr(part, "mean", partial(_mean, part, law.sample_rate, reach))  # noqa: B010
    return part


def _mean(part: Any, rate: float, reach: float) -> float:
    """The mean of a truncated loss, by Gauss between points that crowd around 0 and around its least value.

    The adaptive rule of Opacus asks for one point at a time, and takes fifty times as long.
    """
    decades = np.geomspace(1e-6, reach, 30)
    points = np.concatenate([-decades, [0.0], decades])
    if rate < 1:
        points = np.concatenate([points, math.log1p(-rate) + np.append(0.0, decades)])
    edges = np.unique(np.clip(points, -reach, reach))
    half = np.diff(edges) / 2
    t = (edges[:-1] + half)[:, None] + half[:, None] * NODES  # (parts, nodes)
    return reach - float((part.cdf(t) @ SHARES) @ half)
