"""The plan of a run: data dealt to clients, first weights, the noise in force; built from the spec alone."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn

from engine.compute import weights
from engine.datasets.base import LoadedData
from engine.errors import BadInput, refusal
from engine.methods import Method
from engine.partitions import split
from engine.privacy.ledger import Ledger, LedgerEpsilon
from engine.privacy.solver import solve
from engine.records import VIEWS, Client, Guarantee, World
from engine.seeds import Seeds
from engine.specs.run import RunSpec, usual_delta

SMALL = 200e6  # bytes of a data set that are dealt once for several runs
PartitionedData = tuple[tuple[Client, ...], Tensor]  # each client's pictures, and those for testing


@dataclass(frozen=True)
class Plan:
    """Everything about a run that is known before a picture is read: enough for ε, not for training."""

    spec: RunSpec
    method: Method  # with the noise in force, where a target ε decides it
    world: World
    delta: float
    train: tuple[Tensor, ...]  # places of each client's pictures
    test: tuple[Tensor, ...]
    labels: Tensor
    test_labels: Tensor

    @property
    def seeds(self) -> Seeds:
        return Seeds(self.spec.seed)

    @cached_property
    def guarantee(self) -> Guarantee:
        return self.method.guarantee(self.world)

    def cohort(self, round: int) -> tuple[int, ...]:
        return self.seeds.cohort(round, self.world.clients, self.world.sampled, self.world.sampling)

    def ledger(self, rounds: int, method: Method | None = None) -> Ledger:
        """What the first rounds cost: the schedule is known from the seed, so this is exact before the run."""
        ledger = Ledger(self.world.clients, self.delta)
        for round in range(1, rounds + 1):
            ledger.add((method or self.method).releases(self.world, round, self.cohort(round)))
        return ledger

    def answers(self, ledger: Ledger, precise: bool = False) -> tuple[LedgerEpsilon, ...]:
        """ε of every view that applies, 0 where nothing was released; quantiles where there is time for them."""
        found = [ledger.answer(view, precise, quantiles=precise) for view in VIEWS if view not in self.guarantee.absent]
        return tuple(replace(one, unit=self.method.unit() or one.unit) for one in found)

    @cached_property
    def last(self) -> int:
        """The last round that is played: the one before the budget would break, where there is one."""
        spec = self.spec
        if spec.budget is None or spec.view is None:
            return spec.rounds

        def fits(rounds: int) -> bool:
            assert spec.view is not None and spec.budget is not None
            return not self.ledger(rounds).exceeds(spec.view, spec.budget)

        if fits(spec.rounds):
            return spec.rounds
        return bisect_left(range(1, spec.rounds + 1), True, key=lambda rounds: not fits(rounds))

    def counts(self) -> dict[str, Tensor]:
        """How many pictures of each class every client has: (clients, classes)."""
        return {
            "train": torch.stack(
                [torch.bincount(self.labels[own], minlength=self.world.classes) for own in self.train]
            ),
            "test": torch.stack(
                [torch.bincount(self.test_labels[own], minlength=self.world.classes) for own in self.test]
            ),
        }


@dataclass(frozen=True)
class LoadedPlan(Plan):
    """A plan with its pictures: each client's own, and the test pictures."""

    clients: tuple[Client, ...] = ()
    test_x: Tensor = field(default_factory=lambda: torch.empty(0))

    def client(self, place: int) -> Client:
        return self.clients[place]


def make_plan(spec: RunSpec, precise: bool = True) -> Plan:
    """Deal the labels, draw the first weights, settle δ and the noise; no picture is read.

    Not `precise`: the noise of a target ε is a little more than a run would take, found in a tenth of the time.
    """
    facts = spec.dataset.facts()
    _refuse_fatal(spec)
    seeds = Seeds(spec.seed)
    train, test = split(spec.partition, facts.train_y, facts.test_y, spec.clients, seeds, spec.dataset.noun)
    world = _world(spec, facts, tuple(len(own) for own in train))
    _refuse_batch_norm(spec, world)
    delta = _delta(spec, sum(world.sizes))
    draft = Plan(spec, spec.method, world, delta, tuple(train), tuple(test), facts.train_y, facts.test_y)
    if spec.target_epsilon is not None:
        draft = replace(draft, method=_solved(draft, precise))
    if spec.budget is not None and spec.view is not None:
        _answerable(draft, "budget", draft.method)
    return draft


def load_plan(spec: RunSpec, device: str = "cpu") -> LoadedPlan:
    """The plan, with every client's pictures side by side in memory."""
    plan = make_plan(spec)
    data = spec.dataset.load()
    question = (spec.dataset, spec.partition, spec.clients, spec.seed, device)
    if (dealt := _last.get(data.train_x, question)) is None:
        dealt = _last.keep(data.train_x, question, _deal(plan, data, device))
    clients, test_x = dealt
    first = {name: tensor.to(device) for name, tensor in plan.world.weights.items()}
    values = {name: getattr(plan, name) for name in Plan.__dataclass_fields__}
    values |= {"world": replace(plan.world, weights=first), "test_labels": data.test_y.to(device)}
    return LoadedPlan(**values, clients=clients, test_x=test_x)


def _deal(plan: Plan, data: LoadedData, device: str) -> PartitionedData:
    y = data.train_y[torch.cat(plan.train)].to(device)
    x = data.train_x.new_empty(len(y), *plan.world.shape)
    parts = x.split(list(plan.world.sizes))
    for own, part in zip(plan.train, parts, strict=True):  # client by client: each stays in the cache
        torch.index_select(data.train_x, 0, own, out=part)
        data.normal_(part)
    pairs = zip(x.to(device).split(list(plan.world.sizes)), y.split(list(plan.world.sizes)), strict=True)
    clients = tuple(Client(place, own_x, own_y) for place, (own_x, own_y) in enumerate(pairs))
    return clients, data.normal_(data.test_x.clone()).to(device)


class PartitionedDataCache:
    """What was dealt last, where it is small: of a sweep the next run mostly asks for the same."""

    def __init__(self) -> None:
        self._held: tuple[Tensor, object, PartitionedData] | None = None

    def get(self, source: Tensor, question: object) -> PartitionedData | None:
        """Only from the very data that were dealt: they may have been read anew."""
        held = self._held
        return held[2] if held and held[0] is source and held[1] == question else None

    def keep(self, source: Tensor, question: object, dealt: PartitionedData) -> PartitionedData:
        self._held = (source, question, dealt) if source.nbytes <= SMALL else None
        return dealt


_last = PartitionedDataCache()


def _world(spec: RunSpec, facts: Any, sizes: tuple[int, ...]) -> World:
    build = partial(spec.model.build, facts.shape, len(facts.classes))
    module = build(Seeds(spec.seed).rng("weights"))
    first = {name: tensor.detach().clone() for name, tensor in module.named_parameters()}
    return World(
        weights=first,
        build=build,
        stacked=spec.model.stacked if spec.model.stackable else None,
        head=spec.model.head(module),
        shape=facts.shape,
        classes=len(facts.classes),
        clients=spec.clients,
        sampled=spec.sampled,
        sampling=spec.sampling,  # type: ignore[arg-type]
        sizes=sizes,
        rounds=spec.rounds,
        local=spec.local,
        mean=facts.mean,
        std=facts.std,
        honest=spec.honest_share,
    )


def _delta(spec: RunSpec, records: int) -> float:
    units = records if spec.method.unit() == "record" else spec.clients
    noun = spec.dataset.noun if spec.method.unit() == "record" else "clients"
    if spec.delta is None:
        return usual_delta(units)
    if spec.delta >= 1 / units:
        law = f"must be below 1/n = {1 / units:.3g} for {units} {noun}"
        raise refusal("run: delta", law, spec.delta, "A larger δ would allow to publish one of them outright")
    return spec.delta


def _refuse_fatal(spec: RunSpec) -> None:
    for part in (spec.dataset, spec.model, spec.method):  # the partition is tried right after
        for problem in part.problems(spec):
            if problem.fatal:
                raise BadInput(problem.reason, problem.remedy)


def _refuse_batch_norm(spec: RunSpec, world: World) -> None:
    if spec.method.unit() is None:
        return
    module = world.build(torch.Generator())
    if any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in module.modules()):
        raise BadInput(
            f"{spec.method.name}: {spec.model.name} has batch normalisation, which mixes the pictures of a batch: "
            "no clip bounds what one of them changes",
            "Choose a model with group normalisation",
        )


def _solved(draft: Plan, precise: bool) -> Method:
    """The method with the least noise that keeps the target ε over all rounds, in the view that was named."""
    spec = draft.spec
    assert spec.target_epsilon is not None and spec.view is not None
    view = spec.view

    cohorts = [draft.cohort(round) for round in range(1, spec.rounds + 1)]

    def epsilon_at(noise: float, precise: bool) -> float | None:
        method, ledger = spec.method.with_(noise=noise), Ledger(draft.world.clients, draft.delta)
        for round, cohort in enumerate(cohorts, start=1):
            ledger.add(one for one in method.releases(draft.world, round, cohort) if one.view == view)
        return ledger.answer(view, precise=precise).epsilon

    _answerable(draft, "target-epsilon", spec.method.with_(noise=1.0))
    return spec.method.with_(noise=solve(epsilon_at, spec.target_epsilon, high=1000.0, precise=precise))


def _answerable(draft: Plan, asked: str, method: Method) -> None:
    """Refuse a number in a view that has none, whatever the noise."""
    view = draft.spec.view
    assert view is not None
    if view in method.guarantee(draft.world).absent:
        raise BadInput(
            f"run: {asked}: the {view} view does not apply: {draft.guarantee.absent[view]}", "Choose another view"
        )
    answer = draft.ledger(draft.spec.rounds, method).answer(view)
    if answer.epsilon is None:
        raise BadInput(
            f"run: {asked}: there is no ε in the {view} view: {answer.reason}", "Choose another view or method"
        )


def parameters(world: World) -> int:
    return weights.count(world.weights)
