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
from engine.datasets.base import LoadedData
from engine.epsilon import Epsilon
from engine.errors import BadInput, refusal
from engine.methods import Method
from engine.part import Problem
from engine.partitions import Division, divide
from engine.privacy.ledger import Ledger
from engine.privacy.solver import solve
from engine.records import VIEWS, Client, Gaussian, Guarantee, NoNoise, View, World
from engine.seeds import Seeds
from engine.specs.base import problems_of
from engine.specs.run import RunSpec, default_delta

SMALL = 200e6  # bytes: up to this size, a partitioned data set is kept for the next run
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

    @property
    def seeds(self) -> Seeds:
        return Seeds(self.spec.seed)

    @cached_property
    def guarantee(self) -> Guarantee:
        guarantee = self.method.guarantee(self.world)
        if self.world.clients > 1:
            return guarantee
        return replace(guarantee, absent={**guarantee.absent, "client": "there is no other client"})

    def cohort(self, round: int) -> tuple[int, ...]:
        return self.seeds.cohort(round, self.world.clients, self.world.sampled, self.world.sampling)

    def took_part(self, until: int) -> set[int]:
        """The clients that were in any round up to this one."""
        return {client for round in range(1, until + 1) for client in self.cohort(round)}

    def ledger(self, rounds: int, method: Method | None = None) -> Ledger:
        """The cost of the first `rounds` rounds. It is exact before the run: the seed decides who takes part."""
        return self._continued(Ledger(self.world.clients, self.delta), 0, rounds, method or self.method)

    def answers(self, ledger: Ledger, precise: bool = False) -> tuple[Epsilon, ...]:
        """ε of every view that applies; 0 where nothing was released. `precise` adds quantiles over the clients."""
        answers: list[Epsilon] = []
        for view in VIEWS:
            if view not in self.guarantee.absent:
                answer = ledger.answer(view, precise, quantiles=precise)
                answers.append(replace(answer, unit=self.method.unit() or answer.unit))
        return tuple(answers)

    @cached_property
    def last_round(self) -> int:
        """The last round of the run: the last one that keeps the budget, if there is a budget."""
        spec = self.spec
        if spec.budget is None or spec.view is None:
            return spec.rounds
        return self._last_within(spec.view, spec.budget)

    def _last_within(self, view: View, budget: float) -> int:
        """The last round that keeps the budget: rounds are doubled, then halved, on copies of one ledger."""
        low, kept = 0, Ledger(self.world.clients, self.delta)
        high = min(1, self.spec.rounds)
        while high > low:
            ledger = self._continued(kept, low, high, self.method)
            if ledger.exceeds(view, budget):
                break
            low, kept = high, ledger
            high = min(2 * high, self.spec.rounds)
        while high - low > 1:
            middle = (low + high) // 2
            ledger = self._continued(kept, low, middle, self.method)
            if ledger.exceeds(view, budget):
                high = middle
            else:
                low, kept = middle, ledger
        return low

    def _continued(self, ledger: Ledger, after: int, until: int, method: Method) -> Ledger:
        """A copy of the ledger with the rounds that follow."""
        longer = ledger.copy()
        for round in range(after + 1, until + 1):
            longer.add(method.releases(self.world, round, self.cohort(round)))
        return longer

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
    plan = Plan(spec, spec.method, world, world.delta, *parts, facts.train_y, facts.test_y)
    if spec.target_epsilon is not None:
        plan = replace(plan, method=_solved(plan, precise))
    if spec.budget is not None and spec.view is not None:
        _refuse_without_epsilon(plan, "budget", plan.method)
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
    """The last partitioned data set, if it is small: the next run of a sweep usually needs the same one."""

    def __init__(self) -> None:
        self._entry: tuple[Tensor, object, PartitionedData] | None = None

    def get(self, source: Tensor, key: object) -> PartitionedData | None:
        """The cached data, if it was made from this very tensor: the data set may have been read again since."""
        if self._entry is None:
            return None
        cached_source, cached_key, data = self._entry
        return data if cached_source is source and cached_key == key else None

    def keep(self, source: Tensor, key: object, data: PartitionedData) -> PartitionedData:
        self._entry = (source, key, data) if source.nbytes <= SMALL else None
        return data


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


def _solved(plan: Plan, precise: bool) -> Method:
    """The method with the least noise that keeps the target ε over all rounds, in the view of the spec."""
    spec = plan.spec
    view = spec.view
    assert spec.target_epsilon is not None and view is not None and isinstance(spec.method, HasNoise)
    ledger_at = _ledger_by_noise(plan, view)

    def epsilon_at(noise: float, precise: bool) -> float | None:
        return ledger_at(noise).answer(view, precise=precise).value

    _refuse_without_epsilon(plan, "target-epsilon", spec.method.with_noise(spec.method.default_noise()))
    noise = solve(epsilon_at, spec.target_epsilon, high=spec.method.most_noise(), precise=precise)
    return spec.method.with_noise(noise)


def _ledger_by_noise(plan: Plan, view: View) -> Callable[[float], Ledger]:
    """The ledger of all rounds in one view, for any noise.

    Where the noise scales every Gaussian, the rounds are added once. A search tries ten noises or more.
    """
    spec = plan.spec
    assert isinstance(spec.method, HasNoise)
    cohorts = [plan.cohort(round) for round in range(1, spec.rounds + 1)]

    def added(noise: float) -> Ledger:
        assert isinstance(spec.method, HasNoise)
        method = spec.method.with_noise(noise)
        ledger = Ledger(plan.world.clients, plan.delta)
        for round, cohort in enumerate(cohorts, start=1):
            releases = method.releases(plan.world, round, cohort)
            ledger.add(release for release in releases if release.view == view)
        return ledger

    if not _scales_with_noise(plan, spec.method, cohorts):
        return added
    unit = added(1.0)
    return unit.with_noise


def _scales_with_noise(plan: Plan, method: HasNoise, cohorts: Sequence[tuple[int, ...]]) -> bool:
    """Whether twice the noise doubles every Gaussian of a release, tried in rounds of every kind."""
    rounds = {*range(1, 4), *plan.method.landmarks(plan.world)[:2], len(cohorts)}
    single, double = method.with_noise(1.0), method.with_noise(2.0)
    assert isinstance(single, Method) and isinstance(double, Method)
    for round in sorted(rounds & {*range(1, len(cohorts) + 1)}):
        pairs = zip(
            single.releases(plan.world, round, cohorts[round - 1]),
            double.releases(plan.world, round, cohorts[round - 1]),
            strict=True,
        )
        for first, second in pairs:
            law = first.mechanism
            doubled = replace(law, z=2 * law.z) if isinstance(law, Gaussian) else law
            if doubled != second.mechanism or not isinstance(law, Gaussian | NoNoise):
                return False
    return True


def _refuse_without_epsilon(plan: Plan, field: str, method: Method) -> None:
    """Refuse a target or a budget in a view that has no ε at any noise."""
    view = plan.spec.view
    assert view is not None
    if view in plan.guarantee.absent:
        reason = f"the {view} view does not apply: {plan.guarantee.absent[view]}"
        raise BadInput(f"run: {field}: {reason}", "Choose another view")
    answer = plan.ledger(plan.spec.rounds, method).answer(view)
    if answer.value is None:
        reason = f"there is no ε in the {view} view: {answer.reason}"
        raise BadInput(f"run: {field}: {reason}", "Choose another view or method")


def parameters(world: World) -> int:
    return weights.count(world.weights)
