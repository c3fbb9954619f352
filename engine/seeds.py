"""The random generators of a run. Each is derived from (seed, purpose, round, client).

So results never depend on the order in which clients are scheduled.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import torch

# torch keeps only 32 bits of a seed. Two streams could then coincide, and an attacker could try every seed and subtract
# the noise. So all words of the Mersenne Twister's state are drawn, which keeps the noise unpredictable.
STATE_WORDS = 624
HEADER_BYTES = 24  # in torch's state; after it, each word is a 64-bit number
INITIAL_STATE = torch.Generator().manual_seed(0).get_state().numpy()


@dataclass(frozen=True)
class Seeds:
    """The seed of a run, from which all its random streams are derived."""

    seed: int

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

    def cohort(self, round: int, clients: int, sampled: int, sampling: str) -> tuple[int, ...]:
        """The ids of a round's clients, sorted. Under Poisson sampling their number varies and may be 0."""
        if sampling == "all":
            return tuple(range(clients))
        rng = self.rng("cohort", round)
        if sampling == "fixed":
            return tuple(sorted(torch.randperm(clients, generator=rng)[:sampled].tolist()))
        drawn = torch.rand(clients, generator=rng, dtype=torch.float64) < sampled / clients
        return tuple(torch.nonzero(drawn).flatten().tolist())
