"""RunSpec: one training run, frozen, validated, and named by a short hash of its canonical JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from engine.attacks import ATTACKS
from engine.capabilities import HasNoise
from engine.datasets import DATASETS, Dataset
from engine.errors import BadInput, refusal
from engine.methods import METHODS, Method
from engine.models import MODELS, Model
from engine.part import Part, Problem
from engine.partitions import PARTITIONS, Partition
from engine.records import Local, View
from engine.registry import Shelf
from engine.specs.base import Spec, problems_of

SHELVES: Mapping[str, Shelf[Any]] = {
    "method": METHODS,
    "dataset": DATASETS,
    "model": MODELS,
    "partition": PARTITIONS,
    "attack": ATTACKS,
}


def default_delta(units: int) -> float:
    """The default δ: a tenth of 1/n, and at most 1e-5."""
    return min(1e-5, 1 / (10 * units))


class RunSpec(Spec):
    """A federated training run: its data and model, its clients, and its protection."""

    remedy: ClassVar[str] = "Remove `format` to run it as this version does"

    later: ClassVar[tuple[str, ...]] = (
        "momentum", "weight_decay", "honest_share", "delta", "target_epsilon", "view", "budget",
    )  # fmt: skip

    method: Annotated[Method, *METHODS.field()] = Field(
        "fedavg", title="method", description="How the clients train one model together"
    )  # type: ignore[assignment]
    dataset: Annotated[Dataset, *DATASETS.field()] = Field(
        "fashion-mnist", title="data set", description="The data that the clients learn from"
    )  # type: ignore[assignment]
    model: Annotated[Model, *MODELS.field()] = Field("mlp", title="model", description="The network that is trained")  # type: ignore[assignment]
    partition: Annotated[Partition, *PARTITIONS.field()] = Field(
        "iid", title="partition", description="How the data is divided among the clients"
    )  # type: ignore[assignment]
    rounds: int = Field(30, ge=0, le=10_000, title="rounds T", description="Number of rounds")
    clients: int = Field(100, ge=1, le=10_000, title="clients N", description="Number of clients")
    sampled: int = Field(
        10,
        ge=1,
        le=10_000,
        title="clients a round K",
        description="Clients that take part in a round; with poisson, their mean number",
    )
    sampling: Literal["poisson", "fixed", "all", "auto"] = Field(
        "auto",
        title="client sampling",
        description="How the clients of a round are drawn; auto: poisson for a method with a guarantee, else fixed",
    )
    epochs: int = Field(
        2, ge=1, le=1000, title="local epochs E", description="Passes of a client over its data in a round"
    )
    batch: int = Field(32, ge=1, le=10_000, title="batch B", description="Pictures in one local step")
    lr: float = Field(0.1, gt=0, le=100, title="learning rate", description="Size of a local step")
    momentum: float = Field(0.0, ge=0, lt=1, title="momentum", description="Momentum of the local steps")
    weight_decay: float = Field(0.0, ge=0, le=1, title="weight decay", description="Weight decay of the local steps")
    seed: int = Field(0, ge=0, le=2**53, title="seed", description="All random numbers of the run come from it")
    honest_share: float = Field(
        1.0, ge=0, le=1, title="honest share", description="The share of clients that add their noise."
    )
    delta: float | None = Field(
        None,
        ge=1e-100,
        lt=1,
        title="δ",
        description="The probability that ε does not hold; by default at most a tenth of 1/n",
    )
    target_epsilon: float | None = Field(
        None, gt=0, le=1e6, title="target ε", description="Find the noise that gives this ε."
    )
    budget: float | None = Field(
        None, gt=0, le=1e6, title="budget ε", description="Stop before the round that would exceed this ε."
    )
    view: View | None = Field(None, title="view", description="Who observes, for the target and the budget.")

    def __init__(self, /, **values: Any) -> None:  # a part is given by its name, as JSON, or as an object
        super().__init__(**values)

    @classmethod
    def label(cls) -> str:
        return "run"

    @model_validator(mode="after")
    def _resolve_fields(self) -> RunSpec:
        self._resolve_sampling()
        if self.method.unit() == "user" and self.delta == default_delta(self.clients):
            self._put("delta", None)  # the default, written out, is the same run
        self._resolve_privacy()
        return self

    def _resolve_sampling(self) -> None:
        if self.sampled > self.clients and self.sampling != "all":
            rule = f"must be at most the {self.clients} clients there are"
            raise refusal("run: sampled", rule, self.sampled, "Take fewer")
        if self.sampling == "all" and self.sampled != self.clients:
            if "sampled" in self.model_fields_set:
                rule = f"must be all {self.clients} clients where sampling is all"
                raise refusal("run: sampled", rule, self.sampled, "Leave it out")
            self._put("sampled", self.clients)
        if self.sampling == "auto":
            self._put("sampling", "poisson" if self.method.unit() else "fixed")

    def _resolve_privacy(self) -> None:
        if self.target_epsilon is None and self.budget is None:
            if self.view is not None:
                self._put("view", None)  # without a target or a budget, it changes nothing
            return
        if self.view is None:
            raise BadInput(
                "run: view: is missing; every view has its own ε",
                "Name who observes: server, aggregate, outsider or client",
            )
        if not isinstance(self.method, HasNoise):
            raise BadInput(
                f"{self.method.name}: has no noise, so a target ε or a budget does not apply",
                "Choose a method with noise, such as udp-fedavg",
            )
        if self.target_epsilon is not None:
            # The target decides the noise, so specs that differ only in their noise are one run with one id.
            self._put("method", self.method.with_noise(self.method.default_noise()))

    def _put(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def local(self) -> Local:
        return Local(self.epochs, self.batch, self.lr, self.momentum, self.weight_decay)

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.method, self.dataset, self.model, self.partition)

    def problems(self) -> tuple[Problem, ...]:
        """The problems that the parts find in this spec."""
        old_format = self.replay_problem()
        return (*([old_format] if old_format else []), *problems_of(self.parts, self))
