"""SCAFFOLD: control variates correct the drift of local training (arXiv:1910.06378, option II).

Paper → here:  c → memory["control"],  c_i → private and memory["control-<i>"],  η_l → lr,  η_g → server-step.

Each local step goes along g - c_i + c. After K steps, c_i becomes c_i - c + (x - y_i) / (K η_l). The client uploads its
update and the change of c_i, and the server adds |S| / N times the mean change to c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from engine.compute import weights
from engine.compute.context import ClientContext
from engine.compute.sgd import StepChange
from engine.methods.averaging.base import Averaging
from engine.methods.base import METHODS, Trained
from engine.part import Problem
from engine.records import (
    Client,
    ExtraWork,
    Guarantee,
    Memory,
    Packet,
    Private,
    Protocol,
    Seat,
    Upload,
    View,
    Weights,
    World,
)

CONTROL = "control"  # the slot of c in memory, packets and uploads


@METHODS.add("scaffold", title="SCAFFOLD", source="arXiv:1910.06378")
class Scaffold(Averaging):
    """FedAvg whose clients correct each step by how far their data differ from everyone's; nothing is protected."""

    stateful: ClassVar[bool] = True

    def problems(self, spec: Any) -> tuple[Problem, ...]:
        if not spec.local.momentum and not spec.local.weight_decay:
            return super().problems(spec)
        reason = f"{self.name}: momentum and weight decay must be 0: a control variate is the mean plain gradient"
        return (*super().problems(spec), Problem(reason, "Leave them out, or choose fedavg"))

    def begin(self, world: World) -> Memory:
        return {CONTROL: weights.zeros(world.weights)}

    def send(self, seat: Seat, server: Weights, memory: Memory) -> Packet:
        return Packet(server, {CONTROL: memory[CONTROL]})

    def step_changes(self, packets: Sequence[Packet], privates: Sequence[Private | None]) -> Sequence[StepChange]:
        changes = []
        for packet, private in zip(packets, privates, strict=True):
            control = packet.extra[CONTROL]
            changes.append(StepChange(offset=weights.subtract(control, private) if private else control))
        return changes

    def train_all(
        self,
        clients: Sequence[Client],
        packets: Sequence[Packet],
        privates: Sequence[Private | None],
        contexts: Sequence[ClientContext],
    ) -> list[Trained]:
        trained: list[Trained] = []
        results = super().train_all(clients, packets, privates, contexts)
        for (upload, private), client, packet, context in zip(results, clients, packets, contexts, strict=True):
            local = context.world.local
            steps = local.epochs * -(-len(client.y) // local.batch)
            control = packet.extra[CONTROL]
            change = weights.add(weights.scale(upload.model, -1 / (steps * local.lr)), control, -1.0)
            own = weights.add(private, change) if private else change
            trained.append((replace(upload, extra={CONTROL: change}), own))
        return trained

    def merge(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> tuple[Weights, Memory]:
        merged, _ = super().merge(server, uploads, memory, context)
        kept = dict(memory)
        changes = [upload.extra[CONTROL] for upload in uploads]
        if changes:
            kept[CONTROL] = weights.add(memory[CONTROL], weights.total(changes), 1 / context.world.clients)
        for upload, change in zip(uploads, changes, strict=True):
            slot = client_slot(upload.client)
            kept[slot] = weights.add(memory[slot], change) if slot in memory else change
        return merged, kept

    def work(self, world: World, rounds: int) -> ExtraWork:
        """The server keeps a control variate for each client that took part, and its own."""
        took_part = world.clients * (1 - (1 - world.rate) ** rounds)
        return replace(super().work(world, rounds), kept=1 + took_part)

    def known(self, view: View, seat: Seat, memory: Memory) -> Mapping[str, Weights]:
        """The server adds up a client's changes, so it knows c_i. No one else sees single changes."""
        if view != "server":
            return {}
        return {"c_k": memory.get(client_slot(seat.client)) or weights.zeros(memory[CONTROL])}

    def lacks(self, view: View, seat: Seat, memory: Memory) -> str:
        if self.known(view, seat, memory) or seat.round == 1:  # before the first round all control variates are 0
            return ""
        return "the control variates of single clients, which shift every local step"

    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        return replace(super().protocol(world, seat, view), drift=True)

    def guarantee(self, world: World) -> Guarantee:
        del world
        return Guarantee("none", "every update and every change of a control variate leaves as it is")


def client_slot(client: int) -> str:
    return f"{CONTROL}-{client}"
