"""One round of federated learning: send, train, merge, as often as the method exchanges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from engine.compute.context import ClientContext, Report
from engine.compute.threads import ThreadTeam
from engine.records import Packet, Seat, Upload, Weights
from engine.training.client_store import client_store
from engine.training.plan import LoadedPlan
from engine.training.state import State

WAVE = 100  # clients trained together: what they need beside their uploads is let go before the next ones begin
Note = Callable[[float, dict[str, float]], None]


@dataclass(frozen=True)
class Exchange:
    """What passed between server and clients once: what a recorder may look at."""

    seats: Sequence[Seat]
    packets: Sequence[Packet]
    uploads: Sequence[Upload]
    used: Sequence[Tensor | None]  # which pictures of each client entered; None: all
    before: Weights
    after: Weights


def silent(fraction: float, numbers: dict[str, float]) -> None:
    """Nobody listens."""


def play(
    stage: LoadedPlan,
    state: State,
    round: int,
    crew: ThreadTeam,
    note: Note = silent,
    watch: Callable[[Exchange], None] | None = None,
    say: Callable[[Report], None] = lambda said: None,
) -> State:
    """The state after this round."""
    world, method, cohort = stage.world, stage.method, stage.cohort(round)
    privates = client_store(state.privates)  # goes along from state to state: the last one holds it
    of = method.exchanges(world)
    for exchange in range(1, of + 1):
        desks = seated(stage, cohort, round, exchange, of, crew, partial(_scaled, note, exchange, of))
        packets = [method.send(desk.seat, state.server, state.memory) for desk in desks]
        uploads: list[Upload] = []
        for at in range(0, len(desks), WAVE):
            wave = slice(at, at + WAVE)
            clients = [stage.client(desk.seat.client) for desk in desks[wave]]
            own = [privates.get(client.id) for client in clients]
            trained = method.train_all(clients, packets[wave], own, desks[wave])
            uploads += [upload for upload, _ in trained]
            privates.update(
                {client.id: kept for client, (_, kept) in zip(clients, trained, strict=True) if kept is not None}
            )
        server, memory = method.merge(
            state.server, uploads, state.memory, server_desk(stage, cohort, round, exchange, of, crew, note, say)
        )
        if watch:
            used = [desk.used for desk in desks]
            watch(Exchange([desk.seat for desk in desks], packets, uploads, used, state.server, server))
        state = State(state.round, server, memory, privates)
    return replace(state, round=round, privates=privates)


def _scaled(note: Note, exchange: int, of: int, fraction: float, numbers: dict[str, float]) -> None:
    """How far an exchange is, as how far its round is."""
    note((exchange - 1 + fraction) / of, numbers)


def seated(
    stage: LoadedPlan, cohort: Sequence[int], round: int, exchange: int, of: int, crew: ThreadTeam, note: Note = silent
) -> list[ClientContext]:
    """A desk for every client of the cohort, in the order of their ids."""
    seats = [Seat(client, slot, round, exchange, of, len(cohort)) for slot, client in enumerate(cohort)]
    return [ClientContext(stage.world, seat, stage.seeds, crew, note) for seat in seats]


def server_desk(
    stage: LoadedPlan,
    cohort: Sequence[int],
    round: int,
    exchange: int,
    of: int,
    crew: ThreadTeam,
    note: Note = silent,
    say: Callable[[Report], None] = lambda said: None,
) -> ClientContext:
    return ClientContext(stage.world, Seat(-1, -1, round, exchange, of, len(cohort)), stage.seeds, crew, note, say=say)


def opening(stage: LoadedPlan) -> State:
    """The state before the first round."""
    return State(0, dict(stage.world.weights), stage.method.begin(stage.world))
