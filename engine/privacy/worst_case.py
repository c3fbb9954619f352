"""The ε of each row of charges, and the largest of them without computing all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.privacy.accountant import (
    FEW_ORDERS,
    ORDERS,
    RenyiLaw,
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
Worst = tuple[int, float, Accountant]  # the row with the largest ε, that ε and its accountant

PRV_ROWS = 4  # for how many rows, ranked by Rényi, PRV is computed at most
SHARED_BYTES = 10_000  # tables up to this size are looked up among those of earlier answers
ROUNDING = 1e-9  # relative tolerance: sums of δ may miss the budget by rounding


class WorstCase:
    """The ε of every row: exact without sampling, else by Rényi, and by PRV for the few rows that matter."""

    def __init__(self, rows: ClientCharges, laws: Sequence[RenyiLaw], delta: float) -> None:
        self.rows = rows
        self.laws = laws
        self.mu2, self.cost, spent_delta, self.without_noise = rows.table[:, :4].T
        self.counts: Amounts = rows.table[:, 4:]  # (rows, laws)
        self.left = delta - spent_delta  # what the pairs leave of δ
        self.composed: Mask = (self.cost > 0) | (spent_delta > 0)
        self.exact: Mask = (self.counts == 0).all(axis=1)
        needs_delta = (self.mu2 > 0) | ~self.exact
        self.exhausted: Mask = np.asarray(self.left < np.where(needs_delta, ROUNDING, -ROUNDING) * delta)
        self.infinite: Mask = np.logical_or(self.exhausted, self.without_noise > 0)
        self.least = delta * ROUNDING
        self.bounds = self._bounds()

    def _bounds(self) -> Vector:
        """An upper bound of each row's ε. It is equal to the ε where the exact formula applies."""
        bounds = np.full(len(self.mu2), np.inf)
        exact = np.flatnonzero(self.exact & ~self.infinite)
        if len(exact):
            bounds[exact] = self.cost[exact] + exact_epsilons(np.sqrt(self.mu2[exact]), self._delta(exact))
        if self.laws and not self.exact.all():
            vectors = np.stack([bounding_curve(law) for law in self.laws])
            mixed = np.flatnonzero(~self.exact & ~self.infinite)
            for part in np.array_split(mixed, 1 + len(mixed) // 20_000):
                bounds[part] = self._renyi(part, self.counts[part], vectors, FEW_ORDERS)
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
        """The ε of these rows, by the exact formula or by Rényi over all orders."""
        values = self.bounds[rows].copy()
        mixed = ~self.exact[rows] & ~self.infinite[rows]
        if mixed.any():
            rows = rows[mixed]
            used = np.flatnonzero(self.counts[rows].any(axis=0))
            vectors = np.stack([curve(self.laws[law]) for law in used.tolist()])
            values[mixed] = self._renyi(rows, self.counts[rows][:, used], vectors, ORDERS)
        return values

    def worst(self) -> Worst:
        """The row with the largest ε."""
        order = np.argsort(-self.bounds, kind="stable")
        row = -1
        largest = -1.0
        start = 0
        batch = 1
        while start < len(order) and self._may_exceed(order[start], largest):
            part = order[start : start + batch]
            values = self.epsilons(part)
            if values.max() > largest:
                row = int(part[values.argmax()])
                largest = float(values.max())
            start += batch
            batch *= 2
        return row, largest, self._accountant(row)

    def worst_of_record(self) -> Worst:
        """The same by the number of record. PRV is computed only for the few rows that may hold the maximum."""
        first = self.worst()[0]
        prv_rows = 0
        smaller = np.zeros(len(self.bounds), dtype=np.bool_)  # no larger than a computed row in any column
        exact = np.flatnonzero(self.exact)
        row = int(exact[self.bounds[exact].argmax()]) if len(exact) else -1
        largest = float(self.bounds[row]) if row >= 0 else -1.0
        accountant = self._accountant(row)
        for candidate in map(int, [first, *np.argsort(-self.bounds, kind="stable")]):
            if prv_rows == PRV_ROWS or not self._may_exceed(candidate, largest):
                break
            if self.exact[candidate] or smaller[candidate] or self.epsilons(np.array([candidate]))[0] <= largest:
                continue
            value, name = self.of_record(candidate)
            smaller |= (self.rows.table <= self.rows.table[candidate]).all(axis=1)
            prv_rows += name == "prv"
            if value > largest:
                row, largest, accountant = candidate, value, name
        return row, largest, accountant

    def _may_exceed(self, row: int, largest: float) -> bool:
        return bool(self.bounds[row] * (1 + ROUNDING) > largest)

    def of_record(self, row: int) -> tuple[float, Accountant]:
        """The number of record of one row: the smaller of PRV and Rényi. Without a PRV result it is Rényi."""
        renyi = float(self.epsilons(np.array([row]))[0])
        name = self._accountant(row)
        used = np.flatnonzero(self.counts[row]).tolist()
        steps = [(self.laws[law], round(self.counts[row, law])) for law in used]
        if name != "rdp" or renyi > PRV_LIMIT or not all(isinstance(law, Gaussian) for law, _ in steps):
            return renyi, name
        history = [(law.z, law.rate, count) for law, count in steps if isinstance(law, Gaussian)]
        if self.mu2[row] > 0:
            history.append((1 / float(np.sqrt(self.mu2[row])), 1.0, 1))
        prv = epsilon_prv(history, float(self.left[row]))
        return (renyi, name) if prv is None or prv >= renyi else (prv, "prv")

    def _accountant(self, row: int) -> Accountant:
        if self.composed[row]:
            return "composition"
        return "exact" if self.exact[row] else "rdp"

    def quantiles(self, worst: float) -> tuple[float, ...]:
        """Minimum, quartiles and maximum over the groups. No group counts with more than `worst`, the headline ε."""
        small = len(self.laws) <= 16 and len(self.bounds) <= 4096
        values = self.epsilons(np.arange(len(self.bounds))) if small else self.bounds
        _, group = np.unique(self.rows.group, return_inverse=True)
        maxima = np.zeros(group.max(initial=0) + 1)
        np.maximum.at(maxima, group, np.minimum(values, worst))
        return tuple(float(value) for value in np.quantile(maxima, [0, 0.25, 0.5, 0.75, 1]))


def worst_case(rows: ClientCharges, laws: tuple[RenyiLaw, ...], delta: float, precise: bool) -> tuple[WorstCase, Worst]:
    """The worst row, by the number of record if `precise`.

    Equal tables have equal answers. They are frequent: in rounds without the worst client, and in runs that differ in
    their seed alone.
    """
    if rows.table.nbytes > SHARED_BYTES:
        return _worst_case(rows, laws, delta, precise)
    return shared_worst_case(rows.table.tobytes(), rows.table.shape[1], laws, delta, precise)


@lru_cache(maxsize=512)
def shared_worst_case(
    table: bytes, columns: int, laws: tuple[RenyiLaw, ...], delta: float, precise: bool
) -> tuple[WorstCase, Worst]:
    amounts = np.frombuffer(table).reshape(-1, columns)
    ids = np.arange(len(amounts))
    return _worst_case(ClientCharges(amounts, ids, ids), laws, delta, precise)


def _worst_case(
    rows: ClientCharges, laws: tuple[RenyiLaw, ...], delta: float, precise: bool
) -> tuple[WorstCase, Worst]:
    case = WorstCase(rows, laws, delta)
    return case, case.worst_of_record() if precise else case.worst()
