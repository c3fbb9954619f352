"""The runs of a sweep: the points that the settings of the Trade-off screen make, their command and their links.

Each point of the frontier is a run, so equal points run once for all visitors.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.screens.tradeoff.settings import SOLVED_FIELDS, VARIED, TradeoffSettings
from app.session import run_settings
from app.texts import sweep as sweep_texts
from engine.errors import BadInput, LeakLensError, refusal
from engine.specs.sweep import SweepGrid, SweepPoint, points

if TYPE_CHECKING:
    from engine.specs.paper_tables import PaperCell
    from engine.specs.run import RunSpec

COMMAND_VIEW = "outsider"  # of the commands, where they are given none
SUMMARISED = ("momentum", "weight-decay", "delta", "honest-share")  # fields of a run that are shown if changed


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
    """Return the numbers in a text, each once. Commas, semicolons and spaces separate them.

    A comma between two digits may be a decimal point. Where nothing shows what it is, the visitor decides.
    """
    if "." not in text:
        ambiguous = re.search(r"\d+,\d+", text)
        if ambiguous:
            remedy = sweep_texts.unambiguous(ambiguous[0])
            raise refusal(f"sweep: {name}", sweep_texts.NUMBERS_RULE, ambiguous[0], remedy)
    values = []
    for word in text.replace(";", ",").replace(" ", ",").split(","):
        if not word:
            continue
        try:
            values.append(float(word))
        except ValueError:
            raise refusal(f"sweep: {name}", sweep_texts.NUMBERS_RULE, word) from None
    if name == "noises" and not values:
        raise BadInput("sweep: noises: at least one is needed", "Write for example 0.5, 1, 2")
    return tuple(dict.fromkeys(values))


def all_points(settings: TradeoffSettings) -> tuple[SweepPoint, ...]:
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
    subject, name = run_settings.refused_place(message)
    if not name:
        return ""
    if subject == "sweep":
        return "steps" if name == "server-steps" else name
    if subject == "run":
        return name
    if name in VARIED:
        return "noises" if name == "noise" else "steps"
    return "of" if subject in run_settings.names("method") else subject


def refusal_in_words(message: str) -> str:
    """A refusal with the title of its field: `run: lr: must be ...` becomes `Learning rate: must be ...`."""
    where, name = run_settings.refused_place(message)
    if not name:
        return message
    title = _title(where, name)
    rule = message.split(": ", 2)[2]
    return f"{title[:1].upper()}{title[1:]}: {rule}"


def _title(where: str, name: str) -> str:
    """The title of a field that a refusal names: one of this screen, of the run, or of a part."""
    own = field_of_refusal(f"{where}: {name}: ")
    if own in TradeoffSettings.model_fields and own != "of":
        return TradeoffSettings.model_fields[own].title or name
    if where in ("run", "sweep"):
        info = run_settings.field_of(name, {})
        return info.title or name if info else name
    for part in run_settings.PARTS:
        if where in run_settings.names(part):
            info = run_settings.own_fields(part, where).get(name)
            return f"{run_settings.part_class(part, where).title}, {info.title or name if info else name}"
    return f"{where}, {name}"


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
    if settings.eyes != COMMAND_VIEW:
        words += ["--view", settings.eyes]
    for method, fields in settings.of.items():
        if method not in settings.methods:
            continue
        for name, value in fields.items():
            words += ["--of", f"{method}.{name}={json.dumps(value)}"]
    return shlex.join(words)


def _listed(values: Sequence[float]) -> str:
    return ",".join(repr(value).removesuffix(".0") for value in values)


# --- links ---------------------------------------------------------------------------------------------------


def try_link(settings: TradeoffSettings) -> dict[str, str]:
    """Return the link that opens the run in Try, with one of the compared methods."""
    run = {name: value for name, value in settings.run.items() if name not in SOLVED_FIELDS}
    if not settings.methods or run["method"] in settings.methods:
        for name, value in settings.of.get(run["method"], {}).items():
            run[f"method.{name}"] = value
        return run_settings.link(run)
    method = settings.methods[0]
    try:
        fields = method_fields(settings, method)
    except LeakLensError:  # the run is invalid: Try opens it unchanged, and you fix it there
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
    """Return the link that opens the runs of one point in Try."""
    params = run_settings.link(run_settings.completed(run_settings.flat(spec)))
    if len(runs) > 1:
        params["seeds"] = str(min(len(runs), run_settings.SEEDS))
    return params
