"""Reads the attacks of an exported grid, from the store or from the examples, and orders them by upload."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from app.export.gather import attack_name
from app.session import run_settings
from app.texts import attacks as attack_texts
from app.texts import privacy
from app.texts.membership import is_membership
from engine.capabilities import HasNoise
from engine.epsilon import Epsilon
from engine.errors import BadInput, UnknownName, shown
from engine.events import Started
from engine.examples import attacks as attack_examples
from engine.jobs.status import ListedRun
from engine.jobs.store import Store
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell, AttackEvents
from engine.specs import attack_grid
from engine.specs.attack_grid import RequestedAttack

if TYPE_CHECKING:
    from engine.specs.run import RunSpec
    from engine.training.forecast import Forecast

MOST = 100  # attacks on one page: the largest grid of the screen has 72
OF_ROW = ("attack", "restarts", "seed")  # fields of an attack that tell rows apart
OF_UPLOAD = ("pictures", "upload", "round", "client", "view", "unit")  # fields that tell uploads apart
OF_COLUMN = ("target-epsilon", "view", "budget", "delta", "honest-share")  # fields of a run that tell columns apart
STORED = "stored"  # the status of an example


@dataclass(frozen=True)
class FoundAttack:
    """One attack, from the store or from the examples."""

    id: str
    spec: Mapping[str, Any]
    recorded: AttackEvents
    made: str = ""  # the day of an example

    @property
    def finished(self) -> bool:
        return self.recorded.status in ("finished", STORED)


@dataclass(frozen=True)
class ExportedColumn:
    """One protection of a grid, with its ε in the view of the attacker."""

    key: str
    title: str
    run: RunSpec
    split: str  # who adds the noise; empty without a choice
    epsilon: Epsilon | None
    absent: str  # why there is no ε


@dataclass(frozen=True)
class ExportedGrid:
    """All attacks on one upload: a row for each attack, a column for each protection."""

    spec: Mapping[str, Any]  # of the first attack
    rows: Mapping[str, str]  # titles by key
    columns: tuple[ExportedColumn, ...]
    cells: tuple[AttackCell, ...]
    classes: tuple[str, ...]
    attacks: tuple[FoundAttack, ...]

    @property
    def pictures(self) -> tuple[int, ...]:
        """The originals to show. Of an ordinary upload, only the chosen one: among a hundred, some guess fits."""
        places = {place for cell in self.cells if cell.judged for place in cell.judged.places}
        if any(cell.ordinary for cell in self.cells):
            places &= {0}
        return tuple(sorted(places))

    def cell(self, row: str, column: str) -> AttackCell | None:
        """The attack of a row against the protection of a column."""
        return next((cell for cell in self.cells if (cell.attack, cell.column) == (row, column)), None)


def find(
    store: Store, ids: Iterable[str], may_see: Callable[[ListedRun], bool], deleted: bool = False
) -> tuple[FoundAttack, ...]:
    """These attacks in their order, each once. Unknown ones are refused, or left out where they may be `deleted`.

    Privacy: an attack on a picture of another visitor is unknown, and no page is made of the others.
    """
    examples = attack_examples.stored()
    attacks = []
    for id in dict.fromkeys(ids):
        try:
            listed = store.run(id)
        except UnknownName:
            listed = None
        if listed and not may_see(listed):
            raise UnknownName(f"export: there is no attack {shown(id)} here")
        if id in examples and (listed is None or listed.status != "finished"):
            example = examples[id]
            attacks.append(FoundAttack(id, example.spec, AttackEvents(STORED, example.events), example.made))
        elif listed and "attack" in listed.spec and not is_membership(listed.spec):
            events = tuple(event for _, event in store.events(id))
            attacks.append(FoundAttack(id, listed.spec, AttackEvents(listed.status, events, listed.place)))
        elif not deleted or listed:
            raise UnknownName(f"export: there is no attack on pictures {shown(id)} here")
    if not any(attack.finished for attack in attacks):
        raise BadInput("export: grid: at least one attack must have finished, and none has", "Wait for the first one")
    return tuple(attacks)


def grids(attacks: Sequence[FoundAttack]) -> tuple[ExportedGrid, ...]:
    """The attacks as one grid for each attacked upload."""
    uploads: dict[str, list[FoundAttack]] = {}
    for attack in attacks:
        uploads.setdefault(_upload_key(attack), []).append(attack)
    return tuple(_grid(of_upload) for of_upload in uploads.values())


def _upload_key(attack: FoundAttack) -> str:
    """The fields that a fair comparison shares: the upload, its observer and the run apart from its protection."""
    run = {name: value for name, value in attack.spec["run"].items() if name not in attack_grid.NOT_IN_BASELINE}
    return _key([run, *(attack.spec.get(name) for name in OF_UPLOAD)])


def _key(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _grid(attacks: Sequence[FoundAttack]) -> ExportedGrid:
    columns = _columns(attacks)
    keys = {_key(column.run.canonical()): column.key for column in columns}
    cells = []
    for attack in attacks:
        column = keys[_key(_run_of(attack).canonical())]
        request = RequestedAttack(column, _row_key(attack), None)
        cells.append(attack_summary.collect_cell(request, attack.recorded))
    started = [event for attack in attacks for event in attack.recorded.events if isinstance(event, Started)]
    classes = tuple(started[0].facts.get("classes", ())) if started else ()
    return ExportedGrid(attacks[0].spec, _rows(attacks), columns, tuple(cells), classes, tuple(attacks))


def _row_key(attack: FoundAttack) -> str:
    return _key([attack.spec.get(name) for name in OF_ROW])


def _rows(attacks: Sequence[FoundAttack]) -> dict[str, str]:
    """The title of each row by its key."""
    fields = {}
    for attack in attacks:
        part = attack.spec["attack"]
        own = dict(part) if isinstance(part, Mapping) else {}
        fields[_row_key(attack)] = {**own, "restarts": attack.spec.get("restarts"), "seed": attack.spec.get("seed")}
    names = {_row_key(attack): run_settings.attack_title(attack_name(attack.spec)) for attack in attacks}
    return distinct(names, fields)


def distinct(titles: Mapping[str, str], fields: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The titles by key. Equal ones get the fields in which they differ."""
    named = {}
    for key, title in titles.items():
        same = [fields[other] for other in titles if titles[other] == title]
        details = []
        for name, value in fields[key].items():
            if any(other.get(name) != value for other in same):
                details.append(f"{name.replace('-', ' ')} {value}")
        named[key] = f"{title} ({', '.join(details)})" if details else title
    return named


# --- the columns -------------------------------------------------------------------------------------------


def _run_of(attack: FoundAttack) -> RunSpec:
    return run_of_body(attack.spec["run"])


def run_of_body(body: Mapping[str, Any]) -> RunSpec:
    """The run with this spec."""
    return _run(_key(body))


@lru_cache(maxsize=500)
def _run(body: str) -> RunSpec:
    from engine.specs.run import RunSpec

    return RunSpec(**json.loads(body))


def column_title(run: RunSpec) -> str:
    """The method of a run with its noise, or with its target ε: then the engine solves the noise."""
    title = type(run.method).title
    if run.target_epsilon is not None:
        return attack_texts.at_budget(title, run.target_epsilon)
    return attack_texts.column(title, run.method.noise_level if isinstance(run.method, HasNoise) else None)


def _columns(attacks: Sequence[FoundAttack]) -> tuple[ExportedColumn, ...]:
    """The protections, the first one without protection first."""
    runs = {_key(_run_of(attack).canonical()): _run_of(attack) for attack in attacks}
    titles = {}
    fields = {}
    for key, run in runs.items():
        titles[key] = column_title(run)
        body = run.canonical()
        fields[key] = {**run.method.values(), **{name: body.get(name) for name in OF_COLUMN}}
    titles = distinct(titles, fields)
    baseline = next((key for key, run in runs.items() if attack_grid.baseline_of(run) is None), "")
    ordered = sorted(runs, key=lambda key: key != baseline)
    view = str(attacks[0].spec["view"])
    return tuple(_column(key, runs[key], titles[key], view, key == baseline) for key in ordered)


def _column(key: str, run: RunSpec, title: str, view: str, is_baseline: bool) -> ExportedColumn:
    split = privacy.noise_split(run.method.values())
    forecast = _forecast(key)
    epsilon = next((answer for answer in forecast.answers if answer.view == view), None)
    absent = ""
    if epsilon is None:
        reasons = forecast.guarantee.absent if forecast.guarantee else {}
        absent = reasons.get(view, "") or attack_texts.UNPROMISED
    if is_baseline:
        return ExportedColumn(attack_grid.NONE, attack_texts.NONE, run, split, epsilon, absent)
    return ExportedColumn(key, title, run, split, epsilon, absent)


@lru_cache(maxsize=500)
def _forecast(body: str) -> Forecast:
    """The ε of a run for every view. It needs no training."""
    from engine.training.forecast import forecast

    return forecast(_run(body))
