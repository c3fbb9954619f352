"""Home of two accountants: exact for full-rate Gaussians, and Rényi for every law.

A Rényi vector has one value per order in `ORDERS`. The vector of one step is cached, and many steps are a product.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, gammaln, log_ndtr, logsumexp, ndtri

from engine.records import Gaussian, Laplace, Renyi

Vector = NDArray[np.float64]
Priced = Gaussian | Laplace | Renyi  # the laws that have a Rényi curve

ORDERS: Vector = np.unique(np.concatenate([np.arange(101, 201) / 100, np.arange(20, 111) / 10, np.arange(12, 512)]))
# The best order minus 1 spans decades; these few find the worst of many clients quickly.
FEW: Vector = ORDERS[np.unique(np.searchsorted(ORDERS - 1, np.geomspace(0.01, 300, 30)))]

NEAR = 1e-13  # of the exact formula: as near as rounding allows
FINEST = 0.01  # below this noise, fractional orders are bounded by their whole neighbours


def curve(law: Priced) -> Vector:
    """The Rényi vector of one step of a law, infinite where nothing is known."""
    return _curve(_one_step(law), False)


def bounding_curve(law: Priced) -> Vector:
    """The same over `FEW` orders: quick, and an upper bound once it becomes an ε."""
    return _curve(_one_step(law), True)


def _one_step(law: Priced) -> Priced:
    if isinstance(law, Gaussian):
        return Gaussian(law.z, law.rate)
    return Laplace(law.b) if isinstance(law, Laplace) else law


@lru_cache(maxsize=4096)
def _curve(law: Priced, few: bool) -> Vector:
    orders = FEW if few else ORDERS
    if isinstance(law, Gaussian):
        values = _gaussian(law.z, law.rate, orders)
    elif isinstance(law, Laplace):
        values = _laplace(law.b, orders)
    else:
        values = _chords(law, orders)
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
    if z < FINEST:  # log moments are convex in the order, so chords lie above them
        known = np.concatenate([[1.0], orders[whole]])
        moments[~whole] = np.interp(orders[~whole], known, np.concatenate([[0.0], moments[whole]]))
    else:
        moments[~whole] = _quadrature(z, rate, orders[~whole])
    return np.asarray(np.minimum(np.maximum(moments, 0) / (orders - 1), whole_rate), dtype=np.float64)


def _binomial(z: float, rate: float, orders: Vector) -> Vector:
    """The log moments at whole orders, term by term (Mironov, Talwar, Zhang 2019, section 3.3)."""
    taken = np.arange(orders[-1] + 1)  # how often the client was in
    terms = _log_choices()[orders.astype(int), : len(taken)] + (taken * taken - taken) / (2 * z * z)
    terms += taken * math.log(rate) + np.maximum(orders[:, None] - taken, 0) * math.log1p(-rate)
    return np.asarray(logsumexp(terms, axis=1), dtype=np.float64)


@lru_cache(maxsize=1)
def _log_choices() -> Vector:
    above, below = np.arange(512.0)[:, None], np.arange(512.0)  # (orders, taken)
    logs = gammaln(above + 1) - gammaln(below + 1) - gammaln(np.maximum(above - below, 0) + 1)
    return np.where(below <= above, logs, -np.inf)


def _quadrature(z: float, rate: float, orders: Vector) -> Vector:
    """The log moments at any order: the trapezoid rule, which is exact to rounding for such smooth bells."""
    step = z / 8 if z < 0.2 else min(z / 4, z * z)
    x = np.arange(-10 * z, orders[-1] + 10 * z, step)
    ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * x - 1) / (2 * z * z))
    bell = -((x / z) ** 2) / 2 - math.log(z * math.sqrt(2 * math.pi) / step)
    return np.asarray(logsumexp(orders[:, None] * ratio + bell, axis=1), dtype=np.float64)


def _laplace(b: float, orders: Vector) -> Vector:
    if b == 0:
        return np.full_like(orders, np.inf)
    with np.errstate(over="ignore"):
        away, back = (orders - 1) / np.float64(b), -orders / np.float64(b)
    weights = np.log([orders, orders - 1]) - np.log(2 * orders - 1)
    values = np.logaddexp(weights[0] + away, weights[1] + back) / (orders - 1)
    return np.asarray(np.maximum(values, 0), dtype=np.float64)


def _chords(law: Renyi, orders: Vector) -> Vector:
    """Between two known orders the log moment lies below its chord; beyond the last nothing is known."""
    known, values = np.asarray(law.orders, dtype=np.float64), np.asarray(law.values, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        moments = np.interp(orders, [1.0, *known], [0.0, *((known - 1) * values)], right=np.inf)
    return np.asarray(np.nan_to_num(moments / (orders - 1), nan=np.inf, posinf=np.inf), dtype=np.float64)


def epsilon_rdp(vectors: ArrayLike, delta: ArrayLike, orders: Vector = ORDERS) -> Vector:
    """The least ε at δ over all orders (Balle et al. 2020, theorem 21); leading axes are independent questions."""
    values = np.asarray(vectors, dtype=np.float64)  # (..., orders)
    with np.errstate(divide="ignore"):
        log_delta = np.log(np.asarray(delta, dtype=np.float64))[..., None]
    offered = values - (log_delta + np.log(orders)) / (orders - 1) + np.log1p(-1 / orders)
    least = np.maximum(offered.min(axis=-1), 0)
    return np.asarray(np.where((values == 0).all(axis=-1), 0, least), dtype=np.float64)


def epsilon_exact(mu: float, delta: float) -> float:
    """The ε of full-rate Gaussians, exactly: mu is the root of the sum of steps/z²."""
    return float(exact_epsilons(mu, delta))


def exact_epsilons(mu: ArrayLike, delta: ArrayLike) -> Vector:
    """The analytic Gaussian mechanism (Balle, Wang 2018) for many clients at once.

    With s = ε/mu - mu/2 the condition reads δ = Φ(-s) - e^ε Φ(-s - mu), and the second term is Φ(-s) times a ratio
    of Mills ratios: nothing overflows, and s is bracketed by its values at ε = 0 and at Φ(-s) = δ. Newton's steps on
    log δ reach it; one that leaves the bracket is replaced by its middle.
    """
    mus, deltas = np.broadcast_arrays(np.asarray(mu, dtype=np.float64), np.asarray(delta, dtype=np.float64))
    asked = np.isfinite(mus) & (mus > 0)
    size, log_delta = np.where(asked, mus, 1.0), np.log(deltas)
    low, high = -size / 2, np.maximum(-ndtri(deltas), -size / 2)
    free = _log_excess(low, size)[0] <= log_delta
    s, settled = high, free | ~asked
    for _ in range(80):
        reached, slope = _log_excess(s, size)
        over = reached - log_delta
        low, high = np.where(over > 0, s, low), np.where(over > 0, high, s)
        with np.errstate(all="ignore"):
            ahead = s - over / slope
        ahead = np.where((ahead >= low) & (ahead <= high), ahead, (low + high) / 2)
        found = np.abs(ahead - s) <= NEAR * (np.abs(ahead) + size)
        s, settled = np.where(settled, s, ahead), settled | found
        if settled.all():
            break
    with np.errstate(over="ignore"):
        epsilons = np.where(free, 0.0, size * (s + size / 2))
    return np.asarray(np.where(asked, epsilons, np.where(mus > 0, np.inf, 0.0)), dtype=np.float64)


def _log_excess(s: Vector, mu: Vector) -> tuple[Vector, Vector]:
    """log δ at s, and how fast it changes with s."""
    with np.errstate(all="ignore"):
        ratio = erfcx((s + mu) / math.sqrt(2)) / erfcx(s / math.sqrt(2))
        ratio = np.where(np.isnan(ratio), 0.0, ratio)
        return log_ndtr(-s) + np.log1p(-ratio), -mu * ratio / (1 - ratio)
