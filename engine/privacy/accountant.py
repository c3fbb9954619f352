"""Two accountants: the exact formula for Gaussians without sampling, and Rényi for every law.

A Rényi vector has one value per order in `ORDERS`. The vector of one step is cached; many steps multiply it.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, gammaln, log_ndtr, logsumexp, ndtri

from engine.records import Gaussian, Laplace, Renyi

Vector = NDArray[np.float64]
RenyiLaw = Gaussian | Laplace | Renyi  # the laws that have a Rényi curve

ORDERS: Vector = np.unique(np.concatenate([np.arange(101, 201) / 100, np.arange(20, 111) / 10, np.arange(12, 512)]))
# The best order minus 1 spans decades, so this subset is spaced logarithmically. It ranks many clients quickly.
FEW_ORDERS: Vector = ORDERS[np.unique(np.searchsorted(ORDERS - 1, np.geomspace(0.01, 300, 30)))]

TOLERANCE = 1e-13  # of the exact formula: as small as rounding allows
SMALL_NOISE = 0.01  # below it, fractional orders are bounded by interpolation between whole orders


def curve(law: RenyiLaw) -> Vector:
    """The Rényi vector of one step of a law; infinite where no bound is known."""
    return _curve(_one_step(law), False)


def bounding_curve(law: RenyiLaw) -> Vector:
    """The same over `FEW_ORDERS`: quick, and the ε that follows from it is an upper bound."""
    return _curve(_one_step(law), True)


def _one_step(law: RenyiLaw) -> RenyiLaw:
    if isinstance(law, Gaussian):
        return Gaussian(law.z, law.rate)
    return Laplace(law.b) if isinstance(law, Laplace) else law


@lru_cache(maxsize=4096)
def _curve(law: RenyiLaw, few: bool) -> Vector:
    orders = FEW_ORDERS if few else ORDERS
    if isinstance(law, Gaussian):
        values = _gaussian(law.z, law.rate, orders)
    elif isinstance(law, Laplace):
        values = _laplace(law.b, orders)
    else:
        values = _interpolated(law, orders)
    values.flags.writeable = False
    return values


def _gaussian(z: float, rate: float, orders: Vector) -> Vector:
    if rate == 0:
        return np.zeros_like(orders)
    with np.errstate(over="ignore", divide="ignore"):
        whole_rate = orders / 2 / np.float64(z) / np.float64(z)
    if rate == 1 or not np.isfinite(whole_rate).all():
        return np.asarray(whole_rate, dtype=np.float64)
    whole = orders % 1 == 0
    moments = np.empty_like(orders)
    moments[whole] = _binomial(z, rate, orders[whole])
    if z < SMALL_NOISE:  # log moments are convex in the order, so linear interpolation is an upper bound
        known = np.concatenate([[1.0], orders[whole]])
        moments[~whole] = np.interp(orders[~whole], known, np.concatenate([[0.0], moments[whole]]))
    else:
        moments[~whole] = _quadrature(z, rate, orders[~whole])
    return np.asarray(np.minimum(np.maximum(moments, 0) / (orders - 1), whole_rate), dtype=np.float64)


def _binomial(z: float, rate: float, orders: Vector) -> Vector:
    """The log moments at whole orders, as a binomial sum (Mironov, Talwar, Zhang 2019, section 3.3)."""
    counts = np.arange(orders[-1] + 1)  # how often the client was sampled
    terms = _log_choices()[orders.astype(int), : len(counts)] + (counts * counts - counts) / (2 * z * z)
    terms += counts * math.log(rate) + np.maximum(orders[:, None] - counts, 0) * math.log1p(-rate)
    return np.asarray(logsumexp(terms, axis=1), dtype=np.float64)


@lru_cache(maxsize=1)
def _log_choices() -> Vector:
    above = np.arange(512.0)[:, None]  # (orders, 1)
    below = np.arange(512.0)  # (counts,)
    logs = gammaln(above + 1) - gammaln(below + 1) - gammaln(np.maximum(above - below, 0) + 1)
    return np.where(below <= above, logs, -np.inf)


def _quadrature(z: float, rate: float, orders: Vector) -> Vector:
    """The log moments at any order by the trapezoid rule, which is exact to rounding for such smooth functions."""
    step = z / 8 if z < 0.2 else min(z / 4, z * z)
    x = np.arange(-10 * z, orders[-1] + 10 * z, step)
    log_ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * x - 1) / (2 * z * z))
    log_weights = -((x / z) ** 2) / 2 - math.log(z * math.sqrt(2 * math.pi) / step)
    return np.asarray(logsumexp(orders[:, None] * log_ratio + log_weights, axis=1), dtype=np.float64)


def _laplace(b: float, orders: Vector) -> Vector:
    if b == 0:
        return np.full_like(orders, np.inf)
    with np.errstate(over="ignore"):
        rising = (orders - 1) / np.float64(b)
        falling = -orders / np.float64(b)
    weights = np.log([orders, orders - 1]) - np.log(2 * orders - 1)
    values = np.logaddexp(weights[0] + rising, weights[1] + falling) / (orders - 1)
    return np.asarray(np.maximum(values, 0), dtype=np.float64)


def _interpolated(law: Renyi, orders: Vector) -> Vector:
    """An upper bound from known orders: log moments are convex, so linear interpolation is above them.

    Above the largest known order there is no bound.
    """
    known = np.asarray(law.orders, dtype=np.float64)
    values = np.asarray(law.values, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        moments = np.interp(orders, [1.0, *known], [0.0, *((known - 1) * values)], right=np.inf)
    return np.asarray(np.nan_to_num(moments / (orders - 1), nan=np.inf, posinf=np.inf), dtype=np.float64)


def epsilon_rdp(vectors: ArrayLike, delta: ArrayLike, orders: Vector = ORDERS) -> Vector:
    """The smallest ε at δ over all orders (Balle et al. 2020, theorem 21). Leading axes are a batch."""
    values = np.asarray(vectors, dtype=np.float64)  # (..., orders)
    with np.errstate(divide="ignore"):
        log_delta = np.log(np.asarray(delta, dtype=np.float64))[..., None]
    per_order = values - (log_delta + np.log(orders)) / (orders - 1) + np.log1p(-1 / orders)
    least = np.maximum(per_order.min(axis=-1), 0)
    return np.asarray(np.where((values == 0).all(axis=-1), 0, least), dtype=np.float64)


def epsilon_exact(mu: float, delta: float) -> float:
    """The exact ε of Gaussians without sampling. mu is the square root of the sum of steps/z²."""
    return float(exact_epsilons(mu, delta))


def exact_epsilons(mu: ArrayLike, delta: ArrayLike) -> Vector:
    """The analytic Gaussian mechanism (Balle, Wang 2018) for many clients at once.

    With s = ε/mu - mu/2 the condition is δ = Φ(-s) - e^ε Φ(-s - mu). The second term is Φ(-s) times a ratio of Mills
    ratios, so nothing overflows. The values of s at ε = 0 and at Φ(-s) = δ bracket the root. Newton's method on log δ
    finds it; a step out of the bracket is replaced by the middle of the bracket.
    """
    mus, deltas = np.broadcast_arrays(np.asarray(mu, dtype=np.float64), np.asarray(delta, dtype=np.float64))
    solvable = np.isfinite(mus) & (mus > 0)
    size = np.where(solvable, mus, 1.0)
    log_delta = np.log(deltas)
    low = -size / 2
    high = np.maximum(-ndtri(deltas), -size / 2)
    is_zero = _log_delta_and_slope(low, size)[0] <= log_delta
    s = high
    converged = is_zero | ~solvable
    for _ in range(80):
        value, slope = _log_delta_and_slope(s, size)
        excess = value - log_delta
        low = np.where(excess > 0, s, low)
        high = np.where(excess > 0, high, s)
        with np.errstate(all="ignore"):
            next_s = s - excess / slope
        next_s = np.where((next_s >= low) & (next_s <= high), next_s, (low + high) / 2)
        close = np.abs(next_s - s) <= TOLERANCE * (np.abs(next_s) + size)
        s = np.where(converged, s, next_s)
        converged = converged | close
        if converged.all():
            break
    with np.errstate(over="ignore"):
        epsilons = np.where(is_zero, 0.0, size * (s + size / 2))
    without_solution = np.where(mus > 0, np.inf, 0.0)
    return np.asarray(np.where(solvable, epsilons, without_solution), dtype=np.float64)


def _log_delta_and_slope(s: Vector, mu: Vector) -> tuple[Vector, Vector]:
    """log δ at s, and its derivative by s."""
    with np.errstate(all="ignore"):
        ratio = erfcx((s + mu) / math.sqrt(2)) / erfcx(s / math.sqrt(2))
        ratio = np.where(np.isnan(ratio), 0.0, ratio)
        return log_ndtr(-s) + np.log1p(-ratio), -mu * ratio / (1 - ratio)
