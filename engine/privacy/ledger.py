"""The ledger adds up the releases of a run. For each view it returns the ε of the worst client."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from engine.epsilon import Epsilon
from engine.errors import refusal
from engine.privacy.charges import Charges
from engine.privacy.sums import Ids
from engine.privacy.worst_case import WorstCase, worst_case
from engine.records import VIEWS, AllBut, Clients, Release, View
from engine.seeds import Cohort


class Ledger:
    """All releases of a run so far. The ε of a view is that of its worst client.

    A client is never charged in its own view as an observer: it already has its own data.
    """

    def __init__(self, clients: int, delta: float, in_blocks: bool = False) -> None:
        if clients < 1:
            raise refusal("ledger: clients", "must be at least 1", clients)
        if not 0 < delta < 1:
            raise refusal("ledger: delta", "must be above 0 and below 1", delta)
        self.clients = clients
        self.delta = delta
        self.in_blocks = in_blocks  # see `Sums`: quicker for many rounds before a run, not for the run itself
        self._charges: dict[View, Charges] = {}
        # By the id of a list of the last rounds: the list, which must stay alive, and its index array.
        self._known_ids: dict[tuple[int, bool], tuple[Sequence[int], Ids | None]] = {}

    @property
    def views(self) -> tuple[View, ...]:
        """The views that have releases, in their fixed order."""
        return tuple(view for view in VIEWS if view in self._charges)

    def add(self, releases: Iterable[Release]) -> None:
        """Charge the releases of one round."""
        for release in releases:
            charges = self._charges.get(release.view)
            if charges is None:
                protection = (release.unit, release.adjacency)
                charges = Charges(release.view, self.clients, protection, in_blocks=self.in_blocks)
                self._charges[release.view] = charges
            charges.add(release, self._indices(release.clients), self._indices(release.observers))

    def _indices(self, ids: Clients) -> Ids | None:
        """Client ids as an index array; None if they are all clients. The releases of a round share their tuples."""
        if ids is None:
            return None
        left_out = isinstance(ids, AllBut)
        named = ids.ids if isinstance(ids, AllBut) else ids
        key = (id(named), left_out)
        if key not in self._known_ids:
            if len(self._known_ids) > 8:
                self._known_ids.clear()
            array = self._checked(named)
            self._known_ids[key] = (named, self._others(array) if left_out else array)
        return self._known_ids[key][1]

    def _checked(self, ids: Sequence[int]) -> Ids | None:
        array = ids.array if isinstance(ids, Cohort) else np.array(ids, dtype=np.intp)
        for client in (array.min(), array.max()) if len(array) else ():
            if not 0 <= client < self.clients:
                raise refusal("ledger: client", f"must be between 0 and {self.clients - 1}", int(client))
        if not isinstance(ids, Cohort) and len(set(ids)) != len(ids):
            raise refusal("ledger: clients", "must name each client once", str(ids))
        return None if len(array) == self.clients else array

    def _others(self, left_out: Ids | None) -> Ids | None:
        """All clients except these; None if that leaves all clients."""
        if left_out is None:
            return np.zeros(0, dtype=np.intp)
        if not len(left_out):
            return None
        others = np.ones(self.clients, dtype=np.bool_)
        others[left_out] = False
        return np.flatnonzero(others)

    def answer(self, view: View, precise: bool = False, quantiles: bool = False) -> Epsilon:
        """The ε of the worst client, by the exact formula or by Rényi. `precise` computes PRV as well.

        `quantiles` are over clients. In the `client` view, if observers differ, they are over observers: each counts
        with the client that has the largest ε in its view.
        """
        charges = self._charges.get(view)
        if charges is None:
            reason = "nothing was released"
            return Epsilon(0.0, view, "user", "zero-out", self.delta, "none", "all", reason=reason)
        rows = charges.rows()
        laws = tuple(charges.laws)
        result = self._without_releases(charges, rows.merged)
        if not len(rows.client):
            return result
        case, (row, epsilon, accountant) = worst_case(rows, laws, self.delta, precise)
        result = replace(result, worst=None if charges.equal_for_all else int(rows.client[row]))
        if not math.isfinite(epsilon):
            reason = self._reason(charges, case, row)
            return replace(result, value=None, accountant="none", reason=reason)
        if "fixed" in charges.samplings and charges.laws:
            reason = (
                "exactly K of the N clients were drawn in each round, and no ε is proven for that; "
                f"Poisson sampling would give {epsilon:.3g}, for orientation"
            )
            return replace(result, value=None, accountant="none", reason=reason)
        spread: tuple[float, ...] = ()
        if quantiles:
            spread = WorstCase(charges.rows(each=True), laws, self.delta).quantiles(epsilon)
        return replace(result, value=epsilon, accountant=accountant, quantiles=spread)

    def _without_releases(self, charges: Charges, merged: bool) -> Epsilon:
        """The assumptions of a view, with an ε of 0."""
        unit, adjacency = charges.protection
        sampling = " + ".join(sorted(charges.samplings - {"all"})) or "all"
        bounds = set(charges.bounds)
        if merged:
            bounds.add("upper bound")
        bound = " + ".join(sorted(bounds - {""}))
        return Epsilon(0.0, charges.view, unit, adjacency, self.delta, "exact", sampling, bound)

    def _reason(self, charges: Charges, case: WorstCase, row: int) -> str:
        """Why a row has no finite ε."""
        if case.without_noise[row] > 0:
            return "; ".join(charges.no_noise_reasons)
        if case.exhausted[row]:
            spent = self.delta - case.left[row]
            return f"the δ of its releases adds up to {spent:.3g}, which leaves nothing of δ = {self.delta:g}"
        return "no order of its Rényi curve gives a finite number"

    def answers(self, precise: bool = False, quantiles: bool = False) -> tuple[Epsilon, ...]:
        """The answer of every view that has releases."""
        return tuple(self.answer(view, precise, quantiles) for view in self.views)

    def copy(self) -> Ledger:
        return self.with_views(self.views)

    def with_views(self, views: Sequence[View]) -> Ledger:
        """A copy with some views alone."""
        copy = Ledger(self.clients, self.delta, self.in_blocks)
        copy._charges = {view: charges.copy() for view, charges in self._charges.items() if view in views}
        return copy

    def with_noise(self, factor: float, views: Sequence[View] | None = None) -> Ledger:
        """The ledger of the same releases with `factor` times the noise, in these views or in all.

        ValueError: not every release is Gaussian.
        """
        scaled = Ledger(self.clients, self.delta, self.in_blocks)
        for view, charges in self._charges.items():
            if views is None or view in views:
                scaled._charges[view] = charges.with_noise(factor)
        return scaled

    def with_releases(self, releases: Iterable[Release]) -> Ledger:
        """A copy with these releases added."""
        copy = self.copy()
        copy.add(releases)
        return copy

    def exceeds(self, view: View, budget: float) -> bool:
        """Whether the number of record is above the budget. While Rényi is within it, PRV is not computed."""
        answer = self.answer(view)
        if answer.accountant == "rdp" and answer.value is not None and answer.value > budget:
            answer = self.answer(view, precise=True)
        return answer.value is None or not answer.value <= budget
