"""A question as a form, a link and a script hold it: one flat table of settings, and the ways to and from a RunSpec.

A path is the name of a field (`rounds`), of a part (`method`), or of a part's own field (`method.noise`).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from engine.errors import LeakLensError, shown

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from engine.part import Part
    from engine.specs.run import RunSpec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.part import Part
    from engine.registry import Shelf
    from engine.specs.run import RunSpec

Settings = dict[str, Any]
PARTS = ("dataset", "model", "partition", "method")
BESIDE = ("run", "twin", "pins", "seeds", "lesson", "format")  # what a link holds beside settings
SEEDS = 5  # at most, of one question


def flat(canonical: Mapping[str, Any]) -> Settings:
    """The settings of a spec as JSON."""
    found: Settings = {}
    for name, value in canonical.items():
        if name in PARTS and isinstance(value, Mapping):
            found[name] = value["name"]
            found |= {f"{name}.{field}": inner for field, inner in value.items() if field != "name"}
        elif name != "format":
            found[name] = value
    return found


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What RunSpec reads: parts with their own fields."""
    values: dict[str, Any] = {
        name: settings[name] for name in settings if "." not in name and settings[name] is not None
    }
    for part in PARTS:
        if part in values:
            values[part] = {"name": values[part]}
    for path, value in settings.items():
        part, dot, field = path.partition(".")
        if dot and part in values:
            values[part][field] = value
    return values


def spec_of(settings: Mapping[str, Any]) -> RunSpec:
    """The question itself, or the one sentence that refuses it."""
    from engine.specs.run import RunSpec

    return RunSpec(**nested(settings))


def baseline_of(spec: RunSpec) -> RunSpec | None:
    """The same question without protection; None where nothing is promised anyway."""
    if spec.method.unit() is None:
        return None
    from engine.specs.run import RunSpec

    kept = {name: value for name, value in spec.canonical().items() if name not in UNPROTECTED}
    return RunSpec(**kept, method=type(spec.method).unprotected)


def spec_unit(settings: Mapping[str, Any]) -> str | None:
    """What one unit of the method's promise is."""
    return part_class("method", settings["method"])().unit()  # type: ignore[attr-defined,no-any-return]


UNPROTECTED = ("format", "method", "honest-share", "delta", "target-epsilon", "budget", "view")


def with_seeds(spec: RunSpec, many: int) -> tuple[RunSpec, ...]:
    return tuple(spec.with_(seed=spec.seed + more) for more in range(max(1, min(many, SEEDS))))


# --- what the fields declare -----------------------------------------------------------------------------


def part_class(part: str, name: str) -> type[Part]:
    from engine.specs.run import SHELVES

    return SHELVES[part][name]


def names(part: str) -> tuple[str, ...]:
    from engine.specs.run import SHELVES

    return SHELVES[part].names()


def own_fields(part: str, name: str) -> dict[str, FieldInfo]:
    """A part's fields by their outside names."""
    from engine.part import hyphened

    return {hyphened(field): info for field, info in part_class(part, name).model_fields.items()}


def field_of(path: str, settings: Mapping[str, Any]) -> FieldInfo | None:
    """The declaration of a field; None where there is none of that name."""
    from engine.specs.run import RunSpec

    part, dot, field = path.partition(".")
    try:
        if dot:
            return own_fields(part, settings[part]).get(field) if part in PARTS else None
    except LeakLensError:
        return None
    return RunSpec.model_fields.get(path.replace("-", "_"))


def settled(settings: Mapping[str, Any]) -> Settings:
    """Every part with all its own fields and no others: what the form shows."""
    from engine.specs.run import RunSpec

    found: Settings = {}
    for name, info in RunSpec.model_fields.items():
        path = name.replace("_", "-")
        found[path] = settings.get(path, info.default)
    for part in PARTS:
        for field, info in own_fields(part, found[part]).items():
            found[f"{part}.{field}"] = settings.get(f"{part}.{field}", _plain(info.default))
    return found


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# --- links -----------------------------------------------------------------------------------------------


def link(settings: Mapping[str, Any]) -> dict[str, str]:
    """Every setting by name, none left out: a link means the same when defaults have changed."""
    return {
        path: value if isinstance(value, str) else json.dumps(value)
        for path, value in settings.items()
        if value is not None
    }


def read_link(params: Mapping[str, str], usual: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    """Settings from a link, on top of the usual ones; what cannot be meant is left out, each with a sentence."""
    from engine.specs.run import FORMAT

    told: list[str] = []
    if (written := params.get("format", "")).isdigit() and int(written) > FORMAT:
        told.append(f"This link was made by a newer LeakLens (format {written}; this one knows {FORMAT}).")
    found = dict(usual)
    asked = {path: params[path] for path in params if path not in BESIDE}
    told += _parts(asked, found)
    for path, text in asked.items():
        if path in PARTS:
            continue
        if (info := field_of(path, found)) is None:
            told.append(f"This version knows no setting {shown(path)}: it is left out.")
        elif (value := meant(text, info)) is None:
            told.append(f"{path} = {shown(text)} cannot be meant: the usual value is used.")
        else:
            found[path] = value
    return settled(found), told


def _parts(asked: Mapping[str, str], found: Settings) -> Iterator[str]:
    for part in PARTS:
        if part in asked and asked[part] not in names(part):
            yield f"There is no {part} {shown(asked[part])} here: {found[part]} is used."
        elif part in asked:
            found[part] = asked[part]


def meant(text: str, info: FieldInfo) -> Any:
    """A word of a link as the type its field declares; None where it is of no such type."""
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
    """bool, int, float, str (one of a few words), or list."""
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
        for one in arguments:
            yield from _kinds(one)
    else:
        yield annotation


# --- the same question elsewhere -------------------------------------------------------------------------


def command(canonical: Mapping[str, Any]) -> str:
    """The line that asks the same in a terminal."""
    words = ["python3", "-m", "engine", "run"]
    for path, value in flat(canonical).items():
        text = value if isinstance(value, str) else json.dumps(value)
        if "." in path:
            words += ["--set", f"{path.removeprefix('method.')}={text}"]
        else:
            words += [f"--{path}", text]
    return shlex.join(words)


def script(canonical: Mapping[str, Any]) -> str:
    """The same as a few lines of Python."""
    body = json.dumps({name: value for name, value in canonical.items() if name != "format"}, indent=4)
    python = body.replace(": true", ": True").replace(": false", ": False").replace(": null", ": None")
    return "\n".join(
        (
            "from engine.training.loop import run",
            "from engine.results.report import lines, report",
            "from engine.specs.run import RunSpec",
            "",
            f"spec = RunSpec(**{python})",
            "body = report(run(spec, threads=2))",
            'print("\\n".join(lines({**body, "status": "finished"})))',
            "",
        )
    )


def attack_title(name: str) -> str:
    return attack_class(name).title


def attack_class(name: str) -> type[Part]:
    return _shelf()[name]


def attack_names() -> tuple[str, ...]:
    return _shelf().names()


def _shelf() -> Shelf[Any]:
    from engine.specs.run import SHELVES

    return SHELVES["attack"]


def is_about_pictures(part: str, name: str) -> bool:
    """Whether a data set or a model is about pictures."""
    from engine.leakage import compatibility

    return compatibility.of_pictures(part, name)
