"""Home of the tally: one sum per pair of observer and client, which stores only the axes it was told to tell apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Amounts = NDArray[np.float64]
Ids = NDArray[np.intp]


class Sums:
    """How much each client paid before each observer; most releases touch everybody and cost one addition."""

    __slots__ = ("client", "everyone", "observer", "pair", "size")

    def __init__(self, size: int) -> None:
        self.size, self.everyone = size, 0.0
        self.client: Amounts | None = None  # (clients,)
        self.observer: Amounts | None = None  # (observers,)
        self.pair: Amounts | None = None  # (observers, clients)

    def add(self, amount: float, clients: Ids | None, observers: Ids | None = None) -> None:
        """Charge these clients before these observers; None is everybody."""
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
        """Each observer's sum, where clients do not differ: (observers,)."""
        return np.full(self.size, self.everyone) if self.observer is None else self.observer + self.everyone

    def for_clients(self) -> Amounts:
        """Each client's sum before one observer who saw at least as much as any: (clients,)."""
        total = np.full(self.size, self.everyone)
        if self.client is not None:
            total += self.client
        if self.observer is not None:
            total += self.observer.max()
        if self.pair is not None:
            total += self.pair.max(axis=0)
        return total

    def copy(self) -> Sums:
        twin = Sums(self.size)
        twin.everyone = self.everyone
        twin.client = None if self.client is None else self.client.copy()
        twin.observer = None if self.observer is None else self.observer.copy()
        twin.pair = None if self.pair is None else self.pair.copy()
        return twin
