"""The ledger adds up the releases of a run. For each view it returns the ε of the worst client."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from engine.errors import refusal
from engine.privacy.charges import Charges
from engine.privacy.sums import Ids
from engine.privacy.worst_case import Accountant, WorstCase
from engine.records import VIEWS, Release, View


@dataclass(frozen=True)
class LedgerEpsilon:
    """The ε of one view, with the assumptions that every display of it must name. None: it is not finite."""

    view: View
    epsilon: float | None
    unit: str
    adjacency: str
    delta: float
    accountant: Accountant
    sampling: str
    bound: str = ""
    reason: str = ""
    worst: int | None = None  # the client with the largest ε; None: it is equal for all
    quantiles: tuple[float, ...] = ()


class Ledger:
    """All releases of a run so far. The ε of a view is that of its worst client.

    A client is never charged in its own view as an observer: it already has its own data.
    """

    def __init__(self, clients: int, delta: float) -> None:
        if clients < 1:
            raise refusal("ledger: clients", "must be at least 1", clients)
        if not 0 < delta < 1:
            raise refusal("ledger: delta", "must be above 0 and below 1", delta)
        self.clients = clients
        self.delta = delta
        self._charges: dict[View, Charges] = {}

    @property
    def views(self) -> tuple[View, ...]:
        """The views that have releases, in their fixed order."""
        return tuple(view for view in VIEWS if view in self._charges)

    def add(self, releases: Iterable[Release]) -> None:
        """Charge the releases of one round."""
        indices: dict[tuple[int, ...], Ids | None] = {}  # the views of one round share their cohort
        for release in releases:
            charges = self._charges.get(release.view)
            if charges is None:
                charges = Charges(release.view, self.clients, (release.unit, release.adjacency))
                self._charges[release.view] = charges
            for ids in (release.clients, release.observers):
                if ids is not None and ids not in indices:
                    indices[ids] = self._indices(ids)
            clients = None if release.clients is None else indices[release.clients]
            observers = None if release.observers is None else indices[release.observers]
            charges.add(release, clients, observers)

    def _indices(self, ids: tuple[int, ...]) -> Ids | None:
        """Client ids as an index array; None if they are all clients."""
        extremes = (min(ids), max(ids)) if ids else ()
        for client in extremes:
            if not 0 <= client < self.clients:
                raise refusal("ledger: client", f"must be between 0 and {self.clients - 1}", client)
        if len(set(ids)) != len(ids):
            raise refusal("ledger: clients", "must name each client once", str(ids))
        return None if len(ids) == self.clients else np.array(ids, dtype=np.intp)

    def answer(self, view: View, precise: bool = False, quantiles: bool = False) -> LedgerEpsilon:
        """The ε of the worst client, by the exact formula or by Rényi. `precise` computes PRV as well.

        `quantiles` are over clients. In the `client` view, if observers differ, they are over observers: each counts
        with the client that has the largest ε in its view.
        """
        charges = self._charges.get(view)
        if charges is None:
            reason = "nothing was released"
            return LedgerEpsilon(view, 0.0, "user", "zero-out", self.delta, "none", "all", reason=reason)
        rows = charges.rows()
        laws = tuple(charges.laws)
        result = self._without_releases(charges, rows.merged)
        if not len(rows.client):
            return result
        worst_case = WorstCase(rows, laws, self.delta)
        row, epsilon, accountant = worst_case.worst_of_record() if precise else worst_case.worst()
        result = replace(result, worst=None if charges.equal_for_all else int(rows.client[row]))
        if not math.isfinite(epsilon):
            reason = self._reason(charges, worst_case, row)
            return replace(result, epsilon=None, accountant="none", reason=reason)
        if "fixed" in charges.samplings and charges.laws:
            reason = (
                "exactly K of the N clients were drawn in each round, and no ε is proven for that; "
                f"Poisson sampling would give {epsilon:.3g}, for orientation"
            )
            return replace(result, epsilon=None, accountant="none", reason=reason)
        spread: tuple[float, ...] = ()
        if quantiles:
            spread = WorstCase(charges.rows(each=True), laws, self.delta).quantiles(epsilon)
        return replace(result, epsilon=epsilon, accountant=accountant, quantiles=spread)

    def _without_releases(self, charges: Charges, merged: bool) -> LedgerEpsilon:
        """The assumptions of a view, with an ε of 0."""
        unit, adjacency = charges.protection
        sampling = " + ".join(sorted(charges.samplings - {"all"})) or "all"
        bounds = set(charges.bounds)
        if merged:
            bounds.add("upper bound")
        bound = " + ".join(sorted(bounds - {""}))
        return LedgerEpsilon(charges.view, 0.0, unit, adjacency, self.delta, "exact", sampling, bound)

    def _reason(self, charges: Charges, worst_case: WorstCase, row: int) -> str:
        """Why a row has no finite ε."""
        if worst_case.without_noise[row] > 0:
            return "; ".join(charges.no_noise_reasons)
        if worst_case.exhausted[row]:
            spent = self.delta - worst_case.left[row]
            return f"the δ of its releases adds up to {spent:.3g}, which leaves nothing of δ = {self.delta:g}"
        return "no order of its Rényi curve gives a finite number"

    def answers(self, precise: bool = False, quantiles: bool = False) -> tuple[LedgerEpsilon, ...]:
        """The answer of every view that has releases."""
        return tuple(self.answer(view, precise, quantiles) for view in self.views)

    def copy(self) -> Ledger:
        copy = Ledger(self.clients, self.delta)
        copy._charges = {view: charges.copy() for view, charges in self._charges.items()}
        return copy

    def with_releases(self, releases: Iterable[Release]) -> Ledger:
        """A copy with these releases added."""
        copy = self.copy()
        copy.add(releases)
        return copy

    def exceeds(self, view: View, budget: float) -> bool:
        """Whether the number of record is above the budget. While Rényi is within it, PRV is not computed."""
        answer = self.answer(view)
        if answer.accountant == "rdp" and answer.epsilon is not None and answer.epsilon > budget:
            answer = self.answer(view, precise=True)
        return answer.epsilon is None or not answer.epsilon <= budget
