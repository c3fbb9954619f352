"""Which page belongs to an id: a run, an attack, a batch, an example, or a list of runs or attacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from app.export import example_page, grid_content, grid_page, grid_texts, sweep_content, sweep_page
from app.export.gather import ExportedRun, everything, finished_runs
from app.export.run_page import run_page, runs_page
from app.export.slides import deck
from app.export.sweep_content import FoundRun
from app.texts import attacks as attack_texts
from app.texts import privacy
from app.texts.membership import is_membership
from engine.errors import BadInput, UnknownName, shown
from engine.examples import attacks as attack_examples
from engine.examples import files as run_examples
from engine.examples import start as start_example
from engine.examples import sweep as sweep_examples
from engine.jobs.batches import ListedBatch
from engine.jobs.status import ListedRun
from engine.jobs.store import Store

LISTS = ("grid", "sweep")  # kinds whose id is a list of ids


@dataclass(frozen=True)
class PageRequest:
    """What a page shows, and to whom."""

    id: str
    may_see: Callable[[ListedRun], bool] = everything
    view: str = "server"  # of the ε of a sweep
    whose: str = "global"  # the models of a sweep: global or personal
    made: date | None = None
    style: str = deck.STYLES[0]  # in which the file opens

    @property
    def observer(self) -> str:
        """The view, or the default for an unknown one."""
        return self.view if self.view in privacy.VIEWS else privacy.OBSERVER


PageMaker = Callable[[Store, PageRequest], str]


def page(store: Store, id: str, made: date | None = None, style: str = deck.STYLES[0]) -> str:
    """The page of a run with its attacks, of an attack, of a batch, or of an example by its name."""
    request = PageRequest(id, made=made, style=style)
    unknown: UnknownName | None = None
    for make in (_run, _batch, _example):
        try:
            return make(store, request)
        except UnknownName as error:
            unknown = unknown or error  # the first one names the list of runs
    assert unknown is not None
    raise unknown


def _run(store: Store, request: PageRequest) -> str:
    return run_page(store, request.id, request.made, request.may_see, request.style)


# --- batches -----------------------------------------------------------------------------------------------


def _batch(store: Store, request: PageRequest) -> str:
    batch = store.batches.find(request.id)
    if batch is None:
        raise UnknownName(f"export: no run and no batch {shown(request.id)}", "See: python3 -m engine runs")
    members = [run for run in store.runs() if run.id in batch.runs]
    if not all(map(request.may_see, members)):
        raise UnknownName(f"export: no batch {shown(request.id)}")
    if any(is_membership(run.spec) for run in members):
        raise BadInput(f"export: batch {batch.id}: must be of runs or attacks on pictures", "Export each by itself")
    present = {run.id: run for run in members}
    ordered = [present[run] for run in batch.runs if run in present]
    attacks = [run.id for run in ordered if "attack" in run.spec]
    runs = [run for run in ordered if "attack" not in run.spec]
    notes = _notes(batch, len(members))
    if batch.kind == "try" or attacks:
        return _attacks_page(store, request, attacks, runs, notes)
    ids = [run.id for run in runs][: sweep_content.MOST]
    points = sweep_content.find(store, ids, request.may_see, deleted=True)
    return _sweep_page(f"Batch {batch.id}", points, request, notes)


def _any_finished(store: Store, attacks: Sequence[str]) -> bool:
    """Whether the grid of these attacks has a result."""
    stored = attack_examples.stored()
    return any(status == "finished" or attack in stored for attack, status in store.statuses(attacks).items())


def _attacks_page(
    store: Store, request: PageRequest, attacks: Sequence[str], runs: Sequence[ListedRun], notes: Sequence[str]
) -> str:
    """The page of a batch of attacks, and of the runs that it trains."""
    name = f"Batch {request.id}"
    trained = finished_runs(store, runs)
    missing = [run.id for run in runs if run.id not in trained]
    notes = [*notes, *_without_result(missing)]
    if trained and not _any_finished(store, attacks):
        if attacks:
            notes.append(grid_texts.NO_ATTACK.format(attacks=attack_texts.count(len(attacks))))
        return runs_page(name, trained, request.made, notes, request.style)
    first = attacks[: grid_content.MOST]
    cells = grid_content.find(store, first, request.may_see, deleted=True)
    left_out = len(attacks) - len(first)
    return grid_page.grid_page(name, cells, request.made, notes, request.style, left_out, trained)


def _notes(batch: ListedBatch, here: int) -> list[str]:
    """What is missing on the page of a batch, and why."""
    notes = [grid_texts.NOT_POSSIBLE.format(reason=reason) for reason in dict.fromkeys(batch.problems.values())]
    if len(batch.runs) > here:
        notes.append(grid_texts.DELETED.format(count=len(batch.runs) - here, all=len(batch.runs)))
    return notes


def _without_result(runs: Sequence[str]) -> list[str]:
    """A note about the training runs that have not finished."""
    return [grid_texts.TRAINED.format(ids=", ".join(runs))] if runs else []


# --- lists of ids, and examples ------------------------------------------------------------------------------


def _listed_ids(request: PageRequest, most: int) -> list[str]:
    """The ids of a list. Too many are refused."""
    ids = list(dict.fromkeys(filter(None, request.id.split(","))))
    if not ids:
        raise UnknownName("export: no ids")
    if len(ids) > most:
        raise BadInput(f"export: ids: must be at most {most}, got {len(ids)}", "Show fewer on the screen")
    return ids


def _grid(store: Store, request: PageRequest) -> str:
    """Attacks, and with them the runs of the list: their accuracy belongs to what a screen showed."""
    ids = _listed_ids(request, grid_content.MOST)
    trained = _trained(store, ids, request)
    attacks = [id for id in ids if id not in trained]
    if not attacks:
        return runs_page(grid_texts.GRID, trained, request.made, (), request.style)
    cells = grid_content.find(store, attacks, request.may_see)
    return grid_page.grid_page(grid_texts.GRID, cells, request.made, (), request.style, trained=trained)


def _trained(store: Store, ids: Sequence[str], request: PageRequest) -> dict[str, ExportedRun]:
    """The content of the finished training runs of a list, from the store or from a stored example."""
    rows = {run.id: run for run in store.runs() if run.id in ids and "attack" not in run.spec and request.may_see(run)}
    finished = finished_runs(store, rows.values())
    trained = {}
    for id in ids:
        example = run_examples.example(id)
        if id in finished:
            trained[id] = finished[id]
        elif example is not None:
            trained[id] = example_page.stored_run(example)
    return trained


def _sweep_page(name: str, runs: Sequence[FoundRun], request: PageRequest, notes: Sequence[str] = ()) -> str:
    return sweep_page.sweep_page(name, runs, request.observer, request.whose, request.made, notes, request.style)


def _sweep(store: Store, request: PageRequest) -> str:
    runs = sweep_content.find(store, _listed_ids(request, sweep_content.MOST), request.may_see)
    return _sweep_page(grid_texts.SWEEP, runs, request)


def _example(store: Store, request: PageRequest) -> str:
    """A stored example by its name: a grid of attacks, the sweep, or one run."""
    name = f"Example {request.id}"
    if request.id in (attack_examples.NAME, start_example.NAME):
        return _stored_grid(store, request)
    if request.id == sweep_examples.NAME:
        example = sweep_examples.sweep_example()
        points = [result.point.id for result in example.results] if example else []
        runs = sweep_content.find(store, points, request.may_see)
        return _sweep_page(name, runs, request)
    return example_page.example_page(request.id, request.made, request.style)


def _stored_grid(store: Store, request: PageRequest) -> str:
    """The stored attacks of Leak, as many as a page has, or all those of Start, which share a few small pictures."""
    if request.id == start_example.NAME:
        every = [example.id for example in start_example.attacks()]
        first = every
    else:
        every = [example.id for example in attack_examples.attack_examples()]
        first = every[: grid_content.MOST]
    attacks = grid_content.find(store, first, request.may_see)
    left_out = len(every) - len(first)
    return grid_page.grid_page(f"Example {request.id}", attacks, request.made, (), request.style, left_out)


KINDS: dict[str, PageMaker] = {
    "run": _run,
    "attack": _run,
    "batch": _batch,
    "example": _example,
    "grid": _grid,
    "sweep": _sweep,
}
