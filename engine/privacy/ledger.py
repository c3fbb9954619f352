"""Home of the ledger: it adds up the releases of a run, and answers per view what the worst client has paid."""

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
    """The ε of one view with the words that must stand beside it; None means that there is no finite number."""

    view: View
    epsilon: float | None
    unit: str
    adjacency: str
    delta: float
    accountant: Accountant
    sampling: str
    bound: str = ""
    reason: str = ""
    worst: int | None = None  # the client that pays most; None: all pay the same
    quantiles: tuple[float, ...] = ()


class Ledger:
    """Who paid what so far. The headline of a view is its worst client; as an observer a client never pays itself."""

    def __init__(self, clients: int, delta: float) -> None:
        if clients < 1:
            raise refusal("ledger: clients", "must be at least 1", clients)
        if not 0 < delta < 1:
            raise refusal("ledger: delta", "must be above 0 and below 1", delta)
        self.clients, self.delta = clients, delta
        self._books: dict[View, Charges] = {}

    @property
    def views(self) -> tuple[View, ...]:
        """The views that were told of, in their fixed order."""
        return tuple(view for view in VIEWS if view in self._books)

    def add(self, releases: Iterable[Release]) -> None:
        """Charge the releases of one round."""
        known: dict[tuple[int, ...], Ids | None] = {}  # views of one round share their cohort
        for release in releases:
            book = self._books.get(release.view)
            if book is None:
                book = Charges(release.view, self.clients, (release.unit, release.adjacency))
                self._books[release.view] = book
            for ids in (release.clients, release.observers):
                if ids is not None and ids not in known:
                    known[ids] = self._indices(ids)
            clients = None if release.clients is None else known[release.clients]
            observers = None if release.observers is None else known[release.observers]
            book.add(release, clients, observers)

    def _indices(self, ids: tuple[int, ...]) -> Ids | None:
        """Client ids as an index; None where they are everybody."""
        for one in (min(ids), max(ids)) if ids else ():
            if not 0 <= one < self.clients:
                raise refusal("ledger: client", f"must be between 0 and {self.clients - 1}", one)
        if len(set(ids)) != len(ids):
            raise refusal("ledger: clients", "must name each client once", str(ids))
        return None if len(ids) == self.clients else np.array(ids, dtype=np.intp)

    def answer(self, view: View, precise: bool = False, quantiles: bool = False) -> LedgerEpsilon:
        """What the worst client has paid, exactly or by Rényi; `precise` asks PRV as well.

        `quantiles` are over clients; in the `client` view, where observers differ, over observers,
        each with the client that pays it most.
        """
        book = self._books.get(view)
        if book is None:
            return LedgerEpsilon(
                view, 0.0, "user", "zero-out", self.delta, "none", "all", reason="nothing was released"
            )
        rows, laws = book.rows(), tuple(book.laws)
        said = self._words(book, rows.merged)
        if not len(rows.client):
            return said
        price = WorstCase(rows, laws, self.delta)
        row, epsilon, accountant = price.worst_of_record() if precise else price.worst()
        said = replace(said, worst=None if book.one_for_all else int(rows.client[row]))
        if not math.isfinite(epsilon):
            return replace(said, epsilon=None, accountant="none", reason=self._reason(book, price, row))
        if "fixed" in book.samplings and book.laws:
            reason = (
                "exactly K of the N clients were drawn in each round, and no ε is proven for that; "
                f"Poisson sampling would give {epsilon:.3g}, for orientation"
            )
            return replace(said, epsilon=None, accountant="none", reason=reason)
        spread = WorstCase(book.rows(each=True), laws, self.delta).quantiles(epsilon) if quantiles else ()
        return replace(said, epsilon=epsilon, accountant=accountant, quantiles=spread)

    def _words(self, book: Charges, merged: bool) -> LedgerEpsilon:
        """What stands beside the number; the number itself is that of no release at all."""
        unit, adjacency = book.words
        sampling = " + ".join(sorted(book.samplings - {"all"})) or "all"
        bound = " + ".join(sorted((book.bounds | ({"upper bound"} if merged else set())) - {""}))
        return LedgerEpsilon(book.view, 0.0, unit, adjacency, self.delta, "exact", sampling, bound)

    def _reason(self, book: Charges, price: WorstCase, row: int) -> str:
        if price.clear[row] > 0:
            return "; ".join(book.whys)
        if price.exhausted[row]:
            spent = self.delta - price.left[row]
            return f"the δ of its releases adds up to {spent:.3g}, which leaves nothing of δ = {self.delta:g}"
        return "no order of its Rényi curve gives a finite number"

    def answers(self, precise: bool = False, quantiles: bool = False) -> tuple[LedgerEpsilon, ...]:
        return tuple(self.answer(view, precise, quantiles) for view in self.views)

    def copy(self) -> Ledger:
        twin = Ledger(self.clients, self.delta)
        twin._books = {view: book.copy() for view, book in self._books.items()}
        return twin

    def with_releases(self, releases: Iterable[Release]) -> Ledger:
        """A ledger with these releases added; this one stays as it is."""
        twin = self.copy()
        twin.add(releases)
        return twin

    def exceeds(self, view: View, budget: float) -> bool:
        """Whether the number of record is above the budget; it passes at once while Rényi is within."""
        answer = self.answer(view)
        if answer.accountant == "rdp" and answer.epsilon is not None and answer.epsilon > budget:
            answer = self.answer(view, precise=True)
        return answer.epsilon is None or not answer.epsilon <= budget
