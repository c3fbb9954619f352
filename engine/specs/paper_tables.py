"""The tables of papers as questions: what each cell asks at the paper's scale and at a quick one, and what it reported.

Two readings stay apart: as written, noise on a client's whole update; as released, noise on every local step.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.environment import ROOT
from engine.errors import Damaged, UnknownName, shown
from engine.part import hyphened

if TYPE_CHECKING:
    from engine.specs.sweep import SweepPoint

SCALES = ("quick", "paper")
READINGS = ("written", "released")
FILES = ROOT / "assets" / "presets" / "tables"


@dataclass(frozen=True, eq=False)
class PaperSetting:
    """How one row is asked at one scale."""

    words: Mapping[str, str]  # by reading: what it stands for, and what the paper leaves open
    fields: Mapping[str, Any]  # of the question
    methods: Mapping[str, Mapping[str, Mapping[str, Any]]]  # reading -> column -> fields; a list goes by noise


@dataclass(frozen=True, eq=False)
class PaperRow:
    """One block of a table: a data set with its model, at every noise."""

    name: str
    title: str
    settings: Mapping[str, PaperSetting]  # by scale
    reported: Mapping[str, tuple[float, ...]]  # by column, by noise, in %


@dataclass(frozen=True, eq=False)
class PaperReading:
    """One way to understand the paper, with its methods."""

    words: str
    view: str  # whose ε is shown unless another is asked for
    fields: Mapping[str, Any]  # of the question
    methods: Mapping[str, str]  # by column; a column that is not there cannot be run


@dataclass(frozen=True, eq=False)
class PaperTable:
    """A table as it was published."""

    name: str
    title: str
    source: str
    noises: tuple[float, ...]
    columns: Mapping[str, str]  # what the paper calls each
    rows: tuple[PaperRow, ...]
    readings: Mapping[str, PaperReading]
    scales: Mapping[str, str]  # how the settings of each were chosen

    def columns_of(self, reading: str) -> tuple[str, ...]:
        return tuple(column for column in self.columns if column in self.readings[reading].methods)


@dataclass(frozen=True)
class PaperCell:
    """One method at one noise in one row: a question that a preset names."""

    table: PaperTable
    row: PaperRow
    place: int  # of the noise
    column: str
    scale: str
    reading: str

    @property
    def noise(self) -> float:
        return self.table.noises[self.place]

    @property
    def name(self) -> str:
        end = "" if self.reading == "written" else f"-{self.reading}"
        return f"table-{self.table.name}-{self.row.name}-noise-{self.noise:g}-{self.column}-{self.scale}{end}"

    @property
    def label(self) -> str:
        return self.table.columns[self.column]

    @property
    def reported(self) -> float:
        return self.row.reported[self.column][self.place]

    def question(self) -> dict[str, Any]:
        """As `run --preset` reads it."""
        setting, reading = self.row.settings[self.scale], self.table.readings[self.reading]
        told = setting.methods.get(self.reading, {})
        own = {**told.get("all", {}), **told.get(self.column, {})}
        own = {name: value[self.place] if isinstance(value, list) else value for name, value in own.items()}
        method = {"name": reading.methods[self.column], "noise": self.noise, **own}
        return {"method": method, **setting.fields, **reading.fields, **told.get("question", {})}

    def point(self, seed: int) -> SweepPoint:
        from engine.specs.run import RunSpec
        from engine.specs.sweep import SweepPoint

        spec = RunSpec(**{**self.question(), "seed": seed})
        return SweepPoint(
            spec.method.name, self.noise, float(getattr(spec.method, "server_step", 1.0)), seed, spec, self.label
        )


# --- by name -----------------------------------------------------------------------------------------------


def tables() -> tuple[str, ...]:
    return tuple(_known(FILES))


def table(name: str) -> PaperTable:
    """By its number; `table-1` means the same."""
    known = _known(FILES)
    number = hyphened(name).removeprefix("table-")
    if number not in known:
        raise UnknownName(f"table: no {shown(name)}", f"Known here: {', '.join(known)}")
    return known[number]


def cells(table: PaperTable, scale: str, reading: str, rows: Sequence[str] = ()) -> tuple[PaperCell, ...]:
    """Row by row, noise by noise, as the table is read; some of its rows, where they are named."""
    known = [row.name for row in table.rows]
    asked = [hyphened(name) for name in rows]
    if unknown := [name for name in asked if name not in known]:
        raise UnknownName(f"table {table.name}: no row {shown(unknown[0])}", f"Known here: {', '.join(known)}")
    return tuple(
        PaperCell(table, row, place, column, scale, reading)
        for row in table.rows
        if not asked or row.name in asked
        for place in range(len(table.noises))
        for column in table.columns_of(reading)
    )


# --- reading the file --------------------------------------------------------------------------------------


@cache
def _known(folder: Path) -> dict[str, PaperTable]:
    found: dict[str, PaperTable] = {}
    for path in sorted(folder.glob("*.toml")):
        try:
            found |= {one.name: one for one in _read(tomllib.loads(path.read_text(encoding="utf-8")))}
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            why = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
            raise Damaged(f"tables: {path.name}: {why}", "Fetch LeakLens again, whole") from None
    return found


@cache
def cells_by_name(folder: Path) -> dict[str, PaperCell]:
    found = (
        cell
        for table in _known(folder).values()
        for reading in READINGS
        for scale in SCALES
        for cell in cells(table, scale, reading)
    )
    return {cell.name: cell for cell in found}


def _read(body: Mapping[str, Any]) -> Iterator[PaperTable]:
    noises = tuple(float(noise) for noise in body["noises"])
    readings = {name: _reading(body, name) for name in READINGS}
    scales = {name: body["scales"][name]["words"] for name in SCALES}
    for name, told in body["tables"].items():
        rows = tuple(_row(row, body, told["columns"], len(noises)) for row in told["rows"])
        yield PaperTable(name, told["title"], body["source"], noises, dict(told["columns"]), rows, readings, scales)


def _reading(body: Mapping[str, Any], name: str) -> PaperReading:
    told = body["readings"][name]
    methods = {column: methods[name] for column, methods in body["columns"].items() if name in methods}
    return PaperReading(told["words"], told["view"], dict(told.get("question", {})), methods)


def _row(name: str, body: Mapping[str, Any], columns: Mapping[str, str], noises: int) -> PaperRow:
    told = body["rows"][name]
    settings = {scale: _setting(told[scale], body["scales"][scale]) for scale in SCALES}
    for setting in settings.values():
        _refuse_slips(name, body["columns"], noises, setting)
    reported = {column: tuple(map(float, told["reported"][column])) for column in columns}
    if wrong := [column for column, values in reported.items() if len(values) != noises]:
        raise ValueError(f"{name}: {wrong[0]}: needs {noises} reported numbers, one for each noise")
    return PaperRow(name, told["title"], settings, reported)


def _setting(own: Mapping[str, Any], scale: Mapping[str, Any]) -> PaperSetting:
    """What all rows share at this scale, then the row's own; what holds for both readings, then what for one."""
    methods: dict[str, dict[str, dict[str, Any]]] = {reading: {} for reading in READINGS}
    for reading, held in methods.items():
        for told in (scale, own):
            for block in (told.get("both", {}), told.get(reading, {})):
                for column, fields in block.items():
                    if column != "words":
                        held[column] = held.get(column, {}) | fields
    words = {reading: own.get(reading, {}).get("words", own["words"]) for reading in READINGS}
    return PaperSetting(words, scale["question"] | own["question"], methods)


def _refuse_slips(name: str, columns: Mapping[str, Any], noises: int, setting: PaperSetting) -> None:
    """A slip in the file would otherwise be a question that nobody meant to ask."""
    for told in setting.methods.values():
        for column, fields in told.items():
            if column not in (*columns, "all", "question"):
                raise ValueError(f"{name}: no column is called {column}")
            if short := [key for key, value in fields.items() if isinstance(value, list) and len(value) != noises]:
                raise ValueError(f"{name}: {column}: {short[0]}: needs {noises} values, one for each noise")
