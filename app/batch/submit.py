"""What a click does to a batch: request it within the limits of a class, and cancel it for this visitor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.session import limits as class_limits
from app.session import run_settings, services, session
from app.texts import runs as run_texts
from app.texts import states
from engine.errors import BadInput
from engine.jobs.backends.device import default_device
from engine.jobs.batches import Batch, BatchKind, BatchMember, ListedBatch
from engine.jobs.status import MOVING, ListedRun

NO_BATCH = ""  # of no kind
SEVERAL = ("seeds", "try")  # kinds of which a visitor may have several under way, within the limit on runs


def request(batch: Batch, fields: Mapping[str, Any], seeds: int = 1, busy: tuple[str, str] = ("", "")) -> None:
    """Request a batch for this visitor. `fields` are those of a run, for the limits on sizes.

    In class mode a visitor has one batch of a kind under way. `busy` says so: the rule and the remedy.
    """
    _check_limits(batch, fields, seeds, busy)
    services.store().batches.request(batch, session.visitor(), {"device": default_device()})
    services.shared().supervisor.wake()


def seeds_batch(members: Sequence[BatchMember]) -> Batch:
    """A run with its other seeds. The first member is the run itself."""
    first = members[0].spec
    title = run_texts.sentence(first, run_settings.part_title)
    link = run_settings.link(run_settings.flat(first))
    return Batch("seeds", title, tuple(members), {"screen": "try", "link": link})


def resume(batch: ListedBatch, fields: Mapping[str, Any], busy: tuple[str, str]) -> None:
    """Submit the stopped members of a stored batch again, for this visitor."""
    _check_limits(batch, fields, 1, busy)
    services.store().batches.resume(batch.id, session.visitor())
    services.shared().supervisor.wake()


def resume_run(run: ListedRun) -> None:
    """Submit a stopped run again, for this visitor. Attacks do not count as runs of the visitor."""
    store = services.store()
    moving = [stored for stored in store.runs() if stored.status in MOVING]
    own = services.requested([stored.id for stored in moving if "attack" not in stored.spec])
    refusal = class_limits.refused(class_limits.caps(), run.spec, len(own), len(store.queue()))
    if refusal:
        raise refusal
    store.submit(run.id, run.spec, run.options, session.visitor())
    services.shared().supervisor.wake()


def _check_limits(batch: Batch | ListedBatch, fields: Mapping[str, Any], seeds: int, busy: tuple[str, str]) -> None:
    """In class mode, refuse a request beyond the limits. Runs that finished or are in the queue do not count.

    Where a visitor may have several batches, the limit is one on trainings: the attacks of such a batch do not count.
    """
    caps = class_limits.caps()
    if caps == class_limits.VisitorLimits():
        return
    statuses = services.store().statuses(batch.runs)
    missing = [run for run in batch.runs if statuses.get(run) not in (*MOVING, "finished")]
    more = len(missing)
    own_batches = services.store().batches.unfinished(session.visitor())
    own = 0
    if batch.kind in SEVERAL:
        more = len(_trainings(missing, batch))
        own = _unfinished_runs([own_batch for own_batch in own_batches if own_batch.kind in SEVERAL])
    else:
        caps = replace(caps, runs=None)
        others = [each for each in own_batches if each.kind == batch.kind and each.id != batch.id]
        if more and others:
            raise BadInput(f"class mode: {busy[0]} ({others[0].title})", f"{busy[1]} on the page Runs")
    refusal = class_limits.refused(caps, fields, own, len(services.store().queue()), more, seeds)
    if refusal:
        raise refusal


def _unfinished_runs(batches: Sequence[ListedBatch]) -> int:
    runs = {run for batch in batches for run in batch.runs}
    statuses = services.store().statuses(sorted(runs))
    return len(_trainings([run for run in statuses if statuses[run] in MOVING]))


def _trainings(runs: Sequence[str], batch: Batch | ListedBatch | None = None) -> list[str]:
    """Those of these runs that are no attacks. The store does not know runs of a batch that is new."""
    members = batch.members if isinstance(batch, Batch) else ()
    specs = {member.run: member.spec for member in members}
    return [run for run in runs if "attack" not in (specs.get(run) or services.store().run(run).spec)]


def _requested_as(kind: BatchKind, runs: Sequence[str]) -> list[ListedBatch]:
    """The unfinished batches of this kind that this visitor wants and that hold one of these runs."""
    batches = services.store().batches.unfinished(session.visitor())
    return [batch for batch in batches if batch.kind == kind and not set(runs).isdisjoint(batch.runs)]


def cancel_batches(kind: BatchKind, runs: Sequence[str], noun: str) -> str:
    """Cancel the batches of this kind that hold these runs, for this visitor. Other requests keep their runs.

    Returns a note about the runs that someone else requested, too.
    """
    store = services.store()
    visitor = session.visitor()
    kept: list[str] = []
    for batch in _requested_as(kind, runs):
        kept += store.batches.withdraw(batch.id, visitor, services.at_home()).kept
    alone = store.requesters(_unended(runs), wanting=True, kind=NO_BATCH)  # resumed by themselves on the page Runs
    kept += store.withdraw([run for run in alone if visitor in alone[run]], visitor, services.at_home()).kept
    services.shared().supervisor.wake()
    of_others = services.wanted_by_others(kept)
    return states.shared(len(of_others), noun) if of_others else ""


def cancel(runs: Sequence[str], noun: str) -> str:
    """Cancel these runs for this visitor, in whatever batch. Returns a note about those that others requested, too."""
    withdrawal = services.store().withdraw(_unended(runs), session.visitor(), services.at_home())
    services.shared().supervisor.wake()
    return states.shared(len(withdrawal.kept), noun) if withdrawal.kept else ""


def _unended(runs: Sequence[str]) -> list[str]:
    statuses = services.store().statuses(runs)
    return [run for run, status in statuses.items() if status in (*MOVING, "interrupted")]
