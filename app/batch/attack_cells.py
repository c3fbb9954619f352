"""The cells of requested attacks on a page: read from the store, or from an attack that ships with LeakLens."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from app.session import services
from engine.examples import attacks
from engine.examples.attacks import AttackExample
from engine.jobs.status import ListedRun
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell, AttackEvents
from engine.specs.attack_grid import RequestedAttack


def with_refusals(requests: Sequence[RequestedAttack]) -> list[RequestedAttack]:
    """The same requests. One that cannot work has the reason in place of its spec."""
    checked = []
    for request in requests:
        problem = request.problem
        if not problem and request.spec:
            problem = services.attack_problem(request.spec)
        checked.append(replace(request, spec=None, problem=problem) if problem else request)
    return checked


def stored() -> dict[str, AttackExample]:
    """The attacks that ship with LeakLens, by id."""
    return attacks.stored()


def read_cells(requests: Sequence[RequestedAttack]) -> list[AttackCell]:
    """The cell of each request, read from the store or from a stored example."""
    examples = stored()
    forming = services.wanted([request.id for request in requests if request.id in examples])
    cells = []
    for request in requests:
        events: AttackEvents | None = None
        record = services.read(request.id) if request.id else None
        if record and (request.id not in examples or _replaces_example(record[0], forming)):
            events = AttackEvents(record[0].status, record[1], record[0].place)
        elif request.id in examples:
            events = AttackEvents("stored", examples[request.id].events)
        cells.append(attack_summary.collect_cell(request, events))
    return cells


def _replaces_example(listed: ListedRun, forming: Container[str]) -> bool:
    """Whether a live attack is shown in place of its stored example.

    An unfinished one does not hide a finished example. While it is under way, those who requested it see it form.
    """
    return listed.status == "finished" or (listed.status in ("queued", "running") and listed.id in forming)
