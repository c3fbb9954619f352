"""The context of a client or the server in one exchange: its seat, random streams, progress, reports and threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.compute.threads import ThreadTeam
from engine.events import ByClass, Event
from engine.records import Seat, World
from engine.seeds import Seeds

# Models (clients, ...) to the accuracy of each, by class.
Evaluate = Callable[[Mapping[str, Tensor]], ByClass]
# An event, or a function that builds one from accuracies. It is called after the round, so that no test result can
# reach a method: otherwise a method could train on test data.
Report = Event | Callable[[Evaluate], Event]


@dataclass
class ClientContext:
    """What `train` and `merge` may use. It stays with the client: only an Upload leaves.

    The accounting covers uploads alone. A value that left the client in another way would be a leak without an ε.
    """

    world: World
    seat: Seat
    seeds: Seeds
    team: ThreadTeam
    on_progress: Callable[[float, dict[str, float]], None] = field(default=lambda fraction, numbers: None)
    used: Tensor | None = None  # the indices of the examples that were used; None: all
    losses: list[float] | None = None  # of each local step, if the method asks for them; None: they are not computed
    phase: str = ""  # names a part of local training; each part has random streams of its own
    report: Callable[[Report], None] = field(default=lambda report: None)  # adds an event, yielded after the round

    @property
    def device(self) -> torch.device:
        """The device of the weights of this run."""
        return self.world.device

    def rng(self, purpose: str) -> torch.Generator:
        """A generator that no other seat has."""
        return self.seeds.rng(self.phase + purpose, self.seat.round, self.seat.client, self.seat.exchange)

    def noise(self) -> torch.Generator:
        """The generator of this seat's noise, which no other seat has and no other run."""
        return self.seeds.noise(self.phase + "noise", self.seat.round, self.seat.client, self.seat.exchange)

    def progress(self, fraction: float, **numbers: float) -> None:
        """Report the progress of long work. Call it at fixed steps, so that a replay reports the same."""
        self.on_progress(fraction, numbers)


@dataclass(frozen=True)
class AttackContext:
    """What an attack may use besides its exposure: random streams of the attacker, and a device."""

    seeds: Seeds
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))


def generators(contexts: Sequence[ClientContext], purpose: str) -> list[torch.Generator]:
    return [context.rng(purpose) for context in contexts]
