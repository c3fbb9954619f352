"""Every generator of a run, derived from (seed, purpose, round, client): results never depend on scheduling."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import torch

# torch keeps only 32 bits of a seed: streams would meet by chance, and an attacker could try them all. So every word
# of the Mersenne Twister's state is drawn; in torch's state they stand as 64-bit numbers after a head of 24 bytes.
WORDS, FIRST = 624, 24
FRESH = torch.Generator().manual_seed(0).get_state().numpy()


@dataclass(frozen=True)
class Seeds:
    """One number, and from it every stream of chance of a run."""

    seed: int

    def rng(self, purpose: str, *place: int) -> torch.Generator:
        """A fresh generator for one purpose at one place, the same at every call."""
        text = ":".join([str(self.seed), purpose, *map(str, place)])
        words = np.frombuffer(hashlib.shake_256(text.encode()).digest(4 * WORDS), dtype=np.uint32)
        state = FRESH.copy()
        state[FIRST : FIRST + 8 * WORDS].view(np.uint64)[:] = words
        generator = torch.Generator()
        generator.set_state(torch.from_numpy(state))
        return generator

    def cohort(self, round: int, clients: int, sampled: int, sampling: str) -> tuple[int, ...]:
        """The clients of a round, by id; under Poisson sampling there may be any number of them, none included."""
        if sampling == "all":
            return tuple(range(clients))
        rng = self.rng("cohort", round)
        if sampling == "fixed":
            return tuple(sorted(torch.randperm(clients, generator=rng)[:sampled].tolist()))
        drawn = torch.rand(clients, generator=rng, dtype=torch.float64) < sampled / clients
        return tuple(torch.nonzero(drawn).flatten().tolist())
