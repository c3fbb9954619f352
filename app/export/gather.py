"""Reads the content of an exported page from the store: a run, its baseline, and the attacks on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.session import run_settings
from app.texts import privacy
from app.texts.membership import is_membership
from engine.epsilon import Epsilon
from engine.errors import BadInput, LeakLensError, UnknownName
from engine.events import Event, Scored, Spent, Started
from engine.examples.files import RunExample
from engine.jobs.status import ListedRun
from engine.jobs.store import Store
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell, AttackEvents
from engine.specs import attack_grid
from engine.specs.attack_grid import RequestedAttack

if TYPE_CHECKING:
    from engine.specs.attack import BaseAttackSpec
    from engine.specs.run import RunSpec

MOST = 24  # attacks on one page


@dataclass(frozen=True)
class ExportedRun:
    """The run of the page. If it was never requested itself, the page has only its spec and its forecast."""

    spec: Mapping[str, Any]
    listed: ListedRun | None
    events: tuple[Event, ...]
    epsilons: tuple[Epsilon, ...]  # in the order of privacy.VIEWS
    guarantee: Mapping[str, Any] | None
    baseline: tuple[Event, ...] = ()  # the events of the baseline, if it has finished
    is_baseline: bool = False  # the method has no protection

    @property
    def settings(self) -> Mapping[str, Any]:
        """The spec as flat settings."""
        return run_settings.flat(self.spec)

    @property
    def recorded(self) -> bool:
        """Whether the store has events of the run."""
        return bool(self.events)


@dataclass(frozen=True)
class ExportedAttack:
    """One finished attack, and the same attack on the baseline."""

    id: str
    spec: Mapping[str, Any]
    cell: AttackCell
    baseline: AttackCell | None
    classes: tuple[str, ...]

    @property
    def upload(self) -> str:
        """A key of the attacked upload. One that the server obtained by changing the model has its own section."""
        facts = self.cell.seen.facts if self.cell.seen else {}
        words = [self.spec.get(name) for name in ("pictures", "upload", "round", "client", "view")]
        return repr([*words, bool(facts.get("tampered"))])

    @property
    def noise_region(self) -> tuple[float, float] | None:
        """The noise over signal at which the pictures are expected to disappear; None without an upload."""
        from engine.specs.run import RunSpec
        from engine.training.forecast import cliff_region

        facts = self.cell.seen.facts if self.cell.seen else {}
        pictures, parameters = facts.get("pictures"), facts.get("numbers")
        if not pictures or not parameters:
            return None
        run = RunSpec(**self.spec["run"])
        return cliff_region(run.model, pictures * math.prod(run.dataset.shape), parameters)

    @property
    def cells(self) -> tuple[AttackCell, ...]:
        """The baseline first, if there is one."""
        return (self.cell,) if self.baseline is None else (self.baseline, self.cell)


@dataclass(frozen=True)
class ExportedMembership:
    """A finished membership attack, and the same attack on the baseline, if the store has it."""

    id: str
    spec: Mapping[str, Any]
    title: str
    scored: Scored
    baseline: Scored | None


@dataclass(frozen=True)
class PageContent:
    """The content of one page."""

    id: str
    listed: ListedRun | None  # None for an example
    run: ExportedRun
    attacks: tuple[ExportedAttack, ...]
    left_out: int = 0
    memberships: tuple[ExportedMembership, ...] = ()
    not_here: int = 0  # attacks of packages that are not installed
    stored: RunExample | None = None

    @property
    def is_attack(self) -> bool:
        """Whether the page is about one attack, not about a run."""
        return self.listed is not None and "attack" in self.listed.spec

    @property
    def uploads(self) -> list[list[ExportedAttack]]:
        """The attacks, grouped by the attacked upload."""
        groups: dict[str, list[ExportedAttack]] = {}
        for attack in self.attacks:
            groups.setdefault(attack.upload, []).append(attack)
        return list(groups.values())


def everything(run: ListedRun) -> bool:
    """The command line owns the machine, and sees every run."""
    del run
    return True


def find(store: Store, run: str, may_see: Callable[[ListedRun], bool] = everything) -> PageContent:
    """The content of a run with all its attacks, or of one attack. Refused if there is no result yet."""
    listed = store.run(run)
    if "attack" in listed.spec:
        if listed.status != "finished":
            raise BadInput(f"export: attack {run}: must be finished, is {listed.status}", _remedy(listed.status))
        spec = listed.spec["run"]
        rows = [listed]
        target = _recorded_run(store, spec)
    else:
        if listed.status in ("queued", "running") or not _events(store, run):
            raise BadInput(
                f"export: run {run}: must have results and be over, is {listed.status}", _remedy(listed.status)
            )
        spec = listed.spec
        rows = [row for row in store.runs() if row.spec.get("run") == spec and row.status == "finished"]
        rows = [row for row in rows if may_see(row)]
        target = listed
    rows = sorted(rows, key=lambda row: (row.submitted, row.id))
    exported = _run(store, spec, target)
    known = [row for row in rows if row is listed or _attack_is_here(row.spec)]
    shown = known[-MOST:]
    attacks = tuple(_attack(store, row, exported) for row in shown if not is_membership(row.spec))
    memberships = tuple(_membership(store, row) for row in shown if is_membership(row.spec))
    return PageContent(run, listed, exported, attacks, len(known) - len(shown), memberships, len(rows) - len(known))


def finished_runs(store: Store, runs: Iterable[ListedRun]) -> dict[str, ExportedRun]:
    """The content of those of these runs that have finished, by their id."""
    return {run.id: _run(store, run.spec, run) for run in runs if _finished(store, run.id)}


def _attack_is_here(spec: Mapping[str, Any]) -> bool:
    from engine.specs.attack import attack_spec

    try:
        attack_spec(spec)
    except UnknownName:
        return False
    return True


def _recorded_run(store: Store, spec: Mapping[str, Any]) -> ListedRun | None:
    """The run with this spec, if the store has its events."""
    for row in store.runs():
        if row.spec == spec and _events(store, row.id):
            return row
    return None


def _remedy(status: str) -> str:
    return "Wait until it has finished" if status in ("queued", "running") else "Run it again, then export it"


def _events(store: Store, run: str) -> tuple[Event, ...]:
    """The events of a run, or none if it never started."""
    events = tuple(event for _, event in store.events(run))
    return events if any(isinstance(event, Started) for event in events) else ()


# --- the run -----------------------------------------------------------------------------------------------


def _run(store: Store, spec: Mapping[str, Any], listed: ListedRun | None) -> ExportedRun:
    run_spec = run_settings.spec_of(run_settings.flat(spec))
    baseline = attack_grid.baseline_of(run_spec)
    baseline_events = _finished(store, baseline.id) if baseline else ()
    is_baseline = baseline is None
    if listed is None:
        epsilons, guarantee = _forecast(run_spec)
        return ExportedRun(spec, None, (), epsilons, guarantee, (), is_baseline)
    return recorded_run(spec, listed, _events(store, listed.id), baseline_events, is_baseline)


def recorded_run(
    spec: Mapping[str, Any],
    listed: ListedRun | None,
    events: tuple[Event, ...],
    baseline: tuple[Event, ...],
    is_baseline: bool,
) -> ExportedRun:
    """A run with its events: its last ε of every view, and its guarantee."""
    last = {event.view: event.total for event in events if isinstance(event, Spent)}
    epsilons = tuple(last[view] for view in privacy.VIEWS if view in last)
    started = next(event for event in events if isinstance(event, Started))
    return ExportedRun(spec, listed, events, epsilons, started.facts.get("guarantee"), baseline, is_baseline)


def _finished(store: Store, run: str) -> tuple[Event, ...]:
    """The events of a finished run, or none."""
    try:
        return _events(store, run) if store.status(run) == "finished" else ()
    except LeakLensError:
        return ()


def _forecast(spec: RunSpec) -> tuple[tuple[Epsilon, ...], Mapping[str, Any] | None]:
    """The ε and the guarantee of the whole run. The forecast needs no training."""
    from engine.training.forecast import forecast

    result = forecast(spec)
    answers = {answer.view: answer for answer in result.answers}
    epsilons = tuple(answers[view] for view in privacy.VIEWS if view in answers)
    guarantee = result.guarantee
    if guarantee is None:
        return epsilons, None
    return epsilons, {"status": guarantee.status, "reason": guarantee.reason, "absent": dict(guarantee.absent)}


# --- the attacks -------------------------------------------------------------------------------------------


def _attack(store: Store, listed: ListedRun, run: ExportedRun) -> ExportedAttack:
    events = tuple(event for _, event in store.events(listed.id))
    started = next((event for event in events if isinstance(event, Started)), None)
    classes = tuple(started.facts.get("classes", ())) if started else ()
    column = attack_grid.NONE if run.is_baseline else attack_grid.OF_RUN
    cell = _cell(column, attack_name(listed.spec), events)
    baseline = None if run.is_baseline else _baseline_cell(store, listed.spec)
    return ExportedAttack(listed.id, listed.spec, cell, baseline, classes)


def _membership(store: Store, listed: ListedRun) -> ExportedMembership:
    scored = _scored(event for _, event in store.events(listed.id))
    assert scored is not None
    baseline = _baseline_attack(listed.spec)
    title = run_settings.attack_title(attack_name(listed.spec))
    known = _scored(_finished(store, baseline.id)) if baseline else None
    return ExportedMembership(listed.id, listed.spec, title, scored, known)


def _scored(events: Iterable[Event]) -> Scored | None:
    return next((event for event in events if isinstance(event, Scored)), None)


def _cell(column: str, name: str, events: tuple[Event, ...]) -> AttackCell:
    return attack_summary.collect_cell(RequestedAttack(column, name, None), AttackEvents("finished", events))


def _baseline_cell(store: Store, spec: Mapping[str, Any]) -> AttackCell | None:
    """The same attack on the same upload of the baseline, if the store has its result."""
    attack = _baseline_attack(spec)
    events = _finished(store, attack.id) if attack else ()
    return _cell(attack_grid.NONE, attack_name(spec), events) if events else None


def _baseline_attack(spec: Mapping[str, Any]) -> BaseAttackSpec | None:
    """The same attack on the baseline of its run; None if the run has no baseline."""
    from engine.specs.attack import attack_spec
    from engine.specs.run import RunSpec

    baseline = attack_grid.baseline_of(RunSpec(**spec["run"]))
    return attack_spec({**spec, "run": baseline.canonical()}) if baseline else None


def attack_name(spec: Mapping[str, Any]) -> str:
    """The registered name of the attack in a spec."""
    part = spec["attack"]
    return str(part["name"] if isinstance(part, Mapping) else part)
