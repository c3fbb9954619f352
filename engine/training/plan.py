"""The plan of a run, built from its spec alone: the partition of the data, the first weights, δ and the noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from engine.capabilities import HasNoise
from engine.compute import weights
from engine.compute.sgd import parts_to_score
from engine.datasets.base import LoadedData
from engine.epsilon import Epsilon
from engine.errors import BadInput, refusal
from engine.methods import Method
from engine.part import Problem
from engine.partitions import Division, divide
from engine.privacy.ledger import Ledger
from engine.privacy.prv import PRV_LIMIT
from engine.privacy.solver import solve
from engine.records import VIEWS, Client, Guarantee, View, World
from engine.seeds import Cohort, Seeds
from engine.specs.base import problems_of
from engine.specs.run import RunSpec, default_delta
from engine.training.spending import Spending

SMALL = 200e6  # bytes: up to this size, partitioned data sets are kept for the next runs
MET = 0.99  # the share of a target from which on it counts as met
PartitionedData = tuple[tuple[Client, ...], Tensor]  # the clients with their pictures, and the test pictures


@dataclass(frozen=True)
class Plan:
    """Everything about a run that needs no picture: enough to compute ε, not to train."""

    spec: RunSpec
    method: Method  # with the noise that the run uses: a target ε decides it
    world: World
    delta: float
    train: tuple[Tensor, ...]  # for each client, the indices of its training pictures
    test: tuple[Tensor, ...]  # and of its test pictures
    labels: Tensor
    test_labels: Tensor
    last_round: int  # the last one that keeps the budget, if there is a budget
    spent: Ledger | None = None  # of all these rounds, where a target or a budget needed it already

    @cached_property
    def seeds(self) -> Seeds:
        return Seeds(self.spec.seed, self.spec.id)

    @cached_property
    def guarantee(self) -> Guarantee:
        guarantee = self.method.guarantee(self.world)
        if self.world.clients > 1:
            return guarantee
        return replace(guarantee, absent={**guarantee.absent, "client": "there is no other client"})

    def cohort(self, round: int) -> Cohort:
        return self.seeds.cohort(round, self.world.clients, self.world.sampled, self.world.sampling)

    def took_part(self, until: int) -> set[int]:
        """The clients that were in any round up to this one."""
        return {client for round in range(1, until + 1) for client in self.cohort(round)}

    def ledger(self, rounds: int, method: Method | None = None) -> Ledger:
        """The cost of the first `rounds` rounds. It is exact before the run: the seed decides who takes part."""
        ledger = Ledger(self.world.clients, self.delta)
        for round in range(1, rounds + 1):
            ledger.add((method or self.method).releases(self.world, round, self.cohort(round)))
        return ledger

    def answers(self, ledger: Ledger, precise: bool = False) -> tuple[Epsilon, ...]:
        """ε of every view that applies; 0 where nothing was released. `precise` adds quantiles over the clients."""
        answers: list[Epsilon] = []
        for view in VIEWS:
            if view not in self.guarantee.absent:
                answer = ledger.answer(view, precise, quantiles=precise)
                answers.append(replace(answer, unit=self.method.unit() or answer.unit))
        return tuple(answers)

    @cached_property
    def spending(self) -> Spending:
        return Spending(self.world, self.cohort)

    def final_ledger(self) -> Ledger:
        """The cost of the whole run. It may differ from that of the run itself in the last bits (see `Sums`)."""
        return self.spent or self.spending.after(self.last_round, self.method)

    def counts(self) -> dict[str, Tensor]:
        """The number of pictures of each class that each client has: (clients, classes)."""
        return {"train": self._count(self.labels, self.train), "test": self._count(self.test_labels, self.test)}

    def _count(self, labels: Tensor, parts: Sequence[Tensor]) -> Tensor:
        return torch.stack([torch.bincount(labels[places], minlength=self.world.classes) for places in parts])


@dataclass(frozen=True)
class LoadedPlan(Plan):
    """A plan with its data: the training pictures of each client, and the test pictures."""

    clients: tuple[Client, ...] = ()
    test_x: Tensor = field(default_factory=lambda: torch.empty(0, device="cpu"))

    def client(self, id: int) -> Client:
        return self.clients[id]

    @cached_property
    def test_parts(self) -> list[Tensor]:
        """The test pictures, ready to be scored."""
        return parts_to_score(self.world, self.test_x)


def make_plan(spec: RunSpec, precise: bool = True) -> Plan:
    """Partition the labels, draw the first weights, and settle δ and the noise. This reads no picture.

    Without `precise`, the noise for a target ε is found in a tenth of the time. It is a little more than a run uses.
    """
    spec.refuse_replay()
    facts = spec.dataset.facts()
    _refuse_fatal(spec)
    seeds = Seeds(spec.seed)
    division = divide(spec.partition, facts.train_y, facts.test_y, spec.clients, seeds, spec.dataset.noun)
    world = _world(spec, facts, division)
    _refuse_first(misfits(spec, world))
    parts = (tuple(division.train), tuple(division.test))
    plan = Plan(spec, spec.method, world, world.delta, *parts, facts.train_y, facts.test_y, spec.rounds)
    _refuse_first(spec.method.shortages(spec, plan.counts()["train"], world))
    if spec.target_epsilon is not None:
        plan = _solved(plan, precise)
    if spec.budget is not None:
        plan = _within_budget(plan)
    return plan


def load_plan(spec: RunSpec, device: str = "cpu") -> LoadedPlan:
    """The plan with its data in memory, on `device`."""
    plan = make_plan(spec)
    data = spec.dataset.load()
    key = (spec.dataset, spec.partition, spec.clients, spec.seed, device)
    partitioned = _last.get(data.train_x, key)
    if partitioned is None:
        partitioned = _last.keep(data.train_x, key, _partitioned(plan, data, device))
    clients, test_x = partitioned
    first_weights = {name: tensor.to(device) for name, tensor in plan.world.weights.items()}
    values = {name: getattr(plan, name) for name in Plan.__dataclass_fields__}
    values["spent"] = None  # a run adds up its own ledger
    values["world"] = replace(plan.world, weights=first_weights)
    values["test_labels"] = data.test_y.to(device)
    return LoadedPlan(**values, clients=clients, test_x=test_x)


def _partitioned(plan: Plan, data: LoadedData, device: str) -> PartitionedData:
    sizes = list(plan.world.sizes)
    y = data.train_y[torch.cat(plan.train)].to(device)
    x = data.train_x.new_empty(len(y), *plan.world.shape)
    for places, part in zip(plan.train, x.split(sizes), strict=True):  # one client at a time, which fits into the cache
        torch.index_select(data.train_x, 0, places, out=part)
        data.normal_(part)
    clients: list[Client] = []
    for id, (own_x, own_y) in enumerate(zip(x.to(device).split(sizes), y.split(sizes), strict=True)):
        clients.append(Client(id, own_x, own_y))
    return tuple(clients), data.normal_(data.test_x.clone()).to(device)


class PartitionedDataCache:
    """The last partitioned data sets that together are small: the runs of a sweep need one for each seed."""

    def __init__(self) -> None:
        self._entries: dict[object, tuple[Tensor, PartitionedData]] = {}  # the last used one is the last

    def get(self, source: Tensor, key: object) -> PartitionedData | None:
        """The cached data, if it was made from this very tensor: the data set may have been read again since."""
        entry = self._entries.pop(key, None)
        if entry is None or entry[0] is not source:
            return None
        self._entries[key] = entry
        return entry[1]

    def keep(self, source: Tensor, key: object, data: PartitionedData) -> PartitionedData:
        self._entries[key] = (source, data)
        while self._entries and self._size() > SMALL:
            del self._entries[next(iter(self._entries))]
        return data

    def _size(self) -> int:
        return sum(source.nbytes for source, _ in self._entries.values())


_last = PartitionedDataCache()


def _world(spec: RunSpec, facts: Any, division: Division) -> World:
    sizes = tuple(len(places) for places in division.train)
    build = partial(spec.model.build, facts.shape, len(facts.classes))
    module = build(Seeds(spec.seed).rng("weights"))
    first_weights = {name: tensor.detach().clone() for name, tensor in module.named_parameters()}
    return World(
        weights=first_weights,
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
        delta=_delta(spec, sum(sizes)),
        held=division.held,
    )


def _delta(spec: RunSpec, records: int) -> float:
    units = records if spec.method.unit() == "record" else spec.clients
    noun = spec.dataset.noun if spec.method.unit() == "record" else "clients"
    if spec.delta is None:
        return default_delta(units)
    if spec.delta >= 1 / units:
        rule = f"must be below 1/n = {1 / units:.3g} for {units} {noun}"
        raise refusal("run: delta", rule, spec.delta, "A larger δ would allow a method to publish one of them")
    return spec.delta


def misfits(spec: RunSpec, world: World) -> tuple[Problem, ...]:
    """What the parts find wrong with the sizes, classes and model of this world."""
    return tuple(problem for part in spec.parts for problem in part.misfits(spec, world))


def _refuse_fatal(spec: RunSpec) -> None:
    # `divide` checks the partition
    _refuse_first(problems_of((spec.dataset, spec.model, spec.method), spec))


def _refuse_first(problems: Iterable[Problem]) -> None:
    for problem in problems:
        if problem.fatal:
            raise BadInput(problem.reason, problem.remedy)


@dataclass(frozen=True)
class NoiseSearch:
    """The search for the least noise that keeps an ε over all rounds, in one view."""

    plan: Plan
    view: View
    ledger_at: Callable[[float, Sequence[View] | None], Ledger]

    def least(self, target: float, precise: bool) -> float:
        """The least noise that keeps the target. Without `precise` it is a little more, and found sooner."""

        def epsilon_at(noise: float, precise: bool) -> float | None:
            return self.answer(noise, precise).value

        method = self.plan.method
        assert isinstance(method, HasNoise)
        return solve(epsilon_at, target, high=method.most_noise(), precise=precise)

    def answer(self, noise: float, precise: bool = False) -> Epsilon:
        """ε at this noise."""
        answer = self.ledger_at(noise, (self.view,)).answer(self.view, precise=precise)
        return replace(answer, unit=self.plan.method.unit() or answer.unit)


def noise_search(plan: Plan, view: View, field: str) -> NoiseSearch:
    """The search for a method with noise. Raises BadInput, which names the field, where the view has no ε."""
    method = plan.method
    assert isinstance(method, HasNoise)
    _refuse_absent_view(plan, view, field)
    search = NoiseSearch(plan, view, plan.spending.by_noise(method))
    _refuse_without_epsilon(search.answer(method.default_noise()), view, field)
    return search


def _solved(plan: Plan, precise: bool) -> Plan:
    """The plan with the least noise that keeps the target ε over all rounds, in the view of the spec."""
    spec = plan.spec
    assert spec.target_epsilon is not None and spec.view is not None and isinstance(spec.method, HasNoise)
    search = noise_search(plan, spec.view, "target-epsilon")
    noise = search.least(spec.target_epsilon, precise)
    return replace(plan, method=spec.method.with_noise(noise), spent=search.ledger_at(noise, None))


def missed_target(plan: Plan) -> tuple[Problem, ...]:
    """A remark where the number that the run reports is below its target, and no noise reports the target itself."""
    spec = plan.spec
    if spec.target_epsilon is None or spec.view is None:
        return ()
    ledger = plan.final_ledger()
    bound = ledger.answer(spec.view)
    if bound.accountant != "rdp" or bound.value is None or not PRV_LIMIT * MET <= bound.value <= PRV_LIMIT:
        return ()
    reported = ledger.answer(spec.view, precise=True)
    if reported.accountant != "prv" or reported.value is None or reported.value >= spec.target_epsilon * MET:
        return ()
    reason = (
        f"the noise for the target ε = {spec.target_epsilon:g} was solved with RDP, which is an upper bound: "
        f"PRV reports ε = {reported.value:.4g} in the {spec.view} view. "
        f"PRV is computed only where RDP is at most {PRV_LIMIT:g}, and less noise exceeds that"
    )
    return (Problem(reason, f"A target of at most {reported.value:.4g} is met", fatal=False),)


def _within_budget(plan: Plan) -> Plan:
    """The plan with the last round that keeps the budget, in the view of the spec."""
    spec = plan.spec
    assert spec.budget is not None and spec.view is not None
    _refuse_absent_view(plan, spec.view, "budget")
    full = plan.final_ledger()
    _refuse_without_epsilon(full.answer(spec.view), spec.view, "budget")
    if not full.exceeds(spec.view, spec.budget):
        return replace(plan, spent=full)
    last, ledger = plan.spending.last_within(plan.method, spec.view, spec.budget)
    return replace(plan, last_round=last, spent=ledger)


def _refuse_absent_view(plan: Plan, view: View, field: str) -> None:
    if view in plan.guarantee.absent:
        reason = f"the {view} view does not apply: {plan.guarantee.absent[view]}"
        raise BadInput(f"run: {field}: {reason}", "Choose another view")


def _refuse_without_epsilon(answer: Epsilon, view: View, field: str) -> None:
    """Refuse a target or a budget in a view that has no ε at any noise."""
    if answer.value is None:
        reason = f"there is no ε in the {view} view: {answer.reason}"
        raise BadInput(f"run: {field}: {reason}", "Choose another view or method")


def parameters(world: World) -> int:
    return weights.count(world.weights)
