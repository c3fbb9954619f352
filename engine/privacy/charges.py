"""Home of the book of one view: what its releases cost, sorted by law, and who pays most before whom."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from engine.errors import refusal
from engine.privacy.accountant import Priced
from engine.privacy.sums import Amounts, Ids, Sums
from engine.records import EpsilonDeltaPair, Gaussian, Laplace, Law, NoNoise, Release, Renyi, View

CELLS = 2**24  # numbers held for pairs of clients in one view: 4096 clients squared


@dataclass(frozen=True)
class ClientCharges:
    """What one client paid before one observer, one row each; equal or smaller rows may be left out."""

    table: Amounts  # (rows, 4 + laws): mu², ε of costs, δ of costs, clear releases, then steps of each law
    client: Ids  # who pays
    group: Ids  # whose share of the quantiles it is: the observer where observers differ, else the client
    merged: bool = False  # observers were merged into one who saw everything


@dataclass
class Charges:
    """The releases of one view, added up."""

    view: View
    size: int
    words: tuple[str, str]  # unit, adjacency
    samplings: set[str] = field(default_factory=set)
    bounds: set[str] = field(default_factory=set)
    whys: dict[str, None] = field(default_factory=dict)  # in the order they were told
    laws: dict[Priced, Sums] = field(default_factory=dict)
    basic: tuple[Sums, ...] = ()  # mu² of full-rate Gaussians, ε and δ of costs, clear releases
    merged: bool = False

    def __post_init__(self) -> None:
        self.basic = self.basic or tuple(Sums(self.size) for _ in range(4))

    def add(self, release: Release, clients: Ids | None, observers: Ids | None) -> None:
        if (words := (release.unit, release.adjacency)) != self.words:
            law = f"all releases of a view must protect the same thing, here {' and '.join(self.words)}"
            raise refusal(f"ledger: {self.view}", law, " and ".join(words))
        self.samplings.add(release.sampling)
        self.bounds.add(release.bound)
        if any(ids is not None and not len(ids) for ids in (clients, observers)):
            return
        for tally, amount in self._charges(release.law):
            seen_by = observers if self.view == "client" else None
            if seen_by is not None and clients is not None and tally.pair is None and not self._room():
                seen_by, self.merged = None, True
            tally.add(amount, clients, seen_by)

    def _charges(self, law: Law) -> list[tuple[Sums, float]]:
        """Which sums a law adds to, and how much."""
        mu2, cost, lost, _ = self.basic
        if isinstance(law, Gaussian):
            _check_gaussian(law)
            if law.steps == 0 or law.rate == 0 or math.isinf(law.z):
                return []
            mu = math.sqrt(law.steps) / law.z if law.z else math.inf
            if not math.isfinite(mu * mu):
                return self._unprotected(NoNoise().why)
            return [(mu2, mu * mu)] if law.rate == 1 else [(self._law(Gaussian(law.z, law.rate)), law.steps)]
        if isinstance(law, Laplace):
            _check(law.b >= 0, "Laplace scale", "must be at least 0", law.b)
            _check_steps(law.steps)
            if law.steps == 0 or math.isinf(law.b):
                return []
            return [(self._law(Laplace(law.b)), law.steps)] if law.b else self._unprotected(NoNoise().why)
        if isinstance(law, Renyi):
            _check_renyi(law)
            return [(self._law(law), 1)]
        if isinstance(law, EpsilonDeltaPair):
            pair = (law.epsilon, law.delta)
            _check(
                law.epsilon >= 0 and 0 <= law.delta <= 1, "cost", "must have ε at least 0 and δ between 0 and 1", pair
            )
            return (
                [(cost, pair[0]), (lost, pair[1])] if math.isfinite(pair[0]) else self._unprotected("its ε is infinite")
            )
        return self._unprotected(law.why)

    def _unprotected(self, why: str) -> list[tuple[Sums, float]]:
        self.whys[why] = None
        return [(self.basic[3], 1)]

    def _law(self, law: Priced) -> Sums:
        return self.laws.setdefault(law, Sums(self.size))

    def _room(self) -> bool:
        dense = sum(tally.pair is not None for tally in self.tallies())
        return (dense + 1) * self.size**2 <= CELLS

    def tallies(self) -> tuple[Sums, ...]:
        return (*self.basic, *self.laws.values())

    @property
    def one_for_all(self) -> bool:
        """Whether everybody pays the same."""
        return not any(tally.per_client for tally in self.tallies())

    def rows(self, each: bool = False) -> ClientCharges:
        """The rows that may hold the maximum; with `each`, one or more of every group."""
        tallies = self.tallies()
        if self.view == "client" and self.size == 1:  # nobody else is there to look
            return ClientCharges(np.zeros((0, len(tallies))), np.zeros(0, np.intp), np.zeros(0, np.intp))
        only_mu2 = not any(tally.per_client for tally in tallies[1:])
        watched = any(tally.per_observer for tally in tallies)
        if watched and self.size**2 * (1 if only_mu2 else len(tallies)) <= CELLS:
            return self._largest_mu2() if only_mu2 else self._pairs(each)
        table = np.stack([tally.for_clients() for tally in tallies], axis=1)
        ids = np.arange(self.size)
        if only_mu2 and not each:  # ε grows with mu²
            ids = np.array([table[:, 0].argmax()])
        return ClientCharges(table[ids], ids, ids, merged=watched or self.merged)

    def _largest_mu2(self) -> ClientCharges:
        """For every observer the other client with the largest mu²: nothing else differs between clients."""
        mu2, *others = self.tallies()
        pairs = mu2.matrix()  # (observers, clients)
        np.fill_diagonal(pairs, -np.inf)
        ids, client = np.arange(self.size), pairs.argmax(axis=1)
        table = np.stack([pairs[ids, client], *(tally.for_observers() for tally in others)], axis=1)
        return ClientCharges(table, client, ids, self.merged)

    def _pairs(self, each: bool) -> ClientCharges:
        """Every pair; of pairs that differ in mu² only, the largest."""
        others = ~np.eye(self.size, dtype=bool)
        observer, client = np.nonzero(others)
        table = np.stack([tally.matrix()[others] for tally in self.tallies()], axis=1)  # (pairs, 4 + laws)
        kinds = np.zeros(len(table), dtype=np.intp)
        for column in [*table[:, 1:].T, *([observer] if each else [])]:
            values, found = np.unique(column, return_inverse=True)
            if len(values) > 1:
                kinds = np.unique(kinds * len(values) + found, return_inverse=True)[1]
        order = np.lexsort((-client, table[:, 0], kinds))
        last = order[np.append(np.diff(kinds[order]) != 0, True)]
        return ClientCharges(table[last], client[last], observer[last], self.merged)

    def copy(self) -> Charges:
        laws = {law: tally.copy() for law, tally in self.laws.items()}
        basic = tuple(tally.copy() for tally in self.basic)
        words = (set(self.samplings), set(self.bounds), dict(self.whys))
        return Charges(self.view, self.size, self.words, *words, laws, basic, self.merged)


def _check(holds: bool, who: str, law: str, got: object) -> None:
    if not holds:
        raise refusal(f"ledger: {who}", law, got)


def _check_steps(steps: int) -> None:
    _check(steps >= 0 and steps == int(steps), "steps", "must be a whole number, at least 0", steps)


def _check_gaussian(law: Gaussian) -> None:
    _check(law.z >= 0, "noise", "must be at least 0", law.z)
    _check(0 <= law.rate <= 1, "rate", "must be between 0 and 1", law.rate)
    _check_steps(law.steps)


def _check_renyi(law: Renyi) -> None:
    orders = np.asarray(law.orders, dtype=np.float64)
    rising = len(orders) > 0 and orders[0] > 1 and bool((np.diff(orders) > 0).all())
    matched = rising and len(law.values) == len(orders)
    _check(matched, "Rényi orders", "must rise from above 1, with one value each", law.orders)
    _check(all(value >= 0 for value in law.values), "Rényi values", "must be at least 0", law.values)
