"""Two methods for tests of the contract only: one with server memory, one with personal models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.compute import sgd, weights
from engine.compute.context import ClientContext
from engine.compute.sgd import StepChange
from engine.methods.averaging.base import Averaging
from engine.methods.base import Trained
from engine.records import Client, Guarantee, Memory, Packet, Private, Seat, Upload, Weights, World


class Scaffold(Averaging):
    """SCAFFOLD (arXiv:1910.06378): control variates c (server) and c_k (client) correct the drift of local steps."""

    def begin(self, world: World) -> Memory:
        return weights.zeros(world.weights)

    def send(self, seat: Seat, server: Weights, memory: Memory) -> Packet:
        return {**prefixed(server, "w/"), **prefixed(memory, "c/")}

    def train_all(
        self,
        clients: Sequence[Client],
        packets: Sequence[Packet],
        privates: Sequence[Private | None],
        contexts: Sequence[ClientContext],
    ) -> list[Trained]:
        starts = [part(packet, "w/") for packet in packets]
        servers = [part(packet, "c/") for packet in packets]
        own = [private or weights.zeros(c) for private, c in zip(privates, servers, strict=True)]
        extras = [StepChange(offset=weights.subtract(c, c_k)) for c, c_k in zip(servers, own, strict=True)]
        ends = sgd.fit(contexts, starts, clients, extras)
        trained: list[Trained] = []
        for client, start, end, c, c_k, context in zip(clients, starts, ends, servers, own, contexts, strict=True):
            local = context.world.local
            steps = local.epochs * -(-len(client.y) // local.batch)
            update = weights.subtract(end, start)
            change = weights.add(weights.scale(c, -1), update, -1 / (steps * local.lr))  # c_k+ - c_k
            tensors = {**prefixed(update, "w/"), **prefixed(change, "c/")}
            trained.append((Upload(client.id, "update", tensors), weights.add(c_k, change)))
        return trained

    def merge(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> tuple[Weights, Memory]:
        if not uploads:
            return server, memory
        mean = weights.scale(weights.total([upload.tensors for upload in uploads]), 1 / len(uploads))
        moved = weights.add(memory, part(mean, "c/"), len(uploads) / context.world.clients)
        return weights.add(server, part(mean, "w/")), moved

    def guarantee(self, world: World) -> Guarantee:
        return Guarantee("none", "nothing is clipped or noised")


class PrivateHead(Averaging):
    """Like CENTAUR: the last layer stays on each client, and all other layers are shared."""

    def train_all(
        self,
        clients: Sequence[Client],
        packets: Sequence[Packet],
        privates: Sequence[Private | None],
        contexts: Sequence[ClientContext],
    ) -> list[Trained]:
        head = contexts[0].world.head
        starts = [{**packet, **(private or {})} for packet, private in zip(packets, privates, strict=True)]
        trained: list[Trained] = []
        for client, start, end in zip(clients, starts, self.fit(starts, clients, contexts), strict=True):
            shared = {name: end[name] - start[name] for name in end if name not in head}
            trained.append((Upload(client.id, "update", shared), {name: end[name] for name in head}))
        return trained

    def merge(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> tuple[Weights, Memory]:
        if not uploads:
            return server, memory
        mean = weights.scale(weights.total([upload.tensors for upload in uploads]), 1 / len(uploads))
        return {name: value + mean[name] if name in mean else value for name, value in server.items()}, memory

    def judged(self, server: Weights, memory: Memory, privates: Mapping[int, Private]) -> Mapping[str | int, Weights]:
        return {"global": server, **{client: {**server, **head} for client, head in privates.items()}}

    def guarantee(self, world: World) -> Guarantee:
        return Guarantee("none", "nothing is clipped or noised")


def prefixed(tensors: Weights, prefix: str) -> Weights:
    return {prefix + name: tensor for name, tensor in tensors.items()}


def part(tensors: Mapping[str, object], prefix: str) -> dict:
    """The entries with this prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
