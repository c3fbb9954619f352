"""Every generator of a run, derived from (seed, purpose, round, client): results never depend on scheduling."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Seeds:
    """One number, and from it every stream of chance of a run."""

    seed: int

    def rng(self, purpose: str, *place: int) -> torch.Generator:
        """A fresh generator for one purpose at one place, the same at every call."""
        text = ":".join([str(self.seed), purpose, *map(str, place)])
        generator = torch.Generator()
        generator.manual_seed(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1)
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
