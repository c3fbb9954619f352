"""The settings of a run as one flat table, and conversions: RunSpec, form, link, command and script.

A path is the name of a field (`rounds`), of a part (`method`), or of a field of a part (`method.noise`).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from app.texts import links as link_texts
from engine.errors import LeakLensError, refusal, shown
from engine.part import rule_of

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from engine.capabilities import Variant
    from engine.part import Part
    from engine.registry import Shelf
    from engine.specs.run import RunSpec

Settings = dict[str, Any]
PARTS = ("dataset", "model", "partition", "method")
OTHER_PARAMS = ("run", "twin", "pins", "seeds", "lesson", "format")  # the parameters of a link that are no settings
SEEDS = 5  # at most, of one request


def flat(canonical: Mapping[str, Any]) -> Settings:
    """The settings of a spec, from its canonical JSON."""
    settings: Settings = {}
    for name, value in canonical.items():
        if name in PARTS and isinstance(value, Mapping):
            if not isinstance(value.get("name"), str):  # a default in its place would be another run
                raise refusal(name, "must have a name", value)
            settings[name] = value["name"]
            settings |= {f"{name}.{field}": inner for field, inner in value.items() if field != "name"}
        elif name != "format":
            settings[name] = value
    return settings


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of RunSpec: each part with its fields."""
    values: dict[str, Any] = {}
    for name, value in settings.items():
        if "." not in name and value is not None:
            values[name] = value
    for part in PARTS:
        if part in values:
            values[part] = {"name": values[part]}
    for path, value in settings.items():
        part, dot, field = path.partition(".")
        if dot and part in values:
            values[part][field] = value
    return values


def spec_of(settings: Mapping[str, Any]) -> RunSpec:
    """The run with these settings. Raises BadInput if there is no such run."""
    return _spec(json.dumps(nested(settings), sort_keys=True))


@lru_cache(maxsize=2000)
def _spec(text: str) -> RunSpec:
    from engine.specs.run import RunSpec

    return RunSpec(**json.loads(text))


def spec_unit(settings: Mapping[str, Any]) -> str | None:
    """The unit that the guarantee of the method protects: record or user; None without a guarantee."""
    return part_class("method", settings["method"])().unit()  # type: ignore[attr-defined,no-any-return]


def with_seeds(spec: RunSpec, seeds: int) -> tuple[RunSpec, ...]:
    """The run with several seeds, counted up from its own."""
    seeds = max(1, min(seeds, SEEDS))
    return tuple(spec.with_(seed=spec.seed + offset) for offset in range(seeds))


# --- declarations of fields --------------------------------------------------------------------------------


def part_class(part: str, name: str) -> type[Part]:
    from engine.specs.run import SHELVES

    return SHELVES[part][name]


def names(part: str) -> tuple[str, ...]:
    from engine.specs.run import SHELVES

    return SHELVES[part].names()


def own_fields(part: str, name: str) -> dict[str, FieldInfo]:
    """The fields of a part by their names in JSON, with hyphens."""
    from engine.part import hyphened

    return {hyphened(field): info for field, info in part_class(part, name).model_fields.items()}


def field_of(path: str, settings: Mapping[str, Any]) -> FieldInfo | None:
    """The declaration of a field; None if there is no field of that name."""
    from engine.specs.run import RunSpec

    part, dot, field = path.partition(".")
    try:
        if dot:
            return own_fields(part, settings[part]).get(field) if part in PARTS else None
    except LeakLensError:
        return None
    return RunSpec.model_fields.get(path.replace("-", "_"))


def completed(settings: Mapping[str, Any]) -> Settings:
    """All settings of the form: every field of RunSpec, and of each part all its fields and no others."""
    from engine.specs.run import RunSpec

    complete: Settings = {}
    for name, info in RunSpec.model_fields.items():
        path = name.replace("_", "-")
        complete[path] = settings.get(path, info.default)
    for part in PARTS:
        for field, info in own_fields(part, complete[part]).items():
            path = f"{part}.{field}"
            complete[path] = settings.get(path, _json_value(info.default))
    return complete


def _json_value(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def refused_place(message: str) -> tuple[str, str]:
    """What a refusal is about, and the field that it names: `run: rounds: must be ...` gives `run`, `rounds`.

    Both are empty for a message without a field.
    """
    subject, _, rest = message.partition(": ")
    name, colon, _ = rest.partition(": ")
    return (subject, name) if colon and " " not in name else ("", "")


# --- links -------------------------------------------------------------------------------------------------


def link(settings: Mapping[str, Any]) -> dict[str, str]:
    """Every setting by name. None is left out, so that a link keeps its meaning when a default changes."""
    params = {}
    for path, value in settings.items():
        if value is not None:
            params[path] = value if isinstance(value, str) else json.dumps(value)
    return params


def read_link(params: Mapping[str, str], default: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    """The settings of a link on top of the default ones, and a note for each parameter that is left out."""
    from engine.specs.base import FORMAT

    notes: list[str] = []
    written = params.get("format", "")
    if written.isdecimal() and int(written[:9]) > FORMAT:  # the first digits of a long number are large enough
        notes.append(link_texts.newer(shown(written), FORMAT))
    settings = dict(default)
    given = {path: params[path] for path in params if path not in OTHER_PARAMS}
    notes += _set_parts(settings, given)
    for path, text in given.items():
        if path in PARTS:
            continue
        info = field_of(path, settings)
        if info is None:
            notes.append(link_texts.unknown_setting(shown(path)))
            continue
        value = parsed(text, info)
        if value is None:
            notes.append(link_texts.not_used(path, rule_of(info), shown(text)))
        else:
            settings[path] = value
    return completed(settings), notes


def _set_parts(settings: Settings, given: Mapping[str, str]) -> list[str]:
    """Set the parts that a link names. Returns a note for each unknown name."""
    notes = []
    for part in PARTS:
        if part not in given:
            continue
        if given[part] in names(part):
            settings[part] = given[part]
        else:
            notes.append(link_texts.unknown_part(part, shown(given[part]), settings[part]))
    return notes


def parsed(text: str, info: FieldInfo) -> Any:
    """The value of a parameter in the type that its field declares; None if the text is no such value."""
    kind = kind_of(info)
    if kind is str:
        return text if text in choices(info) else None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if kind is bool or isinstance(value, bool):
        return value if kind is bool and isinstance(value, bool) else None
    if kind is int:
        return value if isinstance(value, int) and abs(value) < 2**53 else None
    if kind is float:
        return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else None
    return value if isinstance(value, list) else None


def kind_of(info: FieldInfo) -> type:
    """The type of a field: bool, int, float, str (one of its choices), or list."""
    for kind in _kinds(info.annotation):
        if isinstance(kind, str):
            return str
        if kind in (bool, int, float):
            return kind  # type: ignore[no-any-return]
    return list


def choices(info: FieldInfo) -> tuple[str, ...]:
    return tuple(kind for kind in _kinds(info.annotation) if isinstance(kind, str))


def optional(info: FieldInfo) -> bool:
    return info.default is None


def _kinds(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    elif arguments := get_args(annotation):
        for argument in arguments:
            yield from _kinds(argument)
    else:
        yield annotation


# --- command and script ------------------------------------------------------------------------------------


def command(canonical: Mapping[str, Any]) -> str:
    """The command line of the same run."""
    words = ["python3", "-m", "engine", "run"]
    for path, value in flat(canonical).items():
        text = value if isinstance(value, str) else json.dumps(value)
        if "." in path:
            words += ["--set", f"{path.removeprefix('method.')}={text}"]
        else:
            words += [f"--{path}", text]
    return shlex.join(words)


def script(canonical: Mapping[str, Any]) -> str:
    """The same run as a few lines of Python."""
    body = json.dumps({name: value for name, value in canonical.items() if name != "format"}, indent=4)
    python = body.replace(": true", ": True").replace(": false", ": False").replace(": null", ": None")
    lines = (
        "from engine import RunSpec, run",
        "from engine.results.report import lines, report",
        "",
        f"spec = RunSpec(**{python})",
        "body = report(run(spec, threads=2))",
        'print("\\n".join(lines({**body, "status": "finished"})))',
        "",
    )
    return "\n".join(lines)


def variants(method: str) -> tuple[Variant, ...]:
    """The named choices of fields that a method declares."""
    declared: tuple[Variant, ...] = part_class("method", method).variants  # type: ignore[attr-defined]
    return declared


# --- attacks and pictures ----------------------------------------------------------------------------------


def part_title(part: str, name: str) -> str:
    """The title of a part or an attack; its name if this version does not have it."""
    try:
        if part == "attack":
            return attack_title(name)
        return part_class(part, name).title if name else ""
    except LeakLensError:
        return name


def attack_title(name: str) -> str:
    return attack_class(name).title


def attack_class(name: str) -> type[Part]:
    return _attacks()[name]


def changes_model(name: str) -> bool:
    """Whether the server must change the model for this attack."""
    return bool(_attacks()[name].malicious)


def attack_names() -> tuple[str, ...]:
    """The attacks on pictures."""
    return tuple(part.name for part in _attacks() if part.goal == "pictures")


def _attacks() -> Shelf[Any]:
    from engine.specs.run import SHELVES

    return SHELVES["attack"]


def is_about_pictures(part: str, name: str) -> bool:
    """Whether a data set holds pictures, or a model reads them."""
    from engine.leakage import compatibility

    return compatibility.handles_pictures(part, name)
