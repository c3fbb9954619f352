"""The settings of the Trade-off screen: one run, and the methods, noises, server steps and seeds that vary it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from app.session import run_settings
from app.session.screen_settings import ScreenSettings, shortened
from app.texts import links as link_texts
from app.texts import sweep as sweep_texts
from engine.errors import LeakLensError, shown

FAMILY = ("udp-fedavg", "fedceo", "ppsgd", "centaur")
SOLVED_FIELDS = ("target-epsilon", "budget", "view")  # fields of a run that solve for one noise
VARIED = ("noise", "server-step")  # fields of a method that this screen varies


class TradeoffSettings(ScreenSettings):
    """All settings of the screen. Lists of numbers are kept as typed."""

    screen: ClassVar[str] = "tradeoff"
    later: ClassVar[tuple[str, ...]] = ("of", "axis", "table")
    default_run: ClassVar[Mapping[str, Any]] = {"method": "udp-fedavg", "sampling": "poisson"}

    rules: ClassVar[Mapping[str, str]] = {
        "noises": "must be a list of at most 400 characters",
        "steps": "must be a list of at most 400 characters",
        "table": "must be a table of a paper: number/row/size/reading",
        "methods": "must name at least one method with noise",
    }

    methods: tuple[str, ...] = Field(FAMILY, title=sweep_texts.METHODS)
    noises: str = Field("0.5, 1, 2, 4", max_length=400, title=sweep_texts.NOISES, description=sweep_texts.NOISES_HELP)
    steps: str = Field("0.03, 0.1, 0.3, 1", max_length=400, title=sweep_texts.STEPS, description=sweep_texts.STEPS_HELP)
    seeds: int = Field(3, ge=1, le=10, title=sweep_texts.SEEDS, description=sweep_texts.SEEDS_HELP)
    plain: bool = Field(True, title=sweep_texts.PLAIN, description=sweep_texts.PLAIN_HELP)
    whose: Literal["global", "personal"] = Field("global", title=sweep_texts.WHOSE)
    of: Mapping[str, Mapping[str, Any]] = Field({}, title=sweep_texts.OF)  # fields of single methods
    axis: Literal["epsilon", "noise"] = Field("epsilon", title=sweep_texts.AXIS)
    table: str = ""  # a paper's table in place of all the rest: number/row/scale/reading

    @property
    def own(self) -> bool:
        """Whether the accuracy is that of the personal models, for methods that have them."""
        return self.whose == "personal"

    @classmethod
    def default(cls) -> TradeoffSettings:
        """The settings of a first visit: each client adds all the noise itself, so that ε holds against the server."""
        return cls(run=cls.default_run, of=full_local(FAMILY)).settled()

    def changed(self, **changes: Any) -> TradeoffSettings:
        """The settings after a change in the form. A method that joins the others adds all its noise on each client."""
        joining = [name for name in changes.get("methods", ()) if name not in self.methods]
        if joining:
            changes["of"] = {**full_local(joining), **changes.get("of", self.of)}
        return super().changed(**changes)

    def settled(self) -> TradeoffSettings:
        known = run_settings.names("method")
        run = {name: value for name, value in self.run.items() if name not in SOLVED_FIELDS}
        methods = tuple(name for name in self.methods if name in known)
        return self.with_(run=run_settings.completed(run), methods=methods)

    # --- the address ---

    def written(self, name: str, value: Any) -> str:
        if name != "of":
            return super().written(name, value)
        fields = []
        for method, values in self.of.items():
            fields += [f"{method}.{field}={json.dumps(value)}" for field, value in values.items()]
        return ";".join(fields)

    @classmethod
    def parsed(cls, name: str, text: str, notes: list[str]) -> Any:
        if name == "of":
            return _read_method_fields(text, notes)
        if name == "table":
            return _read_table(text)
        value = super().parsed(name, text, notes)
        return (value or None) if name == "methods" else value

    @classmethod
    def word(cls, name: str, text: str) -> str:
        return text if text in offered() else ""

    @classmethod
    def read_link(cls, params: Mapping[str, str], now: TradeoffSettings) -> tuple[TradeoffSettings, list[str]]:
        """The settings of an address.

        A link from another screen holds a run alone. It replaces the run in the settings `now`, and adds its method.
        """
        complete = "noises" in params
        start = cls(run=cls.default_run) if complete else now
        run, notes = run_settings.read_link(cls.run_params(params), cls.default().run)
        methods = start.methods
        if not complete and "method" in params:
            methods = _with_method(run["method"], methods)
        of = {method: fields for method, fields in start.of.items() if method != params.get("method")}
        if not complete:
            run, of = _own_split(run, of, params)
        values = {"run": run, "methods": methods, "of": of, "table": "", **cls.read(params, notes)}
        return start.with_(**values).settled(), shortened(notes)


def _own_split(
    run: run_settings.Settings, of: Mapping[str, Mapping[str, Any]], params: Mapping[str, str]
) -> tuple[run_settings.Settings, dict[str, Mapping[str, Any]]]:
    """The run and the fields of single methods, where the noise split of a link belongs to its method alone.

    In the run it would hold for every compared method that knows the same word.
    """
    path = "method.noise-split"
    if path not in params or path not in run:
        return run, dict(of)
    default = run_settings.own_fields("method", run["method"])["noise-split"].default
    if run[path] == default:
        return run, dict(of)
    return {**run, path: default}, {**of, run["method"]: {"noise-split": run[path]}}


def full_local(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The fields by which methods whose clients share their noise add all of it on each client instead."""
    fields = {}
    for name in methods:
        info = run_settings.own_fields("method", name).get("noise-split")
        if info is not None and info.default == "paper":
            fields[name] = {"noise-split": "full-local"}
    return fields


def _with_method(method: str, methods: tuple[str, ...]) -> tuple[str, ...]:
    """Add a method of the family to the others. Another method with noise replaces them."""
    if method in methods or method not in offered():
        return methods
    return (*methods, method) if method in FAMILY else (method,)


def offered(chosen: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the methods with noise, the default ones first."""
    names = [*FAMILY]
    for name in run_settings.names("method"):
        if "noise" in run_settings.own_fields("method", name):
            names.append(name)
    return tuple(dict.fromkeys((*names, *chosen)))


def _read_table(text: str) -> str | None:
    """Return a table with the names of the engine. A link may spell them in other ways."""
    from engine.specs import paper_tables

    try:
        number, row, scale, reading = text.split("/")
        first = paper_tables.cells(paper_tables.table(number), scale, reading, [row])[0]
    except (LeakLensError, LookupError, ValueError):
        return None
    if scale not in paper_tables.SCALES:
        return None
    return "/".join((first.table.name, first.row.name, scale, reading))


def _read_method_fields(text: str, notes: list[str]) -> dict[str, dict[str, Any]]:
    """Return the fields of single methods, for example of `fedceo.every=5;ppsgd.head-epochs=2`."""
    fields: dict[str, dict[str, Any]] = {}
    for pair in filter(None, text.split(";")):
        path, _, value_text = pair.partition("=")
        method, _, name = path.partition(".")
        value = _read_method_field(method, name, value_text)
        if value is None:
            notes.append(link_texts.unknown_word("of", shown(pair)))
        else:
            fields.setdefault(method, {})[name] = value
    return fields


def _read_method_field(method: str, name: str, text: str) -> Any:
    """Return the value of one field of a method, or None for an unknown field or an invalid value."""
    try:
        info = run_settings.own_fields("method", method).get(name)
    except LeakLensError:
        return None
    if info is None or name in VARIED:
        return None
    return run_settings.parsed(text.strip('"'), info)
