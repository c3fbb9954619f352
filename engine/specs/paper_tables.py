"""The tables of papers as specs: each cell at the paper's scale and at a quick scale, with the number that it reports.

Each table has two readings. As written, the noise is on a client's whole update; as released, on every local step.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
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
    """The settings of one row at one scale."""

    words: Mapping[str, str]  # by reading: what the row means, and what the paper does not say
    fields: Mapping[str, Any]  # of the spec
    methods: Mapping[str, Mapping[str, Mapping[str, Any]]]  # reading -> column -> fields; a list has a value per noise


@dataclass(frozen=True, eq=False)
class PaperRow:
    """One block of a table: a data set with its model, at every noise."""

    name: str
    title: str
    settings: Mapping[str, PaperSetting]  # by scale
    reported: Mapping[str, tuple[float, ...]]  # by column: for each noise, in %


@dataclass(frozen=True, eq=False)
class PaperReading:
    """One way to understand the paper, and the methods that follow from it."""

    words: str
    view: str  # the view whose ε is shown by default
    fields: Mapping[str, Any]  # of the spec
    methods: Mapping[str, str]  # by column; a missing column cannot run


@dataclass(frozen=True, eq=False)
class PaperTable:
    """A table as the paper prints it."""

    name: str
    title: str
    source: str
    noises: tuple[float, ...]
    columns: Mapping[str, str]  # with the paper's name of each
    rows: tuple[PaperRow, ...]
    readings: Mapping[str, PaperReading]
    scales: Mapping[str, str]  # for each, how its settings were chosen

    def columns_of(self, reading: str) -> tuple[str, ...]:
        return tuple(column for column in self.columns if column in self.readings[reading].methods)


@dataclass(frozen=True)
class PaperCell:
    """One method at one noise in one row. Each cell is a preset."""

    table: PaperTable
    row: PaperRow
    place: int  # the index of the noise
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

    def values(self) -> dict[str, Any]:
        """The fields of the spec, as `run --preset` reads them."""
        setting = self.row.settings[self.scale]
        reading = self.table.readings[self.reading]
        changes = setting.methods.get(self.reading, {})
        method: dict[str, Any] = {"name": reading.methods[self.column], "noise": self.noise}
        for name, value in {**changes.get("all", {}), **changes.get(self.column, {})}.items():
            method[name] = value[self.place] if isinstance(value, list) else value
        return {"method": method, **setting.fields, **reading.fields, **changes.get("spec", {})}

    def point(self, seed: int) -> SweepPoint:
        from engine.specs.run import RunSpec
        from engine.specs.sweep import SweepPoint, server_step_of

        spec = RunSpec(**{**self.values(), "seed": seed})
        step = server_step_of(spec.method)
        return SweepPoint(spec.method.name, self.noise, step, seed, spec, self.label)


# --- by name -----------------------------------------------------------------------------------------------


def tables() -> tuple[str, ...]:
    """The numbers of all tables."""
    return tuple(_tables(FILES))


def table(name: str) -> PaperTable:
    """The table with this number; `table-1` is the same as `1`."""
    tables = _tables(FILES)
    number = hyphened(name).removeprefix("table-")
    if number not in tables:
        raise UnknownName(f"table: no {shown(name)}", f"Known here: {', '.join(tables)}")
    return tables[number]


def cells(table: PaperTable, scale: str, reading: str, rows: Sequence[str] = ()) -> tuple[PaperCell, ...]:
    """The cells of a table, row by row and noise by noise; only those of `rows`, where they are given."""
    names = [row.name for row in table.rows]
    selected = [hyphened(name) for name in rows]
    for name in selected:
        if name not in names:
            raise UnknownName(f"table {table.name}: no row {shown(name)}", f"Known here: {', '.join(names)}")
    cells: list[PaperCell] = []
    for row in table.rows:
        if not selected or row.name in selected:
            for place, column in product(range(len(table.noises)), table.columns_of(reading)):
                cells.append(PaperCell(table, row, place, column, scale, reading))
    return tuple(cells)


# --- reading the file --------------------------------------------------------------------------------------


@cache
def _tables(folder: Path) -> dict[str, PaperTable]:
    tables: dict[str, PaperTable] = {}
    for path in sorted(folder.glob("*.toml")):
        try:
            for table in _read(tomllib.loads(path.read_text(encoding="utf-8"))):
                tables[table.name] = table
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            reason = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
            raise Damaged(f"tables: {path.name}: {reason}", "Download LeakLens again") from None
    return tables


@cache
def cells_by_name(folder: Path) -> dict[str, PaperCell]:
    """Every cell of every table, by the name of its preset."""
    by_name: dict[str, PaperCell] = {}
    for table, reading, scale in product(_tables(folder).values(), READINGS, SCALES):
        for cell in cells(table, scale, reading):
            by_name[cell.name] = cell
    return by_name


def _read(body: Mapping[str, Any]) -> Iterator[PaperTable]:
    noises = tuple(float(noise) for noise in body["noises"])
    readings = {name: _reading(body, name) for name in READINGS}
    scales = {name: body["scales"][name]["words"] for name in SCALES}
    for name, entry in body["tables"].items():
        rows = tuple(_row(row, body, entry["columns"], len(noises)) for row in entry["rows"])
        yield PaperTable(name, entry["title"], body["source"], noises, dict(entry["columns"]), rows, readings, scales)


def _reading(body: Mapping[str, Any], name: str) -> PaperReading:
    entry = body["readings"][name]
    methods = {column: methods[name] for column, methods in body["columns"].items() if name in methods}
    return PaperReading(entry["words"], entry["view"], dict(entry.get("spec", {})), methods)


def _row(name: str, body: Mapping[str, Any], columns: Mapping[str, str], noises: int) -> PaperRow:
    entry = body["rows"][name]
    settings = {scale: _setting(entry[scale], body["scales"][scale]) for scale in SCALES}
    for setting in settings.values():
        _check_fields(name, body["columns"], noises, setting)
    reported = {column: tuple(map(float, entry["reported"][column])) for column in columns}
    for column, values in reported.items():
        if len(values) != noises:
            raise ValueError(f"{name}: {column}: needs {noises} reported numbers, one for each noise")
    return PaperRow(name, entry["title"], settings, reported)


def _setting(row: Mapping[str, Any], scale: Mapping[str, Any]) -> PaperSetting:
    """The settings of a row at a scale. A later source overrides an earlier one, field by field.

    The sources are, in this order: the scale for both readings, the scale for one reading, the row for both readings,
    the row for one reading.
    """
    methods: dict[str, dict[str, dict[str, Any]]] = {}
    for reading in READINGS:
        methods[reading] = {}
        for source, block in product((scale, row), ("both", reading)):
            for column, fields in source.get(block, {}).items():
                if column != "words":
                    methods[reading][column] = methods[reading].get(column, {}) | fields
    words = {reading: row.get(reading, {}).get("words", row["words"]) for reading in READINGS}
    return PaperSetting(words, scale["spec"] | row["spec"], methods)


def _check_fields(row: str, columns: Mapping[str, Any], noises: int, setting: PaperSetting) -> None:
    """Refuse a mistake in the file. Without this check, it would give a spec that no one meant."""
    for methods in setting.methods.values():
        for column, fields in methods.items():
            if column not in (*columns, "all", "spec"):
                raise ValueError(f"{row}: no column is called {column}")
            for name, value in fields.items():
                if isinstance(value, list) and len(value) != noises:
                    raise ValueError(f"{row}: {column}: {name}: needs {noises} values, one for each noise")
