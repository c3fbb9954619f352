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
    plan: LoadedPlan,
    state: State,
    round: int,
    team: ThreadTeam,
    note: Note = silent,
    watch: Callable[[Exchange], None] | None = None,
    report: Callable[[Report], None] = lambda said: None,
) -> State:
    """The state after this round."""
    world, method, cohort = plan.world, plan.method, plan.cohort(round)
    privates = client_store(state.privates)  # goes along from state to state: the last one holds it
    of = method.exchanges(world)
    for exchange in range(1, of + 1):
        contexts = seated(plan, cohort, round, exchange, of, team, partial(_scaled, note, exchange, of))
        packets = [method.send(context.seat, state.server, state.memory) for context in contexts]
        uploads: list[Upload] = []
        for at in range(0, len(contexts), WAVE):
            wave = slice(at, at + WAVE)
            clients = [plan.client(context.seat.client) for context in contexts[wave]]
            own = [privates.get(client.id) for client in clients]
            trained = method.train_all(clients, packets[wave], own, contexts[wave])
            uploads += [upload for upload, _ in trained]
            privates.update(
                {client.id: kept for client, (_, kept) in zip(clients, trained, strict=True) if kept is not None}
            )
        server, memory = method.merge(
            state.server, uploads, state.memory, server_desk(plan, cohort, round, exchange, of, team, note, report)
        )
        if watch:
            used = [context.used for context in contexts]
            watch(Exchange([context.seat for context in contexts], packets, uploads, used, state.server, server))
        state = State(state.round, server, memory, privates)
    return replace(state, round=round, privates=privates)


def _scaled(note: Note, exchange: int, of: int, fraction: float, numbers: dict[str, float]) -> None:
    """How far an exchange is, as how far its round is."""
    note((exchange - 1 + fraction) / of, numbers)


def seated(
    plan: LoadedPlan, cohort: Sequence[int], round: int, exchange: int, of: int, team: ThreadTeam, note: Note = silent
) -> list[ClientContext]:
    """A context for every client of the cohort, in the order of their ids."""
    seats = [Seat(client, slot, round, exchange, of, len(cohort)) for slot, client in enumerate(cohort)]
    return [ClientContext(plan.world, seat, plan.seeds, team, note) for seat in seats]


def server_desk(
    plan: LoadedPlan,
    cohort: Sequence[int],
    round: int,
    exchange: int,
    of: int,
    team: ThreadTeam,
    note: Note = silent,
    report: Callable[[Report], None] = lambda said: None,
) -> ClientContext:
    return ClientContext(
        plan.world, Seat(-1, -1, round, exchange, of, len(cohort)), plan.seeds, team, note, report=report
    )


def opening(plan: LoadedPlan) -> State:
    """The state before the first round."""
    return State(0, dict(plan.world.weights), plan.method.begin(plan.world))
