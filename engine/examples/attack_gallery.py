"""Make the stored attacks: the grids of the screen Leak, its cliff, its observers and its first blind test.

assets/leaks/request.json names the runs and the pictures. A cell keeps what its place on the screen shows: eight
guesses of the best attack on each picture that a visitor may choose (one, if that attack does not search), and the last
guess elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from engine.capabilities import HasNoise
from engine.events import Event
from engine.examples import attacks
from engine.examples.publishing import MANY, attack_body, attack_row, damaged_preset, publish_packed, read_preset
from engine.results.attack_summary import AttackCell, AttackEvents, best_cell, collect_cell
from engine.results.cliff import levels
from engine.specs.attack_grid import NOISY, NONE, AttackGrid, RequestedAttack, budget_key, column_key, in_order
from engine.specs.attack_series import cliff_grid, ladder_requests, main_attack, questions

if TYPE_CHECKING:
    from engine.specs.attack import AttackSpec
    from engine.specs.run import RunSpec

FRAMES = 8  # guesses of the best attack of a column


@dataclass(frozen=True)
class GalleryRequest:
    """What assets/leaks/request.json names."""

    run: RunSpec
    attacks: tuple[str, ...]
    tampering: tuple[str, ...]  # attacks of a server that cheats
    noises: tuple[float, ...]  # for each picture
    pictures: int
    methods: tuple[str, ...]  # compared on the first picture
    strengths: tuple[float, ...]  # their noises
    budget: float  # their common ε


@dataclass(frozen=True)
class GalleryCell:
    """One attack of the gallery. Cells of one column share the eight guesses, which go to the best of them."""

    spec: AttackSpec
    attack: str
    column: str = ""  # empty: only the last guess is kept


def read_request() -> GalleryRequest:
    """What is to be made."""
    fields = read_preset(attacks.REQUEST_FILE)
    try:
        return GalleryRequest(**fields)
    except TypeError as error:  # a field is missing, or there is another one
        raise damaged_preset(attacks.REQUEST_FILE, error) from None


# --- what is requested -------------------------------------------------------------------------------------


def cells(request: GalleryRequest) -> tuple[GalleryCell, ...]:
    """Every cell once, the grid of a first visit first. An attack that does not fit is left out."""
    from engine.leakage.compatibility import problem

    by_id: dict[str, GalleryCell] = {}
    for cell in _requested(request):
        if problem(cell.spec) is None:
            by_id.setdefault(cell.spec.id, cell)
    return tuple(by_id.values())


def _requested(request: GalleryRequest) -> Iterator[GalleryCell]:
    strengths = tuple(column_key(NOISY, noise) for noise in request.noises)
    grid = AttackGrid(request.run, strengths, request.attacks)
    for place in range(request.pictures):
        yield from _of_grid(grid.with_(pictures=(f"test-{place}",)), frames=True)
    strong = tuple(column_key(method, noise) for method in request.methods for noise in request.strengths)
    budgets = tuple(budget_key(method, request.budget) for method in request.methods)
    wide = grid.with_(columns=(*strong, *budgets))
    yield from _of_grid(wide)
    yield from _of_grid(wide.with_(pictures=tuple(f"test-{place}" for place in range(MANY))))
    yield from _of_grid(grid.with_(columns=strong, upload="ordinary"))  # takes longest: without the budgets
    yield from _of_grid(wide.with_(upload="cheat", attacks=request.tampering))
    yield from _panels(grid, request)


def _panels(grid: AttackGrid, request: GalleryRequest) -> Iterator[GalleryCell]:
    """The cliff, the observers and the first blind test of the first visit."""
    from engine.training.forecast import forecast

    expected = forecast(grid.run).cliff
    assert expected is not None
    yield from _of_grid(cliff_grid(grid, levels(expected.region, expected.parameters)))
    attack = main_attack(grid.attacks)
    for column in grid.runs():
        yield from _of_requests(ladder_requests(grid, column, attack))
    yield from _of_requests([question.request for question in questions(grid, attack, 0)])


def _of_grid(grid: AttackGrid, frames: bool = False) -> Iterator[GalleryCell]:
    for request in in_order(grid.requests()):
        if request.spec:
            column = f"{grid.pictures[0]} {request.column}" if frames else ""
            yield GalleryCell(request.spec, request.attack, column)


def _of_requests(requests: Sequence[RequestedAttack]) -> Iterator[GalleryCell]:
    for request in requests:
        if request.spec:
            yield GalleryCell(request.spec, request.attack)


def outdated() -> tuple[str, ...]:
    """A sentence for each requested attack that does not ship, and for each that ships without a request."""
    requested = {cell.spec.id: _title(cell.spec) for cell in cells(read_request())}
    shipped = {example.id: example for example in attacks.attack_examples()}
    missing = [f"{title} is missing" for id, title in requested.items() if id not in shipped]
    others = [id for id in shipped if id not in requested]
    return (*missing, *(f"{shipped[id].spec['attack']['name']} {id} is not requested any more" for id in others))


def _title(spec: AttackSpec) -> str:
    """An attack in words, such as `map on test-0, udp-fedavg:0.1, ordinary`."""
    method = spec.run.method
    column = NONE
    if spec.run.target_epsilon is not None:
        column = budget_key(method.name, spec.run.target_epsilon)
    elif isinstance(method, HasNoise):
        column = column_key(method.name, method.noise_level)
    upload = spec.upload if len(spec.pictures) == 1 else f"{len(spec.pictures)} pictures"
    return f"{spec.attack.name} on {spec.pictures[0]}, {column}, {upload}, {spec.view}"


# --- running and writing -----------------------------------------------------------------------------------


def make(threads: int) -> list[dict[str, Any]]:
    """Run all attacks and write what is kept; return a row for each, as the command `gallery` prints it."""
    requested = cells(read_request())
    with ProcessPoolExecutor(threads, get_context("spawn")) as pool:
        results = list(pool.map(_events, (cell.spec for cell in requested)))
    best = _best_of_columns(requested, results)
    bodies = []
    for cell, events in zip(requested, results, strict=True):
        frames = FRAMES if cell.spec.id in best else 1
        bodies.append(attack_body(cell.spec, events, frames))
    publish_packed(attacks.RESULT_FILE, {"format": attacks.FORMAT, "made": date.today().isoformat(), "cells": bodies})
    attacks.read.cache_clear()
    return [attack_row(attacks.NAME, cell.spec, events) for cell, events in zip(requested, results, strict=True)]


def _events(spec: AttackSpec) -> list[Event]:
    from engine.leakage.pictures import attack

    return list(attack(spec, threads=1))


def _best_of_columns(requested: Sequence[GalleryCell], results: Sequence[Sequence[Event]]) -> set[str]:
    """The ids of the attacks that brought most back in their column."""
    columns: dict[str, list[AttackCell]] = {}
    for cell, events in zip(requested, results, strict=True):
        if cell.column:
            request = RequestedAttack(cell.column, cell.attack, cell.spec)
            columns.setdefault(cell.column, []).append(collect_cell(request, AttackEvents("stored", tuple(events))))
    best = (best_cell(column, 0) for column in columns.values())
    return {cell.id for cell in best if cell}
