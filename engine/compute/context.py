"""Where a client or the server works: its seat, its own chance, a way to show progress, and the team of threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.compute.threads import ThreadTeam
from engine.events import ByClass, Event
from engine.records import Seat, World
from engine.seeds import Seeds

Evaluate = Callable[[Mapping[str, Tensor]], ByClass]  # models (clients, ...) to the accuracy of each, by class
Report = (
    Event | Callable[[Evaluate], Event]
)  # what needs a judge meets one after the round: nothing flows back to a method


@dataclass
class ClientContext:
    """What `train` and `merge` may use: nothing here leaves the client but what an Upload carries."""

    world: World
    seat: Seat
    seeds: Seeds
    team: ThreadTeam
    note: Callable[[float, dict[str, float]], None] = field(default=lambda fraction, numbers: None)
    used: Tensor | None = None  # the places of the pictures that entered; None: all of them
    phase: str = ""  # of local training in several parts: each has a chance of its own
    report: Callable[[Report], None] = field(default=lambda said: None)  # what is worth knowing: told after the round

    def rng(self, purpose: str) -> torch.Generator:
        """A generator of this seat alone."""
        return self.seeds.rng(self.phase + purpose, self.seat.round, self.seat.client, self.seat.exchange)

    def progress(self, fraction: float, **numbers: float) -> None:
        """Show that long work moves; call it at fixed places, so that a replay says the same."""
        self.note(fraction, numbers)


def rngs(contexts: Sequence[ClientContext], purpose: str) -> list[torch.Generator]:
    return [context.rng(purpose) for context in contexts]
