"""The settings of the Trade-off screen: one run, and the methods, noises, server steps and seeds that vary it.

Each point of the frontier is a run, so equal points run once for all visitors.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from app.session import run_settings
from app.session.links import SOLVED_FIELDS
from app.texts import privacy
from app.texts import sweep as sweep_texts
from engine.errors import BadInput, LeakLensError, refusal, shown
from engine.specs.sweep import SweepGrid, SweepPoint, points

if TYPE_CHECKING:
    from engine.specs.paper_tables import PaperCell
    from engine.specs.run import RunSpec

RUN: Mapping[str, Any] = {"method": "udp-fedavg", "sampling": "poisson"}  # every other field has its default
FAMILY = ("udp-fedavg", "fedceo", "ppsgd", "centaur")
NOISES, STEPS, SEEDS = "0.25, 0.5, 1, 2", "0.1, 0.3, 1", 3
MOST_SEEDS, MOST_TEXT = 10, 400  # seeds; characters of a list of numbers
WHOSE = ("global", "personal")
OUTSIDER = "outsider"  # the default view
MOST_NOTES = 20  # notes about a link
# The parameters of a link that belong to this screen. The others are settings of the run.
LINK_FIELDS = ("methods", "noises", "steps", "seeds", "plain", "eyes", "whose", "of", "table")
VARIED = ("noise", "server-step")  # fields of a method that this screen varies
SUMMARISED = ("momentum", "weight-decay", "delta", "honest-share")  # fields of a run that are shown if changed


@dataclass(frozen=True)
class TradeoffSettings:
    """All settings of the screen. Lists of numbers are kept as typed."""

    run: Mapping[str, Any] = field(default_factory=lambda: dict(RUN))  # settings of the run, as in the Lab
    methods: tuple[str, ...] = FAMILY
    noises: str = NOISES
    steps: str = STEPS
    seeds: int = SEEDS
    plain: bool = True  # whether the baselines run, too
    eyes: str = OUTSIDER
    whose: str = "global"
    of: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # fields of single methods
    table: str = ""  # a paper's table in place of all the rest: number/row/scale/reading

    @property
    def own(self) -> bool:
        """Whether the accuracy is that of the personal models, for methods that have them."""
        return self.whose == "personal"


# --- points ------------------------------------------------------------------------------------------------


def base(settings: TradeoffSettings) -> RunSpec:
    """Return the run that is varied.

    Values that the screen varies are left out, so an invalid one in the run does not refuse the sweep.
    """
    left_out = [*SOLVED_FIELDS, "method.noise"]
    if settings.steps.strip(" ,;"):
        left_out.append("method.server-step")
    run = {name: value for name, value in settings.run.items() if name not in left_out}
    if "noise" not in run_settings.own_fields("method", run["method"]) and settings.methods:
        # A method without noise would set its own default for the sampling of clients.
        run["method"] = settings.methods[0]
    return run_settings.spec_of(run_settings.completed(run))


def grid(settings: TradeoffSettings) -> SweepGrid:
    if not settings.methods:
        raise BadInput("sweep: methods: at least one is needed", "Choose a method to compare")
    methods = [{"name": name, **settings.of.get(name, {})} for name in settings.methods]
    if settings.plain:
        methods += [{"name": name} for name in baselines(settings)]
    first_seed = int(settings.run.get("seed") or 0)
    seeds = tuple(range(first_seed, first_seed + settings.seeds))
    noises = numbers("noises", settings.noises)
    return SweepGrid(tuple(methods), noises, seeds, numbers("server-steps", settings.steps))


def baselines(settings: TradeoffSettings) -> tuple[str, ...]:
    """Return the baseline method of each chosen method, each once."""
    baselines = []
    for name in settings.methods:
        baseline = run_settings.part_class("method", name)().baseline()  # type: ignore[attr-defined]
        if baseline:
            baselines.append(baseline.name)
    return tuple(dict.fromkeys(baselines))


def run_is_refused(settings: TradeoffSettings) -> bool:
    """Return whether the run itself is invalid, so that no change on this screen fixes it."""
    try:
        base(settings)
    except LeakLensError:
        return True
    return False


def changed_fields(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changed fields that affect ε or accuracy and have no widget on this screen."""
    default = run_settings.completed({part: run[part] for part in run_settings.PARTS})
    prefixes = ("partition.", "model.", "dataset.")
    changed = {}
    for name, value in run.items():
        matters = name in SUMMARISED or name.startswith(prefixes)
        if matters and value != default.get(name):
            changed[name] = value
    return changed


def numbers(name: str, text: str) -> tuple[float, ...]:
    """Return the numbers in a text, each once. Commas, semicolons and spaces separate them."""
    values = []
    for word in text.replace(";", ",").replace(" ", ",").split(","):
        if not word:
            continue
        try:
            values.append(float(word))
        except ValueError:
            raise refusal(f"sweep: {name}", "must be numbers with commas between", word) from None
    if name == "noises" and not values:
        raise BadInput("sweep: noises: at least one is needed", "Write for example 0.5, 1, 2")
    return tuple(dict.fromkeys(values))


def may_mislead(text: str) -> bool:
    """Return whether a comma may be meant as a decimal point."""
    return "." not in text and bool(re.search(r"\d,\d", text))


def sweep_points(settings: TradeoffSettings) -> tuple[SweepPoint, ...]:
    """Return every point. Invalid settings raise an error with the field and the rule."""
    if not settings.table:
        return points(base(settings), grid(settings))
    table_points = []
    for seed in range(settings.seeds):
        table_points += [cell.point(seed) for cell in cells(settings.table)]
    return tuple(table_points)


def cells(table: str) -> tuple[PaperCell, ...]:
    """Return the cells of one row of a paper's table."""
    from engine.specs import paper_tables

    number, row, scale, reading = table.split("/")
    return paper_tables.cells(paper_tables.table(number), scale, reading, [row])


def field_of_refusal(message: str) -> str:
    """Return the field that a refusal is about: one of this screen, a setting of the run, or an empty string."""
    subject, _, rest = message.partition(": ")
    name, colon, _ = rest.partition(": ")
    if not colon or " " in name:
        return ""
    if subject == "sweep":
        return "steps" if name == "server-steps" else name
    if subject == "run":
        return name
    if name in VARIED:
        return "noises" if name == "noise" else "steps"
    return "of" if subject in run_settings.names("method") else subject


def offered(settings: TradeoffSettings) -> tuple[str, ...]:
    """Return the methods with noise, the default ones first."""
    names = [*FAMILY]
    for name in run_settings.names("method"):
        if "noise" in run_settings.own_fields("method", name):
            names.append(name)
    return tuple(dict.fromkeys((*names, *settings.methods)))


def titles() -> dict[str, str]:
    return {name: run_settings.part_class("method", name).title for name in run_settings.names("method")}


def headless(points: Sequence[SweepPoint]) -> tuple[str, ...]:
    """Return the methods in which no client uploads its last layer."""
    names = [point.method for point in points if point.spec.method.headless]
    return tuple(dict.fromkeys(names))


def method_fields(settings: TradeoffSettings, method: str) -> dict[str, Any]:
    """Return the fields of one method in this sweep, without those that the screen varies."""
    single = SweepGrid(({"name": method, **settings.of.get(method, {})},), (1.0,), (0,))
    (point,) = points(base(settings), single)
    values = point.spec.method.values()
    return {name: value for name, value in values.items() if name != "name" and name not in VARIED}


def command(settings: TradeoffSettings) -> str:
    """Return the command that runs the same points in a terminal."""
    if settings.table:
        number, row, scale, reading = settings.table.split("/")
        options = f"--rows {row} --scale {scale} --reading {reading} --seeds {settings.seeds}"
        return f"python3 -m engine table {number} {options} --view {settings.eyes}"
    sweep = grid(settings)
    words = shlex.split(run_settings.command(base(settings).canonical()))
    words[3] = "sweep"
    words += ["--methods", ",".join(str(method["name"]) for method in sweep.methods)]
    words += ["--noises", _listed(sweep.noises), "--seeds", str(settings.seeds)]
    if sweep.steps:
        words += ["--server-steps", _listed(sweep.steps)]
    if settings.eyes != OUTSIDER:
        words += ["--view", settings.eyes]
    for method, fields in settings.of.items():
        if method not in settings.methods:
            continue
        for name, value in fields.items():
            words += ["--of", f"{method}.{name}={json.dumps(value)}"]
    return shlex.join(words)


def _listed(values: Sequence[float]) -> str:
    return ",".join(repr(value).removesuffix(".0") for value in values)


# --- the link ----------------------------------------------------------------------------------------------


def default() -> TradeoffSettings:
    """Return the default settings, with every field of the run."""
    return settled(TradeoffSettings())


def settled(settings: TradeoffSettings) -> TradeoffSettings:
    """Return the settings with known methods only and with every field of the run."""
    known = run_settings.names("method")
    methods = tuple(name for name in settings.methods if name in known)
    return replace(settings, run=run_settings.completed(settings.run), methods=methods)


def link(settings: TradeoffSettings) -> dict[str, str]:
    """Return every setting by its parameter in the link."""
    params = {
        "methods": ",".join(settings.methods), "noises": settings.noises, "steps": settings.steps,
        "seeds": str(settings.seeds), "plain": json.dumps(settings.plain), "eyes": settings.eyes,
        "whose": settings.whose,
    }  # fmt: skip
    fields = []
    for method, values in settings.of.items():
        fields += [f"{method}.{name}={json.dumps(value)}" for name, value in values.items()]
    if fields:
        params["of"] = ";".join(fields)
    if settings.table:
        params["table"] = settings.table
    run = {name: value for name, value in settings.run.items() if name not in SOLVED_FIELDS}
    return {**params, **run_settings.link(run)}


def lab_link(settings: TradeoffSettings) -> dict[str, str]:
    """Return the link that opens the run in the Lab, with one of the compared methods."""
    run = {name: value for name, value in settings.run.items() if name not in SOLVED_FIELDS}
    if not settings.methods or run["method"] in settings.methods:
        for name, value in settings.of.get(run["method"], {}).items():
            run[f"method.{name}"] = value
        return run_settings.link(run)
    method = settings.methods[0]
    try:
        fields = method_fields(settings, method)
    except LeakLensError:  # the run is invalid: the Lab opens it unchanged, and you fix it there
        return run_settings.link(run)
    kept = {}
    for name, value in run.items():
        prefix, _, field_name = name.partition(".")
        if prefix != "method" or not field_name or field_name in VARIED:
            kept[name] = value
    kept["method"] = method
    for name, value in fields.items():
        kept[f"method.{name}"] = value
    return run_settings.link(kept)


def point_link(spec: Mapping[str, Any], runs: Sequence[str]) -> dict[str, str]:
    """Return the link that opens the runs of one point in the Lab."""
    opened = runs[: run_settings.SEEDS]
    params = run_settings.link(run_settings.completed(run_settings.flat(spec)))
    if len(opened) > 1:
        params["seeds"] = str(len(opened))
    params["run"] = ",".join(opened)
    return params


def read_link(params: Mapping[str, str], now: TradeoffSettings) -> tuple[TradeoffSettings, list[str]]:
    """Return the settings of a link, and a note for each value that is not valid and therefore left out.

    A link from the Lab holds a run alone. It replaces the run in the settings `now`, and adds its method to theirs.
    """
    complete = "noises" in params
    start = default() if complete else now
    run_params = {name: text for name, text in params.items() if name not in LINK_FIELDS}
    run, notes = run_settings.read_link(run_params, default().run)
    of = {method: fields for method, fields in start.of.items() if method != run["method"]}
    methods = start.methods
    if not complete and "method" in params:
        methods = _with_method(run["method"], methods)
    settings = replace(start, run={**run, **dict.fromkeys(SOLVED_FIELDS)}, methods=methods, of=of, table="")
    fields = run_settings.read_fields(params, LINK_FIELDS, _read_value, notes)
    return settled(replace(settings, **fields)), _shortened(notes)


def _shortened(notes: list[str]) -> list[str]:
    more = len(notes) - MOST_NOTES
    if more <= 0:
        return notes
    return [*notes[:MOST_NOTES], sweep_texts.MORE_TOLD.format(many=more)]


def _with_method(method: str, methods: tuple[str, ...]) -> tuple[str, ...]:
    """Add a method of the family to the others. Another method with noise replaces them."""
    if method in methods or method not in offered(TradeoffSettings(methods=())):
        return methods
    return (*methods, method) if method in FAMILY else (method,)


def _read_value(name: str, text: str, notes: list[str]) -> Any:
    """Return one setting of a link, or None for a value that is not valid."""
    if name == "methods":
        return _read_methods(text, notes)
    if name == "of":
        return _read_fields(text, notes)
    if name == "table":
        return _read_table(text)
    return _read_simple_value(name, text)


def _read_simple_value(name: str, text: str) -> Any:
    if name in ("noises", "steps"):
        return text if len(text) <= MOST_TEXT else None
    if name == "seeds":
        return int(text) if text.isdecimal() and len(text) < 4 and 1 <= int(text) <= MOST_SEEDS else None
    if name == "plain":
        return {"true": True, "false": False}.get(text)
    allowed = privacy.VIEWS if name == "eyes" else WHOSE
    return text if text in allowed else None


def _read_table(text: str) -> str | None:
    """Return a table with the names of the engine. A link may spell them in other ways."""
    from engine.specs import paper_tables

    try:
        _, _, scale, reading = text.split("/")
        first = cells(text)[0]
    except (LeakLensError, LookupError, ValueError):
        return None
    if scale not in paper_tables.SCALES:
        return None
    return "/".join((first.table.name, first.row.name, scale, reading))


def _read_methods(text: str, notes: list[str]) -> tuple[str, ...] | None:
    allowed = offered(TradeoffSettings(methods=()))
    methods = []
    for name in dict.fromkeys(text.split(",")):
        if name in allowed:
            methods.append(name)
        elif name:
            notes.append(sweep_texts.NO_METHOD.format(name=shown(name)))
    return tuple(methods) or None


def _read_fields(text: str, notes: list[str]) -> dict[str, dict[str, Any]]:
    """Return the fields of single methods, for example of `fedceo.every=5;ppsgd.head-epochs=2`."""
    fields: dict[str, dict[str, Any]] = {}
    for pair in text.split(";"):
        if not pair:
            continue
        path, _, value_text = pair.partition("=")
        method, _, name = path.partition(".")
        value = _read_field(method, name, value_text)
        if value is None:
            notes.append(sweep_texts.NOT_MEANT.format(pair=shown(pair)))
        else:
            fields.setdefault(method, {})[name] = value
    return fields


def _read_field(method: str, name: str, text: str) -> Any:
    """Return the value of one field of a method, or None for an unknown field or an invalid value."""
    try:
        info = run_settings.own_fields("method", method).get(name)
    except LeakLensError:
        return None
    if info is None or name in VARIED:
        return None
    return run_settings.parsed(text.strip('"'), info)
