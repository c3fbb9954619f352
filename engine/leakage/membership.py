"""Runs a membership attack: scores records of the training data and held-out records, and judges the scores.

build_pool     records of the training data, and as many test records of the same classes
sight_of       what the observer's models answer for them
score          by the attack, which does not learn which records are members          (attacks/membership/)
judge          the scores, compared with who was a member                             (metrics/membership/)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.attacks.membership.base import MembershipAttack
from engine.compute import weights
from engine.compute.context import AttackContext
from engine.compute.threads import ThreadTeam
from engine.errors import BadInput
from engine.events import Event, Finished, Kept, Scored, Started, Step
from engine.leakage.compatibility import refuse_membership, round_number
from engine.leakage.target import AttackResources
from engine.metrics.membership.auc import Auc
from engine.metrics.membership.tpr_at_fpr import TprAtFpr, roc
from engine.records import Sight, Upload, Weights
from engine.seeds import Seeds
from engine.specs.attack import MembershipSpec
from engine.training.evaluate import predict
from engine.training.exposure import summed
from engine.training.loop import rounded_seconds, torch_settings
from engine.training.plan import LoadedPlan, load_plan
from engine.training.rounds import Exchange, first_state, train_round
from engine.training.state import State, read_state

MOST_RECORDS = 2000  # members of one pool at most, and as many other records
MOST_OF_CLIENT = 100  # records that stand for one client, where clients are scored
RATES = (0.1, 0.01, 0.001)  # of false alarms


@dataclass(frozen=True)
class Pool:
    """Records for one attack. Who is a member is known to the judge alone."""

    x: Tensor  # (n, ...) inputs of the model
    labels: Tensor
    members: Tensor  # (n,) True where the record was in the training data
    owners: Tensor  # (n,) the client of a record, or of the test records that stand beside it


def membership(
    spec: MembershipSpec,
    resources: AttackResources | None = None,
    *,
    threads: int = 1,
    device: str = "cpu",
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """All events of a membership attack; once `stop` returns True, it ends without `Scored` and `Finished`."""
    began = time.monotonic()
    resources = resources or AttackResources()
    with torch_settings(device), ThreadTeam(threads) as team:
        refuse_membership(spec)
        plan = load_plan(spec.run)
        yield Started(spec.id, spec.canonical(), {"classes": list(plan.spec.dataset.facts().classes)})
        round = round_number(spec, plan)
        kept: Sequence[Kept] = list(resources.states(spec.run.id))
        yield Step("playing the rounds up to the attacked one")
        client, models = yield from observed_models(spec, plan, kept, round, team, stop)
        if stop():
            return
        pool = build_pool(spec, plan, round, client)
        sight = sight_of(spec, plan, round, models, pool, team)
        assert isinstance(spec.attack, MembershipAttack)
        scores = spec.attack.score(sight, (), AttackContext(Seeds(spec.seed)))
        yield judge(spec, round, client, scores, pool)
        yield Finished(0, rounded_seconds(time.monotonic() - began))


# --- what the observer has ---------------------------------------------------------------------------------


def observed_models(
    spec: MembershipSpec,
    plan: LoadedPlan,
    kept: Sequence[Kept],
    round: int,
    team: ThreadTeam,
    stop: Callable[[], bool],
) -> Generator[Event, None, tuple[int | None, list[Weights]]]:
    """The client of the upload, if the view has one, and the models that this observer can evaluate."""
    state = yield from _state_after(plan, kept, round - 1, team, stop)
    if stop():
        return None, []
    exchanges: list[Exchange] = []
    after = train_round(plan, state, round, team, watch=exchanges.append)
    if spec.view == "outsider":
        return None, [after.server]
    if spec.view == "client":
        seat = exchanges[0].seats[-1]
        return None, [plan.method.send(seat, after.server, after.memory).model]
    exchange = exchanges[0]
    if spec.view == "aggregate":
        mean = weights.scale(summed(exchange.uploads).model, 1 / len(exchange.uploads))
        return None, [exchange.before, moved(plan, exchange.before, exchange.uploads[0], mean)]
    slot = _slot(spec, exchange)
    packet = exchange.packets[slot].model
    upload = exchange.uploads[slot]
    return exchange.seats[slot].client, [packet, moved(plan, packet, upload, upload.model)]


def _state_after(
    plan: LoadedPlan, kept: Sequence[Kept], round: int, team: ThreadTeam, stop: Callable[[], bool]
) -> Generator[Event, None, State]:
    """The state after a round: the latest stored one, and the rounds after it replayed."""
    stored = [event for event in kept if event.kind in ("state", "checkpoint") and event.round <= round]
    latest = max(stored, key=lambda event: event.round, default=None)
    state = first_state(plan) if latest is None else read_state(latest.round, latest.payload, plan.world.weights)
    began = state.round
    for number in range(state.round + 1, round + 1):
        if stop():
            return state
        state = train_round(plan, state, number, team)
        yield Step("playing the rounds up to the attacked one", (number - began) / (round - began))
    return state


def moved(plan: LoadedPlan, start: Weights, upload: Upload, change: Weights) -> Weights:
    """The model after a change that was uploaded. Layers that no one uploads stay as they were sent."""
    factor = -plan.world.local.lr if upload.kind == "gradient" else 1.0
    return {**start, **{name: start[name] + factor * tensor for name, tensor in change.items()}}


def _slot(spec: MembershipSpec, exchange: Exchange) -> int:
    """The place of the attacked client in its cohort; by default the first."""
    clients = [seat.client for seat in exchange.seats]
    return 0 if spec.client is None else clients.index(spec.client)


# --- the pool ----------------------------------------------------------------------------------------------


def build_pool(spec: MembershipSpec, plan: LoadedPlan, round: int, client: int | None) -> Pool:
    """Records of the clients that took part, and test records of the same classes.

    Only clients that took part are members: the records of the others were never trained on. Both halves have equally
    many records of each class, so a label alone says nothing.
    """
    rng = Seeds(spec.seed).rng("pool")
    clients = _participants(spec, plan, round, client)
    if spec.unit == "user":
        return _pool_of_clients(plan, clients, rng)
    inside = torch.cat([plan.train[each] for each in clients])
    owners = torch.cat([torch.full((len(plan.train[each]),), each) for each in clients])
    order = torch.randperm(len(inside), generator=rng)
    inside, owners = inside[order], owners[order]
    outside_order = torch.randperm(len(plan.test_labels), generator=rng)
    kept, others = _paired_by_class(plan.labels[inside], plan.test_labels[outside_order])
    kept, others = kept[:MOST_RECORDS], others[:MOST_RECORDS]
    return _pool(plan, inside[kept], outside_order[others], owners[kept], torch.full((len(others),), -1))


def _participants(spec: MembershipSpec, plan: LoadedPlan, round: int, client: int | None) -> list[int]:
    if client is not None:
        return [client]
    first = round if spec.view == "aggregate" else 1
    return sorted({each for number in range(first, round + 1) for each in plan.cohort(number)})


def _paired_by_class(labels: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """Places in both sequences, so that the records at equal positions have the same class."""
    left: list[Tensor] = []
    right: list[Tensor] = []
    for label in labels.unique().tolist():
        inside = torch.nonzero(labels == label).flatten()
        outside = torch.nonzero(others == label).flatten()
        count = min(len(inside), len(outside))
        left.append(inside[:count])
        right.append(outside[:count])
    places = torch.cat(left)
    order = places.argsort()  # the random order of the members, so that a cut keeps all classes
    return places[order], torch.cat(right)[order]


def _pool_of_clients(plan: LoadedPlan, clients: Sequence[int], rng: torch.Generator) -> Pool:
    """Records of each client's training part, and as many of its test part, which has the same law."""
    inside: list[Tensor] = []
    outside: list[Tensor] = []
    owners: list[Tensor] = []
    for client in clients:
        count = min(len(plan.train[client]), len(plan.test[client]), MOST_OF_CLIENT)
        if count:
            chosen = torch.randperm(len(plan.train[client]), generator=rng)[:count]
            inside.append(plan.train[client][chosen])
            outside.append(plan.test[client][:count])
            owners.append(torch.full((count,), client))
    if len(owners) < 2:
        raise BadInput("attack: unit: fewer than two clients have test records to compare with", "Choose unit record")
    own = torch.cat(owners)
    return _pool(plan, torch.cat(inside), torch.cat(outside), own, own)


def _pool(plan: LoadedPlan, inside: Tensor, outside: Tensor, owners: Tensor, owners_of_others: Tensor) -> Pool:
    data = plan.spec.dataset.load()
    x = torch.cat([data.train_x[inside], data.test_x[outside]])
    labels = torch.cat([plan.labels[inside], plan.test_labels.cpu()[outside]])
    members = torch.cat([torch.ones(len(inside)), torch.zeros(len(outside))]).bool()
    return Pool(data.normal_(x.clone()), labels, members, torch.cat([owners, owners_of_others]))


def sight_of(
    spec: MembershipSpec, plan: LoadedPlan, round: int, models: Sequence[Weights], pool: Pool, team: ThreadTeam
) -> Sight:
    """The outputs of the observer's models. Privacy: it holds neither the members nor the owners of the records."""
    device = next(iter(plan.world.weights.values())).device
    logits = [predict(plan, model, pool.x.to(device), team).cpu() for model in models]
    return Sight(spec.view, (round,) * len(models), torch.stack(logits), pool.labels)


# --- the verdict -------------------------------------------------------------------------------------------


def judge(spec: MembershipSpec, round: int, client: int | None, scores: Tensor, pool: Pool) -> Scored:
    """How well the scores tell members from the others. A client has the mean score of its records."""
    members = pool.members
    if spec.unit == "user":
        scores, members = by_client(scores, pool)
    auc = Auc()
    return Scored(
        attack=spec.attack.name,
        view=spec.view,
        unit=spec.unit,
        round=round,
        client=client,
        members=int(members.sum()),
        others=int((~members).sum()),
        auc=auc.measure(scores, members),
        interval=auc.interval(scores, members),
        tpr={f"{fpr:g}": TprAtFpr(fpr=fpr).measure(scores, members) for fpr in RATES},
        roc=roc(scores, members),
    )


def by_client(scores: Tensor, pool: Pool) -> tuple[Tensor, Tensor]:
    """The mean score of each client's training records, and of the test records that stand beside it."""
    means: list[Tensor] = []
    members: list[bool] = []
    for inside in (True, False):
        half = pool.members == inside
        for client in pool.owners[half].unique().tolist():
            means.append(scores[half & (pool.owners == client)].mean())
            members.append(inside)
    return torch.stack(means), torch.tensor(members)
