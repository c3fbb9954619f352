"""The charges of one view: the releases of each client, summed by law, and the rows that may hold the largest ε."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from engine.errors import refusal
from engine.privacy.accountant import RenyiLaw
from engine.privacy.sums import Amounts, Ids, Sums
from engine.records import EpsilonDeltaPair, Gaussian, Laplace, Mechanism, NoNoise, Release, Renyi, View

PAIR_LIMIT = 2**24  # numbers stored for pairs of clients in one view: 4096 clients squared


@dataclass(frozen=True)
class ClientCharges:
    """The charges of clients, one row per pair of client and observer. Equal or smaller rows may be left out."""

    table: Amounts  # (rows, 4 + laws): mu², ε of pairs, δ of pairs, releases without noise, then steps of each law
    client: Ids  # the client that is charged
    group: Ids  # the group in the quantiles: the observer if observers differ, else the client
    merged: bool = False  # whether all observers were merged into one that receives everything


@dataclass
class Charges:
    """The releases of one view, added up."""

    view: View
    size: int
    protection: tuple[str, str]  # unit, adjacency
    samplings: set[str] = field(default_factory=set)
    bounds: set[str] = field(default_factory=set)
    no_noise_reasons: dict[str, None] = field(default_factory=dict)  # in the order of their first release
    laws: dict[RenyiLaw, Sums] = field(default_factory=dict)
    basic: tuple[Sums, ...] = ()  # mu² of Gaussians without sampling, ε and δ of pairs, releases without noise
    merged: bool = False
    in_blocks: bool = False  # see `Sums`

    def __post_init__(self) -> None:
        self.basic = self.basic or tuple(Sums(self.size, self.in_blocks) for _ in range(4))

    def add(self, release: Release, clients: Ids | None, observers: Ids | None) -> None:
        """Charge one release to these clients in the view of these observers. None means all."""
        protection = (release.unit, release.adjacency)
        if protection != self.protection:
            rule = f"all releases of a view must protect the same thing, here {' and '.join(self.protection)}"
            raise refusal(f"ledger: {self.view}", rule, " and ".join(protection))
        self.samplings.add(release.sampling)
        self.bounds.add(release.bound)
        if any(ids is not None and not len(ids) for ids in (clients, observers)):
            return
        for sums, amount in self._charges(release.mechanism):
            charged_observers = observers if self.view == "client" else None
            by_pair = charged_observers is not None and clients is not None
            if by_pair and not sums.per_pair and not self._has_room():
                charged_observers = None  # charges every observer, so that ε stays an upper bound
                self.merged = True
            sums.add(amount, clients, charged_observers)

    def _charges(self, law: Mechanism) -> list[tuple[Sums, float]]:
        """The sums that a law adds to, each with its amount."""
        if isinstance(law, Gaussian):
            return self._gaussian_charges(law)
        if isinstance(law, Laplace):
            return self._laplace_charges(law)
        if isinstance(law, Renyi):
            _check_renyi(law)
            return [(self._law(law), 1)]
        if isinstance(law, EpsilonDeltaPair):
            return self._pair_charges(law)
        return self._no_noise(law.reason)

    def _gaussian_charges(self, law: Gaussian) -> list[tuple[Sums, float]]:
        _check_gaussian(law)
        if law.steps == 0 or law.rate == 0 or math.isinf(law.z):
            return []
        mu = math.sqrt(law.steps) / law.z if law.z else math.inf
        if not math.isfinite(mu * mu):
            return self._no_noise(NoNoise().reason)
        if law.rate == 1:
            return [(self.basic[0], mu * mu)]
        return [(self._law(Gaussian(law.z, law.rate)), law.steps)]

    def _laplace_charges(self, law: Laplace) -> list[tuple[Sums, float]]:
        _check(law.b >= 0, "Laplace scale", "must be at least 0", law.b)
        _check_steps(law.steps)
        if law.steps == 0 or math.isinf(law.b):
            return []
        if law.b == 0:
            return self._no_noise(NoNoise().reason)
        return [(self._law(Laplace(law.b)), law.steps)]

    def _pair_charges(self, law: EpsilonDeltaPair) -> list[tuple[Sums, float]]:
        valid = law.epsilon >= 0 and 0 <= law.delta <= 1
        _check(valid, "cost", "must have ε at least 0 and δ between 0 and 1", (law.epsilon, law.delta))
        if not math.isfinite(law.epsilon):
            return self._no_noise("its ε is infinite")
        return [(self.basic[1], law.epsilon), (self.basic[2], law.delta)]

    def _no_noise(self, reason: str) -> list[tuple[Sums, float]]:
        self.no_noise_reasons[reason] = None
        return [(self.basic[3], 1)]

    def _law(self, law: RenyiLaw) -> Sums:
        return self.laws.setdefault(law, Sums(self.size, self.in_blocks))

    def _has_room(self) -> bool:
        """Whether one more matrix of all pairs fits into the limit."""
        matrices = sum(sums.pair is not None for sums in self.all_sums())
        return (matrices + 1) * self.size**2 <= PAIR_LIMIT

    def all_sums(self) -> tuple[Sums, ...]:
        """The sums in the order of the columns of `ClientCharges.table`."""
        return (*self.basic, *self.laws.values())

    @property
    def equal_for_all(self) -> bool:
        """Whether all clients have the same charges."""
        return not any(sums.per_client for sums in self.all_sums())

    def rows(self, each: bool = False) -> ClientCharges:
        """The rows that may hold the maximum; with `each`, at least one row of every group."""
        columns = self.all_sums()
        if self.view == "client" and self.size == 1:  # there is no other client that could observe
            return ClientCharges(np.zeros((0, len(columns))), np.zeros(0, np.intp), np.zeros(0, np.intp))
        only_mu2 = not any(sums.per_client for sums in columns[1:])
        by_observer = any(sums.per_observer for sums in columns)
        if by_observer and self.size**2 * (1 if only_mu2 else len(columns)) <= PAIR_LIMIT:
            return self._largest_mu2() if only_mu2 else self._pairs(each)
        table = np.stack([sums.for_clients() for sums in columns], axis=1)
        ids = np.arange(self.size)
        if only_mu2 and not each:  # ε grows with mu²
            ids = np.array([table[:, 0].argmax()])
        return ClientCharges(table[ids], ids, ids, merged=by_observer or self.merged)

    def _largest_mu2(self) -> ClientCharges:
        """For every observer, the other client with the largest mu². Clients differ in nothing else."""
        mu2, *others = self.all_sums()
        pairs = mu2.matrix()  # (observers, clients)
        np.fill_diagonal(pairs, -np.inf)
        ids = np.arange(self.size)
        client = pairs.argmax(axis=1)
        table = np.stack([pairs[ids, client], *(sums.for_observers() for sums in others)], axis=1)
        return ClientCharges(table, client, ids, self.merged)

    def _pairs(self, each: bool) -> ClientCharges:
        """Every pair; of pairs that differ only in mu², the one with the largest."""
        others = ~np.eye(self.size, dtype=bool)
        observer, client = np.nonzero(others)
        table = np.stack([sums.matrix()[others] for sums in self.all_sums()], axis=1)  # (pairs, 4 + laws)
        columns = list(table[:, 1:].T)
        if each:
            columns.append(observer)
        kinds = np.zeros(len(table), dtype=np.intp)  # pairs of one kind are equal in all these columns
        for column in columns:
            values, indices = np.unique(column, return_inverse=True)
            if len(values) > 1:
                kinds = np.unique(kinds * len(values) + indices, return_inverse=True)[1]
        order = np.lexsort((-client, table[:, 0], kinds))
        last = order[np.append(np.diff(kinds[order]) != 0, True)]
        return ClientCharges(table[last], client[last], observer[last], self.merged)

    def with_noise(self, factor: float) -> Charges:
        """The charges of the same releases with Gaussian noise that is `factor` times as large.

        It raises ValueError where a charge is known in another way than by the size of a Gaussian.
        """
        cost, spent_delta = self.basic[1], self.basic[2]
        if cost.any() or spent_delta.any() or not all(isinstance(law, Gaussian) for law in self.laws):
            raise ValueError(f"{self.view}: not every release is Gaussian")
        scaled = self.copy()
        scaled.basic[0].scale(1 / factor**2)
        scaled.laws = {}
        for law, sums in self.laws.items():
            assert isinstance(law, Gaussian)
            scaled.laws[replace(law, z=law.z * factor)] = sums.copy()
        return scaled

    def copy(self) -> Charges:
        return Charges(
            self.view,
            self.size,
            self.protection,
            set(self.samplings),
            set(self.bounds),
            dict(self.no_noise_reasons),
            {law: sums.copy() for law, sums in self.laws.items()},
            tuple(sums.copy() for sums in self.basic),
            self.merged,
            self.in_blocks,
        )


def _check(valid: bool, name: str, rule: str, value: object) -> None:
    if not valid:
        raise refusal(f"ledger: {name}", rule, value)


def _check_steps(steps: int) -> None:
    _check(steps >= 0 and steps == int(steps), "steps", "must be a whole number, at least 0", steps)


def _check_gaussian(law: Gaussian) -> None:
    _check(law.z >= 0, "noise", "must be at least 0", law.z)
    _check(0 <= law.rate <= 1, "rate", "must be between 0 and 1", law.rate)
    _check_steps(law.steps)


def _check_renyi(law: Renyi) -> None:
    orders = np.asarray(law.orders, dtype=np.float64)
    rising = len(orders) > 0 and orders[0] > 1 and bool((np.diff(orders) > 0).all())
    valid = rising and len(law.values) == len(orders)
    _check(valid, "Rényi orders", "must rise from above 1, with one value each", law.orders)
    _check(all(value >= 0 for value in law.values), "Rényi values", "must be at least 0", law.values)
