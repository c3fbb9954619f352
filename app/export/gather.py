"""What a page shows, gathered from the store: a run, its twin without protection, and the attacks on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.session import run_settings
from app.texts import privacy
from engine.errors import BadInput, LeakLensError
from engine.events import Event, Spent, Started
from engine.jobs.status import ListedRun
from engine.jobs.store import Store
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell, AttackEvents
from engine.specs import attack_grid
from engine.specs.attack_grid import RequestedAttack

if TYPE_CHECKING:
    from engine.specs.run import RunSpec

MOST = 24  # attacks on one page


@dataclass(frozen=True)
class ExportedEpsilon:
    """ε of one view with the words that must stand beside it."""

    view: str
    epsilon: float | None
    unit: str
    adjacency: str
    delta: float
    accountant: str
    sampling: str
    bound: str
    reason: str

    @classmethod
    def of(cls, said: Any) -> ExportedEpsilon:
        return cls(**{name: getattr(said, name) for name in cls.__annotations__})


@dataclass(frozen=True)
class ExportedRun:
    """The run that the page is about; of one that was never asked for itself only the question is known."""

    spec: Mapping[str, Any]
    listed: ListedRun | None
    events: tuple[Event, ...]
    bills: tuple[ExportedEpsilon, ...]  # the least seeing view first
    guarantee: Mapping[str, Any] | None
    twin: tuple[Event, ...] = ()  # the same without protection, where that was run, too
    bare: bool = False  # nothing protects it: it is its own control

    @property
    def part(self) -> Mapping[str, Any]:
        return run_settings.flat(self.spec)

    @property
    def known(self) -> bool:
        return bool(self.events)


@dataclass(frozen=True)
class ExportedAttack:
    """One finished attack, and the same attack where nothing is protected."""

    id: str
    spec: Mapping[str, Any]
    mine: AttackCell
    control: AttackCell | None
    classes: tuple[str, ...]

    @property
    def case(self) -> str:
        """Attacks with the same pictures, round and view stand together."""
        return repr([self.spec.get(name) for name in ("pictures", "round", "client", "view")])

    @property
    def cells(self) -> tuple[AttackCell, ...]:
        return (self.mine,) if self.control is None else (self.control, self.mine)


@dataclass(frozen=True)
class PageContent:
    """Everything of one page."""

    id: str
    asked: ListedRun
    run: ExportedRun
    attacks: tuple[ExportedAttack, ...]
    left_out: int = 0

    @property
    def of_attack(self) -> bool:
        return "attack" in self.asked.spec

    @property
    def cases(self) -> list[list[ExportedAttack]]:
        found: dict[str, list[ExportedAttack]] = {}
        for one in self.attacks:
            found.setdefault(one.case, []).append(one)
        return list(found.values())


def find(store: Store, run: str) -> PageContent:
    """A run with every attack on it, or the one attack that is named; refused where there is nothing to show yet."""
    asked = store.run(run)
    if "attack" in asked.spec:
        if asked.status != "finished":
            raise BadInput(f"export: attack {run}: is {asked.status}: it has no answer to show", _remedy(asked.status))
        rows, whole = [asked], asked.spec["run"]
        home = next((one for one in store.runs() if one.spec == whole and _told(store, one.id)), None)
    else:
        if asked.status in ("queued", "running") or not _told(store, run):
            raise BadInput(f"export: run {run}: is {asked.status}: it has no end to show", _remedy(asked.status))
        whole, home = asked.spec, asked
        rows = [one for one in store.runs() if one.spec.get("run") == whole and one.status == "finished"]
    rows = sorted(rows, key=lambda one: (one.submitted, one.id))
    known = _run(store, whole, home)
    attacks = [_attacked(store, one, known) for one in rows[-MOST:]]
    return PageContent(run, asked, known, tuple(attacks), max(0, len(rows) - MOST))


def _remedy(status: str) -> str:
    return "Wait until it has finished" if status in ("queued", "running") else "Ask it again, then export it"


def _told(store: Store, run: str) -> tuple[Event, ...]:
    events = tuple(event for _, event in store.events(run))
    return events if any(isinstance(event, Started) for event in events) else ()


# --- the run -----------------------------------------------------------------------------------------------


def _run(store: Store, spec: Mapping[str, Any], listed: ListedRun | None) -> ExportedRun:
    asked = run_settings.spec_of(run_settings.flat(spec))
    twin = run_settings.baseline_of(asked)
    beside = _finished(store, twin.id) if twin else ()
    if listed is None:
        bills, guarantee = _promised(asked)
        return ExportedRun(spec, None, (), bills, guarantee, (), twin is None)
    events = _told(store, listed.id)
    last = {event.view: event for event in events if isinstance(event, Spent)}
    bills = tuple(ExportedEpsilon.of(last[view]) for view in privacy.VIEWS if view in last)
    begun = next(event for event in events if isinstance(event, Started))
    return ExportedRun(spec, listed, events, bills, begun.facts.get("guarantee"), beside, twin is None)


def _finished(store: Store, run: str) -> tuple[Event, ...]:
    try:
        return _told(store, run) if store.status(run) == "finished" else ()
    except LeakLensError:
        return ()


def _promised(asked: RunSpec) -> tuple[tuple[ExportedEpsilon, ...], Mapping[str, Any] | None]:
    """What the whole run would promise: known without running it."""
    from engine.training.forecast import forecast

    told = forecast(asked)
    answers = {one.view: one for one in told.answers}
    bills = tuple(ExportedEpsilon.of(answers[view]) for view in privacy.VIEWS if view in answers)
    promise = told.guarantee
    if promise is None:
        return bills, None
    return bills, {"status": promise.status, "reason": promise.reason, "absent": dict(promise.absent)}


# --- the attacks -------------------------------------------------------------------------------------------


def _attacked(store: Store, listed: ListedRun, run: ExportedRun) -> ExportedAttack:
    events = tuple(event for _, event in store.events(listed.id))
    begun = next((event for event in events if isinstance(event, Started)), None)
    classes = tuple(begun.facts.get("classes", ())) if begun else ()
    name = question_of(listed.spec)
    column = attack_grid.NONE if run.bare else attack_grid.OF_RUN
    mine = attack_summary.collect_cell(RequestedAttack(column, name, None), AttackEvents("finished", events))
    return ExportedAttack(
        listed.id, listed.spec, mine, None if run.bare else _control(store, listed.spec, name), classes
    )


def _control(store: Store, spec: Mapping[str, Any], name: str) -> AttackCell | None:
    """The same attack on the same upload without protection, if somebody asked for it."""
    from engine.specs.attack import AttackSpec
    from engine.specs.run import RunSpec

    twin = run_settings.baseline_of(RunSpec(**spec["run"]))
    if twin is None:
        return None
    events = _finished(store, AttackSpec(**{**spec, "run": twin.canonical()}).id)
    return (
        attack_summary.collect_cell(RequestedAttack(attack_grid.NONE, name, None), AttackEvents("finished", events))
        if events
        else None
    )


def question_of(spec: Mapping[str, Any]) -> str:
    """The name of the attack that a spec asks for."""
    part = spec["attack"]
    return str(part["name"] if isinstance(part, Mapping) else part)
