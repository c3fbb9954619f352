"""One round of federated learning: send, train and merge, once for every exchange of the method."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from engine.compute.context import ClientContext, Report
from engine.compute.threads import ThreadTeam
from engine.records import Memory, Packet, Private, Seat, Upload, Weights
from engine.training.client_store import client_store
from engine.training.plan import LoadedPlan
from engine.training.state import State

WAVE = 100  # clients trained at once: their working memory is freed before the next wave begins
Progress = Callable[[float, dict[str, float]], None]  # the fraction that is done, and numbers to show


@dataclass(frozen=True)
class Exchange:
    """Everything that server and clients sent each other once. A recorder may read it."""

    seats: Sequence[Seat]
    packets: Sequence[Packet]
    uploads: Sequence[Upload]
    used: Sequence[Tensor | None]  # the pictures of each client that entered its upload; None: all
    before: Weights
    after: Weights
    memory: Memory  # of the server, before the exchange


def silent(fraction: float, numbers: dict[str, float]) -> None:
    """Ignore the progress."""


def ignore(report: Report) -> None:
    """Drop the report."""


def train_round(
    plan: LoadedPlan,
    state: State,
    round: int,
    team: ThreadTeam,
    progress: Progress = silent,
    watch: Callable[[Exchange], None] | None = None,
    report: Callable[[Report], None] = ignore,
) -> State:
    """Train one round and return the state after it. `watch` receives each exchange."""
    method = plan.method
    cohort = plan.cohort(round)
    privates = client_store(state.privates)  # passed on from state to state: only the last state holds it
    exchanges = method.exchanges(plan.world)
    for exchange in range(1, exchanges + 1):
        scaled = partial(_scaled, progress, exchange, exchanges)
        contexts = client_contexts(plan, cohort, round, exchange, exchanges, team, scaled)
        packets = [method.send(context.seat, state.server, state.memory) for context in contexts]
        uploads = _train(plan, contexts, packets, privates)
        merging = server_context(plan, cohort, round, exchange, exchanges, team, progress, report)
        server, memory = method.merge(state.server, uploads, state.memory, merging)
        if watch:
            seats = [context.seat for context in contexts]
            used = [context.used for context in contexts]
            watch(Exchange(seats, packets, uploads, used, state.server, server, state.memory))
        state = State(state.round, server, memory, privates)
    return replace(state, round=round, privates=privates)


def _train(
    plan: LoadedPlan,
    contexts: Sequence[ClientContext],
    packets: Sequence[Packet],
    privates: MutableMapping[int, Private],
) -> list[Upload]:
    """Train the clients wave by wave, and replace their private parts; return their uploads."""
    uploads: list[Upload] = []
    for start in range(0, len(contexts), WAVE):
        wave = slice(start, start + WAVE)
        clients = [plan.client(context.seat.client) for context in contexts[wave]]
        own = [privates.get(client.id) for client in clients]
        trained = plan.method.train_all(clients, packets[wave], own, contexts[wave])
        for client, (upload, private) in zip(clients, trained, strict=True):
            uploads.append(upload)
            if private is not None:
                privates[client.id] = private
    return uploads


def _scaled(progress: Progress, exchange: int, exchanges: int, fraction: float, numbers: dict[str, float]) -> None:
    """Report the progress of one exchange as progress of its round."""
    progress((exchange - 1 + fraction) / exchanges, numbers)


def client_contexts(
    plan: LoadedPlan,
    cohort: Sequence[int],
    round: int,
    exchange: int,
    exchanges: int,
    team: ThreadTeam,
    progress: Progress = silent,
) -> list[ClientContext]:
    """A context for every client of the cohort, in the order of their ids."""
    seats = [Seat(client, slot, round, exchange, exchanges, len(cohort)) for slot, client in enumerate(cohort)]
    contexts = [ClientContext(plan.world, seat, plan.seeds, team, progress) for seat in seats]
    if plan.method.losses:
        contexts = [replace(context, losses=[]) for context in contexts]
    return contexts


def server_context(
    plan: LoadedPlan,
    cohort: Sequence[int],
    round: int,
    exchange: int,
    exchanges: int,
    team: ThreadTeam,
    progress: Progress = silent,
    report: Callable[[Report], None] = ignore,
) -> ClientContext:
    """The context in which the server merges."""
    seat = Seat(-1, -1, round, exchange, exchanges, len(cohort))
    return ClientContext(plan.world, seat, plan.seeds, team, progress, report=report)


def first_state(plan: LoadedPlan) -> State:
    """The state before the first round."""
    return State(0, dict(plan.world.weights), plan.method.begin(plan.world))
