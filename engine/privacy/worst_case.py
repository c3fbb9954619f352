"""Home of the price of a book: the ε of its rows, and the largest of them without computing them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.privacy.accountant import (
    FEW,
    ORDERS,
    Priced,
    Vector,
    bounding_curve,
    curve,
    epsilon_rdp,
    exact_epsilons,
)
from engine.privacy.charges import ClientCharges
from engine.privacy.prv import PRV_LIMIT, epsilon_prv
from engine.privacy.sums import Amounts, Ids
from engine.records import Gaussian

Accountant = Literal["exact", "rdp", "prv", "none", "composition"]
Mask = NDArray[np.bool_]

PRV_ASKED = 4  # of the rows that Rényi ranks highest, how many PRV is asked for
DUST = 1e-9  # sums of δ may miss the budget by rounding


class WorstCase:
    """The ε of every row: exact without subsampling, Rényi otherwise, and PRV for the few that matter."""

    def __init__(self, rows: ClientCharges, laws: Sequence[Priced], delta: float) -> None:
        self.rows, self.laws = rows, laws
        self.mu2, self.cost, lost, self.clear = rows.table[:, :4].T
        self.counts: Amounts = rows.table[:, 4:]  # (rows, laws)
        self.left = delta - lost
        self.composed: Mask = (self.cost > 0) | (lost > 0)
        self.exact: Mask = (self.counts == 0).all(axis=1)
        spends = (self.mu2 > 0) | ~self.exact
        self.exhausted: Mask = np.asarray(self.left < np.where(spends, DUST, -DUST) * delta)
        self.closed: Mask = np.logical_or(self.exhausted, self.clear > 0)
        self.least = delta * DUST
        self.bounds = self._bounds()

    def _bounds(self) -> Vector:
        """At least the ε of every row; equal to it where the exact formula applies."""
        bounds = np.full(len(self.mu2), np.inf)
        exact = np.flatnonzero(self.exact & ~self.closed)
        if len(exact):
            bounds[exact] = self.cost[exact] + exact_epsilons(np.sqrt(self.mu2[exact]), self._delta(exact))
        if self.laws and not self.exact.all():
            vectors = np.stack([bounding_curve(law) for law in self.laws])
            mixed = np.flatnonzero(~self.exact & ~self.closed)
            for part in np.array_split(mixed, 1 + len(mixed) // 20_000):
                bounds[part] = self._renyi(part, self.counts[part], vectors, FEW)
        return bounds

    def _delta(self, rows: Ids) -> Vector:
        return np.asarray(np.maximum(self.left[rows], self.least), dtype=np.float64)

    def _renyi(self, rows: Ids, counts: Vector, vectors: Vector, orders: Vector) -> Vector:
        unknown = ~np.isfinite(vectors)
        total = counts @ np.where(unknown, 0, vectors) + self.mu2[rows, None] * orders / 2  # (rows, orders)
        if unknown.any():
            total[counts @ unknown > 0] = np.inf
        epsilons = epsilon_rdp(total, self._delta(rows), orders)
        return np.asarray(self.cost[rows] + epsilons, dtype=np.float64)

    def epsilons(self, rows: Ids) -> Vector:
        """The ε of these rows by the exact formula or by Rényi over all orders."""
        values = self.bounds[rows].copy()
        mixed = ~self.exact[rows] & ~self.closed[rows]
        if mixed.any():
            rows = rows[mixed]
            met = np.flatnonzero(self.counts[rows].any(axis=0))
            vectors = np.stack([curve(self.laws[one]) for one in met.tolist()])
            values[mixed] = self._renyi(rows, self.counts[rows][:, met], vectors, ORDERS)
        return values

    def worst(self) -> tuple[int, float, Accountant]:
        """The row with the largest ε, that ε and its accountant."""
        order = np.argsort(-self.bounds, kind="stable")
        row, best, start, batch = -1, -1.0, 0, 1
        while start < len(order) and self._above(order[start], best):
            part = order[start : start + batch]
            values = self.epsilons(part)
            if values.max() > best:
                row, best = int(part[values.argmax()]), float(values.max())
            start, batch = start + batch, batch * 2
        return row, best, self._accountant(row)

    def worst_of_record(self) -> tuple[int, float, Accountant]:
        """The same by the number of record, asking PRV for the few rows that can hold the maximum."""
        first, asked, smaller = self.worst()[0], 0, np.zeros(len(self.bounds), dtype=np.bool_)
        sure = np.flatnonzero(self.exact)
        row = int(sure[self.bounds[sure].argmax()]) if len(sure) else -1
        best = float(self.bounds[row]) if row >= 0 else -1.0
        accountant = self._accountant(row)
        for one in map(int, [first, *np.argsort(-self.bounds, kind="stable")]):
            if asked == PRV_ASKED or not self._above(one, best):
                break
            if self.exact[one] or smaller[one] or self.epsilons(np.array([one]))[0] <= best:
                continue
            value, name = self.of_record(one)
            smaller |= (self.rows.table <= self.rows.table[one]).all(axis=1)
            asked += name == "prv"
            if value > best:
                row, best, accountant = one, value, name
        return row, best, accountant

    def _above(self, row: int, best: float) -> bool:
        return bool(self.bounds[row] * (1 + DUST) > best)

    def of_record(self, row: int) -> tuple[float, Accountant]:
        """The number of record of one row: PRV where it has an answer, Rényi where PRV fails or says more."""
        renyi, name = float(self.epsilons(np.array([row]))[0]), self._accountant(row)
        met = [(self.laws[one], round(self.counts[row, one])) for one in np.flatnonzero(self.counts[row]).tolist()]
        if name != "rdp" or renyi > PRV_LIMIT or not all(isinstance(law, Gaussian) for law, _ in met):
            return renyi, name
        history = [(law.z, law.rate, steps) for law, steps in met if isinstance(law, Gaussian)]
        if self.mu2[row] > 0:
            history.append((1 / float(np.sqrt(self.mu2[row])), 1.0, 1))
        prv = epsilon_prv(history, float(self.left[row]))
        return (renyi, name) if prv is None or prv >= renyi else (prv, "prv")

    def _accountant(self, row: int) -> Accountant:
        if self.composed[row]:
            return "composition"
        return "exact" if self.exact[row] else "rdp"

    def quantiles(self, worst: float) -> tuple[float, ...]:
        """Least, quarter, median, three quarters and most over the groups; none counts more than the headline."""
        few = len(self.laws) <= 16 and len(self.bounds) <= 4096
        values = self.epsilons(np.arange(len(self.bounds))) if few else self.bounds
        _, group = np.unique(self.rows.group, return_inverse=True)
        most = np.zeros(group.max(initial=0) + 1)
        np.maximum.at(most, group, np.minimum(values, worst))
        return tuple(float(value) for value in np.quantile(most, [0, 0.25, 0.5, 0.75, 1]))
