"""A grid of attacks: every attack against every protection of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from engine.capabilities import HasIterations
from engine.errors import LeakLensError, plain_number

if TYPE_CHECKING:
    from engine.specs.attack import AttackSpec
    from engine.specs.run import RunSpec

NONE = "none"  # the column of the baseline
OF_RUN = "run"  # the column of the run as it was requested
NOISY = "udp-fedavg"  # the method of the columns with noise
# Fields of a run that its baseline does not have, and those that another protection does not take over.
NOT_IN_BASELINE = ("format", "method", "honest-share", "delta", "target-epsilon", "budget", "view")
NOT_UNDER_OTHERS = ("format", "method", "target-epsilon", "budget", "view")
# Fields of the method in every column. Each upload carries the whole noise, so the guarantee holds against a server
# that sees single uploads. With another split an upload carries less noise, and the view of the server loses this ε.
EVERY_COLUMN = {"noise-split": "full-local"}


def column_key(method: str, noise: float) -> str:
    """The key of the column of a method with this noise."""
    return f"{method}:{plain_number(noise)}"


def budget_key(method: str, epsilon: float) -> str:
    """The key of the column of a method with the noise that keeps its ε at this budget."""
    return f"{method}@{plain_number(epsilon)}"


def budget_of(column: str) -> float | None:
    """The budget of a column; None for a column whose noise is given."""
    _, at, epsilon = column.partition("@")
    return float(epsilon) if at else None


@dataclass(frozen=True)
class RequestedAttack:
    """One cell of the grid: an attack, or the reason why it cannot run."""

    column: str
    attack: str
    spec: AttackSpec | None
    problem: str = ""

    @property
    def id(self) -> str:
        return "" if self.spec is None else self.spec.id


@dataclass(frozen=True)
class AttackGrid:
    """What a grid is made of."""

    run: RunSpec
    columns: tuple[str, ...]  # the keys of the protections; the baseline is always there
    attacks: tuple[str, ...]
    pictures: tuple[str, ...] = ("test-0",)
    upload: str = "listed"
    view: str = "server"
    round: int | str = "first"
    restarts: int = 1
    iterations: int | None = None  # of attacks that search; None: the default of each attack
    seed: int = 0

    def with_(self, **changes: Any) -> AttackGrid:
        """The same grid with other values."""
        return replace(self, **changes)

    def runs(self) -> dict[str, RunSpec]:
        """The run of each column by its key, the baseline first. Two keys with the same run make one column."""
        by_id: dict[str, tuple[str, RunSpec]] = {}
        for column in (NONE, *self.columns):
            spec = run_under(self.run, column, self.view)
            by_id.setdefault(spec.id, (column, spec))
        return dict(by_id.values())

    @lru_cache(maxsize=500)  # noqa: B019  (a page asks for the same grids at every pass; a grid is small)
    def requests(self) -> tuple[RequestedAttack, ...]:
        """Every attack against every protection, row by row."""
        requests = []
        runs = self.runs()
        for attack in self.attacks:
            for column, run in runs.items():
                try:
                    request = RequestedAttack(column, attack, self._attack(attack, run))
                except LeakLensError as error:
                    request = RequestedAttack(column, attack, None, str(error))
                requests.append(request)
        return tuple(requests)

    def _attack(self, attack: str, run: RunSpec) -> AttackSpec:
        from engine.specs.attack import AttackSpec
        from engine.specs.run import SHELVES

        part: dict[str, Any] = {"name": attack}
        if self.iterations is not None and issubclass(SHELVES["attack"][attack], HasIterations):
            part["iterations"] = self.iterations
        return AttackSpec(
            run=run, attack=part, pictures=self.pictures, upload=self.upload, view=self.view, round=self.round,
            restarts=self.restarts, seed=self.seed,
        )  # fmt: skip


def baseline_of(spec: RunSpec) -> RunSpec | None:
    """The baseline: the same run without protection; None for a method that protects nothing."""
    from engine.specs.run import RunSpec

    method = spec.method.baseline()
    if method is None:
        return None
    kept = {name: value for name, value in spec.canonical().items() if name not in NOT_IN_BASELINE}
    return RunSpec(**kept, method=method)


def run_under(base: RunSpec, column: str, view: str = "server") -> RunSpec:
    """The same run under the protection with this key. A budget is that of `view`."""
    from engine.specs.run import SHELVES, RunSpec

    if column == NONE:
        return baseline_of(base) or base
    if column == OF_RUN:
        return base
    budget = budget_of(column)
    name, _, noise = column.partition("@")[0].partition(":")
    fields = SHELVES["method"][name].model_fields
    method: dict[str, Any] = {"name": name}
    if noise and "noise" in fields:
        method["noise"] = float(noise)
    method |= {field: value for field, value in EVERY_COLUMN.items() if field.replace("-", "_") in fields}
    kept = {field: value for field, value in base.canonical().items() if field not in NOT_UNDER_OTHERS}
    if budget is not None:
        kept |= {"target-epsilon": budget, "view": view}
    return RunSpec(**kept, method=method)


def cost(spec: AttackSpec) -> int:
    """The number of search steps, 0 for an attack that does not search."""
    return (spec.attack.iterations if isinstance(spec.attack, HasIterations) else 0) * spec.restarts


def in_order(requests: Sequence[RequestedAttack]) -> list[RequestedAttack]:
    """The attacks in the order to submit: those without a search, the baseline, then column by column.

    Requests without a spec are left out.
    """
    columns_in_order = list(dict.fromkeys(request.column for request in requests))
    ranked = []
    for request in requests:
        if request.spec is not None:
            steps = cost(request.spec)
            rank = (steps > 0, columns_in_order.index(request.column), steps)
            ranked.append((rank, request))
    ranked.sort(key=lambda pair: pair[0])
    return [request for _, request in ranked]
