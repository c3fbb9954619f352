"""Sums of charges for each pair of observer and client. An axis is stored only where its entries differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Amounts = NDArray[np.float64]
Ids = NDArray[np.intp]


class Sums:
    """One sum for each pair of observer and client. Most releases charge every pair and cost one addition."""

    __slots__ = ("client", "everyone", "observer", "pair", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.everyone = 0.0
        self.client: Amounts | None = None  # (clients,)
        self.observer: Amounts | None = None  # (observers,)
        self.pair: Amounts | None = None  # (observers, clients)

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
            if self.pair is None:
                self.pair = np.zeros((self.size, self.size))
            self.pair[observers[:, None], clients] += amount

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
    def per_client(self) -> bool:
        return self.client is not None or self.pair is not None

    @property
    def per_observer(self) -> bool:
        return self.observer is not None or self.pair is not None

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
        copy = Sums(self.size)
        copy.everyone = self.everyone
        copy.client = None if self.client is None else self.client.copy()
        copy.observer = None if self.observer is None else self.observer.copy()
        copy.pair = None if self.pair is None else self.pair.copy()
        return copy
