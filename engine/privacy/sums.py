"""Sums of charges for each pair of observer and client. An axis is stored only where its entries differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Amounts = NDArray[np.float64]
Ids = NDArray[np.intp]

BLOCK = 256  # rounds whose charges of pairs are added together
FEW_PAIRS = 100  # a release that charges fewer than this part of all pairs is quicker to add alone


class Sums:
    """One sum for each pair of observer and client. Most releases charge every pair and cost one addition.

    `in_blocks` adds the pairs of many rounds by one product: thirty times as fast for thousands of rounds, but the last
    bits depend on where a block began. A run does without: its ε must be equal to the bit after a restart.
    """

    __slots__ = ("_pair", "_waiting", "client", "everyone", "in_blocks", "observer", "size")

    def __init__(self, size: int, in_blocks: bool = False) -> None:
        self.size = size
        self.in_blocks = in_blocks
        self.everyone = 0.0
        self.client: Amounts | None = None  # (clients,)
        self.observer: Amounts | None = None  # (observers,)
        self._pair: Amounts | None = None  # (observers, clients)
        self._waiting: list[tuple[float, Ids, Ids]] = []  # charges of pairs that are not in `_pair` yet

    def add(self, amount: float, clients: Ids | None, observers: Ids | None = None) -> None:
        """Add the amount for these clients in the view of these observers. None means all."""
        if clients is None and observers is None:
            self.everyone += amount
        elif observers is None:
            if self.client is None:
                self.client = np.zeros(self.size)
            self.client[clients] += amount
        elif clients is None:
            if self.observer is None:
                self.observer = np.zeros(self.size)
            self.observer[observers] += amount
        else:
            self._add_pairs(amount, clients, observers)

    def _add_pairs(self, amount: float, clients: Ids, observers: Ids) -> None:
        if self._pair is None:
            self._pair = np.zeros((self.size, self.size))
        if not self.in_blocks or len(clients) * len(observers) * FEW_PAIRS < self.size**2:
            self._pair[observers[:, None], clients] += amount
            return
        self._waiting.append((amount, clients, observers))
        if len(self._waiting) == 2 * BLOCK:
            self._add_waiting()

    def _add_waiting(self) -> None:
        """Add the charges that wait as one product of matrices. Charges of the same clients share a row of it."""
        assert self._pair is not None
        rows = 0
        charged = np.zeros((len(self._waiting), self.size))
        amounts = np.zeros((len(self._waiting), self.size))
        previous: Ids | None = None
        for amount, clients, observers in self._waiting:
            if clients is not previous:
                rows += 1
                charged[rows - 1, clients] = 1
                previous = clients
            amounts[rows - 1, observers] += amount
        self._pair += amounts[:rows].T @ charged[:rows]
        self._waiting.clear()

    @property
    def pair(self) -> Amounts | None:
        """The sums of single pairs: (observers, clients). None: no release charged some clients for some observers."""
        if self._waiting:
            self._add_waiting()
        return self._pair

    def any(self) -> bool:
        """Whether any charge is above 0."""
        arrays = [array for array in (self.client, self.observer, self.pair) if array is not None]
        return self.everyone > 0 or any(array.any() for array in arrays)

    def scale(self, factor: float) -> None:
        """Multiply every charge."""
        self.everyone *= factor
        for array in (self.client, self.observer, self.pair):
            if array is not None:
                array *= factor

    @property
    def per_pair(self) -> bool:
        return self._pair is not None

    @property
    def per_client(self) -> bool:
        return self.client is not None or self._pair is not None

    @property
    def per_observer(self) -> bool:
        return self.observer is not None or self._pair is not None

    def matrix(self) -> Amounts:
        """Every pair: (observers, clients)."""
        total = np.full((self.size, self.size), self.everyone) if self.pair is None else self.pair + self.everyone
        if self.client is not None:
            total += self.client
        if self.observer is not None:
            total += self.observer[:, None]
        return total

    def for_observers(self) -> Amounts:
        """The sum in each observer's view, for sums that are equal for all clients: (observers,)."""
        return np.full(self.size, self.everyone) if self.observer is None else self.observer + self.everyone

    def for_clients(self) -> Amounts:
        """An upper bound of each client's sum over all observers: (clients,)."""
        total = np.full(self.size, self.everyone)
        if self.client is not None:
            total += self.client
        if self.observer is not None:
            total += self.observer.max()
        if self.pair is not None:
            total += self.pair.max(axis=0)
        return total

    def copy(self) -> Sums:
        copy = Sums(self.size, self.in_blocks)
        copy.everyone = self.everyone
        copy.client = None if self.client is None else self.client.copy()
        copy.observer = None if self.observer is None else self.observer.copy()
        copy._pair = None if self.pair is None else self.pair.copy()
        return copy
