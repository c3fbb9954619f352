"""What a click on Try does: run, cancel, add side B, change one thing, pin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.batch import attack_cells
from app.batch import submit as batch_submit
from app.screens.try_it import sides as try_sides
from app.screens.try_it import texts as try_texts
from app.screens.try_it.change import suggestions
from app.screens.try_it.settings import ATTACKS, MOST_PINS, STATE, TrySettings, attackers_of_cheat
from app.screens.try_it.sides import SideRequest
from app.session import run_settings, services, session
from app.texts import runs as run_texts
from engine.errors import LeakLensError
from engine.jobs.batches import Batch, BatchMember
from engine.specs import attack_grid
from engine.specs.attack_grid import RequestedAttack

if TYPE_CHECKING:
    from engine.specs.run import RunSpec

REPLAY_S = 3.0  # a training that is expected to take longer than this is not repeated by an instant attack


# --- running -------------------------------------------------------------------------------------------------


def run(live: bool = False) -> None:
    """Request training and attacks of all sides as one batch. `live` runs what is stored as well."""
    STATE.show_trouble("")
    try:
        settings = STATE.current()
        requests = try_sides.requests_of(settings)
        _refuse(requests)
        batch = batch_of(settings, requests, live)
        batch_submit.request(batch, requests[0].spec.canonical(), settings.seeds)
    except LeakLensError as error:
        STATE.show_trouble(error)
    session.rerun()


def _refuse(requests: Sequence[SideRequest]) -> None:
    """Refuse before queueing what would stop a run later."""
    for request in requests:
        forecast = services.forecast_of(request.spec.canonical())
        fatal = next((problem for problem in forecast.problems if problem.fatal), None)
        if fatal:
            raise LeakLensError(fatal.reason, fatal.remedy)


def batch_of(settings: TrySettings, requests: Sequence[SideRequest], live: bool = False) -> Batch:
    """Training and attacks of all sides as one batch."""
    members = members_of(requests, live)
    title = run_texts.sentence(requests[0].spec.canonical(), run_settings.part_title)
    return Batch("try", title, tuple(members), {"screen": "try", "link": settings.link()})


def members_of(requests: Sequence[SideRequest], live: bool = False) -> list[BatchMember]:
    """The members in the order in which they start: what shows something first comes first."""
    members: list[BatchMember] = []
    for request in requests:
        members += [_attack(each) for each in request.attacks if each.spec and not attack_grid.cost(each.spec)]
    members += [_training(request.spec) for request in requests]
    for request in requests:
        members += [_attack(each) for each in attack_grid.in_order(request.attacks) if _searches(each)]
    for request in requests:
        if request.baseline is not None:
            members.append(_training(request.baseline))
            members += [_attack(each, wait=True) for each in attack_grid.in_order(request.baseline_attacks)]
    for request in requests:
        members += [_training(spec) for spec in request.specs[1:]]
    unique = {member.run: member for member in members}
    return [member for member in unique.values() if live or not _ships(member.run)]


def _ships(run: str) -> bool:
    """Whether a finished result of this run or attack ships with LeakLens."""
    return services.stored_example(run) is not None or run in attack_cells.stored()


def _searches(request: RequestedAttack) -> bool:
    return request.spec is not None and attack_grid.cost(request.spec) > 0


def _training(spec: RunSpec) -> BatchMember:
    return BatchMember(spec.id, spec.canonical())


def _attack(request: RequestedAttack, wait: bool = False) -> BatchMember:
    """An attack. On the last round it needs what the training makes, and waits for it where that takes long."""
    assert request.spec is not None
    spec = request.spec
    after = ""
    if wait or (spec.round == "last" and (attack_grid.cost(spec) or _is_long(spec.run))):
        after = spec.run.id
    return BatchMember(spec.id, spec.canonical(), after=after)


def _is_long(spec: RunSpec) -> bool:
    canonical = spec.canonical()
    usual = services.store().usual_seconds(canonical) or services.forecast_of(canonical).seconds
    return usual is not None and usual > REPLAY_S


def ids_of(requests: Sequence[SideRequest]) -> list[str]:
    """The ids of everything that belongs to these sides."""
    return [member.run for member in members_of(requests, live=True)]


def cancel() -> None:
    """Cancel everything on this page for this visitor. What others requested continues."""
    try:
        ids = ids_of(try_sides.requests_of(STATE.current()))
        note = batch_submit.cancel(ids, try_texts.NOUN)
        STATE.show_notes([note] if note else [])
    except LeakLensError as error:
        STATE.show_trouble(error)
    session.rerun()


# --- side B --------------------------------------------------------------------------------------------------


def add() -> None:
    """Add side B: as A with half the ε, or with noise where A has none."""
    _change_b(suggestions.half)


def remove() -> None:
    STATE.choose(b={})


def change_one(change: str) -> None:
    """Put one suggested change into side B."""
    _change_b(suggestions.SUGGESTED[change])


def _change_b(change: Callable[[Mapping[str, Any], str], dict[str, Any]]) -> None:
    settings = STATE.current()
    try:
        changes = change(settings.run, settings.eyes)
    except LeakLensError as error:
        STATE.show_trouble(error)
        return
    STATE.choose(b=changes)
    if not STATE.current().b:
        STATE.show_trouble(try_texts.SAME_SIDES)


def choose_protection(side: str, chosen: Mapping[str, Any]) -> None:
    """Give one side another method. It keeps its ε against the observer where the method can."""
    try:
        STATE.change(side, suggestions.with_protection(STATE.run_of(side), chosen, STATE.current().eyes))
    except LeakLensError as error:
        STATE.change(side, dict(chosen))
        STATE.show_trouble(error)


# --- the attackers ---------------------------------------------------------------------------------------------


def choose_content(content: str) -> None:
    """Choose what the upload holds. Only some attackers read a model that the server changed."""
    settings = STATE.current()
    attacks = settings.attacks
    if content == "cheat":
        attacks = attackers_of_cheat()
    elif settings.content == "cheat":
        attacks = ATTACKS
    STATE.choose(content=content, attacks=attacks)


def choose_attackers(attacks: tuple[str, ...], upload: str) -> None:
    """Take other attackers, on the kind of upload that they read."""
    content = STATE.current().content
    if upload == "cheat":
        content = "cheat"
    elif content == "cheat":
        content = "ordinary" if upload == "ordinary" else "1"
    STATE.choose(attacks=attacks, content=content)


# --- what a visitor keeps --------------------------------------------------------------------------------------


def pin(run: str) -> None:
    """Keep a run in the table."""
    pins = STATE.current().pins
    STATE.choose(pins=tuple(dict.fromkeys((*pins, run)))[-MOST_PINS:])


def back_to(settings: TrySettings) -> None:
    """Show the settings of an earlier result again."""
    STATE.take_over(settings)
    session.remember("acted", True)
