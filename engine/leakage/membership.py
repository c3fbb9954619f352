"""Runs a membership attack: scores records of the training data and held-out records, and judges the scores.

build_pool     records that entered an upload, and as many test records of the same classes
sight_of       what the observer's models answer for them
score          by the attack, which does not learn which records are members          (attacks/membership/)
judge          the scores, compared with who was a member                             (metrics/membership/)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from engine.attacks.membership.base import MembershipAttack
from engine.compute import weights
from engine.compute.context import AttackContext
from engine.compute.devices import device_fact
from engine.compute.threads import ThreadTeam
from engine.errors import BadInput, LeakLensError, RunFailed
from engine.events import Event, Finished, Kept, Scored, Started, Step
from engine.leakage.compatibility import refuse_membership, round_number
from engine.leakage.probe import latest_state
from engine.leakage.target import AttackResources
from engine.metrics import available
from engine.metrics.membership.auc import Auc
from engine.metrics.membership.base import ScoreMetric
from engine.metrics.membership.tpr_at_fpr import TprAtFpr, roc
from engine.records import Sight, Upload, Weights
from engine.seeds import Seeds
from engine.specs.attack import MembershipSpec
from engine.training.evaluate import predict
from engine.training.loop import rounded_seconds, torch_settings
from engine.training.plan import LoadedPlan, load_plan
from engine.training.rounds import Exchange, train_round
from engine.training.state import State

MOST_RECORDS = 2000  # members of one pool at most, and as many other records
MOST_OF_CLIENT = 100  # records that stand for one client, where clients are scored
PLAYING = "playing the rounds up to the attacked one"
RATES = (0.1, 0.01, 0.001)  # of false alarms


@dataclass(frozen=True)
class Pool:
    """Records for one attack. Who is a member is known to the judge alone."""

    x: Tensor  # (n, ...) inputs of the model
    labels: Tensor
    members: Tensor  # (n,) True where the record was in the training data
    owners: Tensor  # (n,) the client of a record; -1 for a test record


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
        plan = load_plan(spec.run, device)
        facts = {"classes": list(plan.spec.dataset.facts().classes), **device_fact(device)}
        yield Started(spec.id, spec.canonical(), facts)
        round = round_number(spec, plan)
        kept = resources.states_of(spec.run.id)
        yield Step(PLAYING)
        seen = yield from observed(spec, plan, kept, round, team, stop)
        if seen is None:
            return
        pool = build_pool(spec, plan, seen)
        sight = sight_of(spec, plan, round, seen.models, pool, team)
        assert isinstance(spec.attack, MembershipAttack)
        scores = spec.attack.score(sight, (), AttackContext(own_seeds(spec, "attack")))
        scored = judge(spec, round, seen.client, scores, pool)
        if stop():
            return
        yield scored
        yield Finished(0, rounded_seconds(time.monotonic() - began))


def own_seeds(spec: MembershipSpec, purpose: str) -> Seeds:
    """Random streams of the attack or of the pool.

    Privacy: with the seeds of the run an attack could compute its noise, and with those of the pool its order.
    """
    return Seeds.of_text(f"membership:{purpose}:{spec.run.id}:{spec.seed}")


# --- what the observer has ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Observed:
    """What an observer has after a round, and for the judge the records behind it."""

    client: int | None  # of the upload, if the view has one
    models: list[Weights]
    used: Mapping[int, Tensor]  # by client: the places of the training records that entered an upload
    absent: Sequence[int] = ()  # the clients that never took part


def observed(
    spec: MembershipSpec,
    plan: LoadedPlan,
    kept: Sequence[Kept],
    round: int,
    team: ThreadTeam,
    stop: Callable[[], bool],
) -> Generator[Event, None, Observed | None]:
    """What this observer has after the round; None if the attack is stopped."""
    played = yield from _played(plan, kept, round, team, stop)
    cumulative = spec.view in ("outsider", "client")
    partial_use = any(places is not None for exchange in played.exchanges for places in exchange.used)
    if cumulative and partial_use and played.first > 1:  # which records earlier rounds used is stored nowhere
        played = yield from _played(plan, (), round, team, stop)
    if stop():
        return None
    exchanges = played.exchanges
    after = played.after
    absent = sorted({*range(plan.world.clients)} - plan.took_part(round))
    if spec.view == "outsider":
        return Observed(None, [after.server], _used(plan, exchanges, round, everyone=not partial_use), absent)
    exchange = next(exchange for exchange in exchanges if exchange.seats and exchange.seats[0].round == round)
    if spec.view == "client":
        seat = exchange.seats[-1]
        used = _used(plan, exchanges, round, everyone=not partial_use)
        others = {client: places for client, places in used.items() if client != seat.client}
        return Observed(None, [plan.method.send(seat, after.server, after.memory).model], others, absent)
    records = {seat.client: _records(plan, exchange, slot) for slot, seat in enumerate(exchange.seats)}
    if spec.view == "aggregate":
        mean = weights.total([upload.model for upload in exchange.uploads], _parts(plan, exchange))
        return Observed(
            None, [exchange.before, moved(plan, exchange.before, exchange.uploads[0], mean)], records, absent
        )
    slot = _slot(spec, exchange)
    client = exchange.seats[slot].client
    packet = exchange.packets[slot].model
    upload = exchange.uploads[slot]
    return Observed(client, [packet, moved(plan, packet, upload, upload.model)], {client: records[client]})


@dataclass(frozen=True)
class Played:
    """Rounds that were replayed: every exchange from the first one on, and the state after the last."""

    first: int
    exchanges: list[Exchange]
    after: State


def _played(
    plan: LoadedPlan, kept: Sequence[Kept], round: int, team: ThreadTeam, stop: Callable[[], bool]
) -> Generator[Event, None, Played]:
    """The rounds from the latest stored state before the attacked round, replayed up to that round."""
    state = latest_state(plan, round, kept)
    began = state.round
    exchanges: list[Exchange] = []
    for number in range(began + 1, round + 1):
        if stop():
            break
        state = train_round(plan, state, number, team, watch=partial(_keep, exchanges, round))
        yield Step(PLAYING, (number - began) / (round - began))
    return Played(began + 1, exchanges, state)


def _keep(exchanges: list[Exchange], round: int, exchange: Exchange) -> None:
    """Keep the first exchange of the attacked round; of all others, only who used which records."""
    attacked = any(seat.round == round for seat in exchange.seats)
    first = not any(seat.round == round for known in exchanges for seat in known.seats)
    if not (attacked and first):
        exchange = replace(exchange, packets=(), uploads=(), before={}, after={}, memory={})
    exchanges.append(exchange)


def _records(plan: LoadedPlan, exchange: Exchange, slot: int) -> Tensor:
    """The places of the training records that entered one upload."""
    places = plan.train[exchange.seats[slot].client]
    used = exchange.used[slot]
    return places if used is None else places[used.cpu()]


def _used(plan: LoadedPlan, exchanges: Sequence[Exchange], round: int, everyone: bool) -> dict[int, Tensor]:
    """By client, the records that entered any upload up to this round; `everyone`: all records of who took part."""
    if everyone:
        return {client: plan.train[client] for client in sorted(plan.took_part(round))}
    places: dict[int, list[Tensor]] = {}
    for exchange in exchanges:
        for slot, seat in enumerate(exchange.seats):
            places.setdefault(seat.client, []).append(_records(plan, exchange, slot))
    return {client: torch.cat(parts).unique() for client, parts in sorted(places.items())}


def _parts(plan: LoadedPlan, exchange: Exchange) -> list[float]:
    """The weight of each upload in the mean that the aggregate shows; they add up to 1."""
    shares = plan.method.shares(exchange.uploads, plan.world)
    return [share / sum(shares) for share in shares]


def moved(plan: LoadedPlan, start: Weights, upload: Upload, change: Weights) -> Weights:
    """The model after a change that was uploaded. Layers that no one uploads stay as they were sent."""
    factor = -plan.world.local.lr if upload.kind == "gradient" else 1.0
    return {**start, **{name: start[name] + factor * tensor for name, tensor in change.items()}}


def _slot(spec: MembershipSpec, exchange: Exchange) -> int:
    """The place of the attacked client in its cohort; by default the first."""
    clients = [seat.client for seat in exchange.seats]
    return 0 if spec.client is None else clients.index(spec.client)


# --- the pool ----------------------------------------------------------------------------------------------


def build_pool(spec: MembershipSpec, plan: LoadedPlan, seen: Observed) -> Pool:
    """Records that entered an upload, and test records of the same classes; for clients, those that never took part.

    Both halves have equally many records of each class, so a label alone says nothing. The order is random.
    """
    rng = own_seeds(spec, "pool").rng("pool")
    if spec.unit == "user":
        return _pool_of_clients(plan, seen, rng)
    inside = torch.cat([torch.zeros(0, dtype=torch.int64, device="cpu"), *seen.used.values()])
    owners = torch.cat([owned_by(-1, 0), *(owned_by(client, len(places)) for client, places in seen.used.items())])
    order = torch.randperm(len(inside), generator=rng, device="cpu")
    inside, owners = inside[order], owners[order]
    outside = torch.randperm(len(plan.test_labels), generator=rng, device="cpu")
    kept, others = _paired_by_class(plan.labels[inside], plan.test_labels.cpu()[outside])
    kept, others = kept[:MOST_RECORDS], others[:MOST_RECORDS]
    if len(kept) < 2:
        raise BadInput("attack: fewer than two records entered this upload", "Choose another client, round or view")
    data = plan.spec.dataset.load()
    x = torch.cat([data.train_x[inside[kept]], data.test_x[outside[others]]])
    labels = torch.cat([plan.labels[inside[kept]], plan.test_labels.cpu()[outside[others]]])
    return _shuffled(plan, x, labels, len(kept), torch.cat([owners[kept], owned_by(-1, len(others))]), rng)


def owned_by(client: int, count: int) -> Tensor:
    """The owner of each of these records: (count,)."""
    return torch.full((count,), client, device="cpu")


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


def _pool_of_clients(plan: LoadedPlan, seen: Observed, rng: torch.Generator) -> Pool:
    """Records of clients that took part, and of clients that never did: their data have the same law."""
    used = {client: own for client, own in seen.used.items() if len(own)}
    halves = {**used, **{client: plan.train[client] for client in seen.absent if len(plan.train[client])}}
    if not used or len(halves) == len(used):
        raise BadInput("attack: unit: one of the two groups of clients has no records", "Choose unit record")
    # A mean of fewer records varies more. With as many of each client, that tells nothing of who took part.
    count = min(MOST_OF_CLIENT, *(len(own) for own in halves.values()))
    places: list[Tensor] = []
    owners: list[Tensor] = []
    for client, own in halves.items():
        order = torch.randperm(len(own), generator=rng, device="cpu")
        chosen = own[order[:count]]
        places.append(chosen)
        owners.append(owned_by(client, len(chosen)))
    inside = sum(len(part) for part in places[: len(used)])
    chosen = torch.cat(places)
    data = plan.spec.dataset.load()
    return _shuffled(plan, data.train_x[chosen], plan.labels[chosen], inside, torch.cat(owners), rng)


def _shuffled(plan: LoadedPlan, x: Tensor, labels: Tensor, inside: int, owners: Tensor, rng: torch.Generator) -> Pool:
    """The pool in a random order. Privacy: members in front would tell an attack which records they are."""
    members = torch.arange(len(labels), device="cpu") < inside
    order = torch.randperm(len(labels), generator=rng, device="cpu")
    normalised = plan.spec.dataset.load().normal_(x[order].clone())
    return Pool(normalised, labels[order], members[order], owners[order])


def sight_of(
    spec: MembershipSpec, plan: LoadedPlan, round: int, models: Sequence[Weights], pool: Pool, team: ThreadTeam
) -> Sight:
    """The outputs of the observer's models. Privacy: it holds neither the members nor the owners of the records."""
    logits = [predict(plan, model, pool.x.to(plan.world.device), team).cpu() for model in models]
    return Sight(spec.view, (round,) * len(models), torch.stack(logits), pool.labels)


# --- the verdict -------------------------------------------------------------------------------------------


def judge(spec: MembershipSpec, round: int, client: int | None, scores: Tensor, pool: Pool) -> Scored:
    """How well the scores tell members from the others. A client has the mean score of its records."""
    members = pool.members
    classes: Tensor | None = pool.labels
    if spec.unit == "user":
        scores, members = by_client(scores, pool)
        classes = None
    auc = Auc()
    others = int((~members).sum())
    rates = [fpr for fpr in RATES if fpr * others >= 1]  # below one record, a share of false alarms is not measurable
    return Scored(
        attack=spec.attack.name,
        view=spec.view,
        unit=spec.unit,
        round=round,
        client=client,
        members=int(members.sum()),
        others=others,
        auc=auc.measure(scores, members),
        interval=auc.interval(scores, members, classes),
        tpr={f"{fpr:g}": TprAtFpr(fpr=fpr).measure(scores, members) for fpr in rates},
        roc=roc(scores, members),
        numbers=dict(_numbers(scores, members, others)),
    )


def _numbers(scores: Tensor, members: Tensor, others: int) -> Iterator[tuple[str, float]]:
    """The number of every metric on the shelf. An error of a metric names it."""
    for metric in available(ScoreMetric):  # type: ignore[type-abstract]
        if metric.resolves(others):
            try:
                yield metric.name, float(metric.measure(scores, members))
            except LeakLensError:
                raise
            except Exception as error:
                problem = f"metric {metric.name}: {type(error).__name__}: {error}"
                raise RunFailed(problem, "Correct the metric, or remove its package") from error


def by_client(scores: Tensor, pool: Pool) -> tuple[Tensor, Tensor]:
    """The mean score of each client's records: of those that took part, then of those that never did."""
    means: list[Tensor] = []
    members: list[bool] = []
    for inside in (True, False):
        half = pool.members == inside
        for client in pool.owners[half].unique().tolist():
            means.append(scores[half & (pool.owners == client)].mean())
            members.append(inside)
    return torch.stack(means), torch.tensor(members, device=scores.device)
