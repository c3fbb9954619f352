"""The random generators of a run. Each is derived from (seed, purpose, round, client).

So results never depend on the order in which clients are scheduled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import overload

import numpy as np
import torch
from numpy.typing import NDArray

# torch keeps only 32 bits of a seed. Two streams could then coincide, and an attacker could try every seed and subtract
# the noise. So all words of the Mersenne Twister's state are drawn, which keeps the noise unpredictable.
STATE_WORDS = 624
HEADER_BYTES = 24  # in torch's state; after it, each word is a 64-bit number
INITIAL_STATE = torch.Generator().manual_seed(0).get_state().numpy()


@dataclass(frozen=True)
class Seeds:
    """The seed of a run, from which all its random streams are derived."""

    seed: int
    run: str = ""  # the id of the run, which its noise streams hold too

    @classmethod
    def of_text(cls, text: str) -> Seeds:
        """Random streams of their own for a purpose: they follow from the text, and from no other seed."""
        digest = hashlib.sha256(text.encode()).digest()
        return cls(int.from_bytes(digest[:8], "big"))

    def rng(self, purpose: str, *place: int) -> torch.Generator:
        """A new generator for a purpose at a place. Equal arguments give equal streams."""
        text = ":".join([str(self.seed), purpose, *map(str, place)])
        digest = hashlib.shake_256(text.encode()).digest(4 * STATE_WORDS)
        state = INITIAL_STATE.copy()
        words = state[HEADER_BYTES : HEADER_BYTES + 8 * STATE_WORDS].view(np.uint64)
        words[:] = np.frombuffer(digest, dtype=np.uint32)
        generator = torch.Generator()
        generator.set_state(torch.from_numpy(state))
        return generator

    def noise(self, purpose: str, *place: int) -> torch.Generator:
        """A new generator for noise.

        Privacy: two runs of one seed that shared their standard normals would reveal the model without noise, as a
        weighted difference of their models. Weights, partition, cohorts and batches share theirs, so that runs with and
        without noise can be compared.
        """
        return self.rng(f"{purpose}:{self.run}", *place)

    def cohort(self, round: int, clients: int, sampled: int, sampling: str) -> Cohort:
        """The ids of a round's clients, sorted. Under Poisson sampling their number varies and may be 0."""
        if sampling == "all":
            return everyone(clients)
        rng = self.rng("cohort", round)
        if sampling == "fixed":
            return Cohort(torch.randperm(clients, generator=rng)[:sampled].sort().values.numpy())
        drawn = torch.rand(clients, generator=rng, dtype=torch.float64) < sampled / clients
        return Cohort(np.flatnonzero(drawn.numpy()))


class Cohort(Sequence[int]):
    """The ids of a round's clients, sorted, kept as an array: the ledger of 10,000 rounds makes no numbers of them."""

    __slots__ = ("array",)

    def __init__(self, array: NDArray[np.int64]) -> None:
        self.array: NDArray[np.intp] = array.astype(np.intp, copy=False)

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[int]:
        return iter(self.array.tolist())

    @overload
    def __getitem__(self, place: int) -> int: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[int, ...]: ...

    def __getitem__(self, place: int | slice) -> int | tuple[int, ...]:
        if isinstance(place, slice):
            return tuple(self.array[place].tolist())
        return int(self.array[place])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


@lru_cache(maxsize=1)
def everyone(clients: int) -> Cohort:
    """All clients: one object for all rounds."""
    return Cohort(np.arange(clients))
