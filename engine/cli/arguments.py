"""From the words of a command line to a RunSpec: a file or preset first, then the options, then `--set`."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import BadInput, refusal
from engine.part import hyphened, law
from engine.specs.presets import read_preset, read_spec_file

if TYPE_CHECKING:
    from engine.specs.run import RunSpec

PARTS = ("method", "dataset", "model", "partition")
NUMBERS = ("rounds", "clients", "sampled", "epochs", "batch", "lr", "momentum", "weight-decay", "seed")
PRIVACY = ("honest-share", "delta", "target-epsilon", "budget")


def question_options(parser: ArgumentParser, helped: bool) -> None:
    """Of a run; described at length only where help is asked for."""
    words = described if helped else str
    for name in (*PARTS, "sampling", "view"):
        parser.add_argument(f"--{name}", metavar="NAME", help=words(name))
    for name in (*NUMBERS, *PRIVACY):
        parser.add_argument(f"--{name}", type=literal, metavar="X", help=words(name))
    what = "a parameter of the method, or model.NAME=VALUE"
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=what)
    parser.add_argument("--spec", metavar="FILE", help="begin from a spec in JSON")
    parser.add_argument("--preset", metavar="NAME", help="begin from a preset")


def machine_options(parser: ArgumentParser) -> None:
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    usual = "of each run; by default all cores for a lone run"
    parser.add_argument("--threads", type=literal, default=None, metavar="X", help=usual)
    parser.add_argument("--dry-run", action="store_true", help="the forecast only")


def read_threads(value: Any) -> int:
    """All cores where nothing is said."""
    if value is None:
        return os.cpu_count() or 1
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 256:
        raise refusal("run: threads", "must be a whole number between 1 and 256", value)
    return value


def read_spec(asked: Namespace) -> RunSpec:
    from engine.specs.run import RunSpec  # here: a list of runs needs no torch

    return RunSpec(**read_values(asked))


def read_values(asked: Namespace, method: str | None = None) -> dict[str, Any]:
    """The fields as they were said; `method` counts where nobody names one."""
    from engine.specs.run import RunSpec

    values: dict[str, Any] = _base(asked)
    for name in (*PARTS, *NUMBERS, *PRIVACY, "sampling", "view"):
        given = getattr(asked, name.replace("-", "_"))
        if given is not None:
            values = _over(values, name, hyphened(given) if isinstance(given, str) else given)
    if method is not None:
        values.setdefault("method", method)
    for pair in asked.set:
        _set(values, pair, {part: RunSpec.model_fields[part].default for part in PARTS})
    return values


def _set(values: dict[str, Any], pair: str, defaults: dict[str, str]) -> None:
    name, found, value = pair.partition("=")
    if not found or not name:
        raise refusal("run: --set", "must be NAME=VALUE", pair)
    part, _, field = name.rpartition(".")
    part = part or "method"
    if part not in PARTS:
        raise refusal(
            "run: --set", f"must name a parameter of the method, or begin with one of {', '.join(PARTS)}", name
        )
    held = values.get(part, defaults[part])
    if not isinstance(held, str | dict):
        raise refusal(f"run: {part}", "must be a name, or an object with a name", held)
    values[part] = _over({"name": held} if isinstance(held, str) else held, hyphened(field), literal(value))


def _over(values: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """The later word counts, in whichever spelling the earlier one came."""
    return {**{key: held for key, held in values.items() if hyphened(key) != name}, name: value}


def _base(asked: Namespace) -> dict[str, Any]:
    if asked.spec is not None and asked.preset is not None:
        raise BadInput("run: --spec and --preset: choose one of them")
    if asked.preset is not None:
        return read_preset(hyphened(asked.preset))
    return read_spec_file(Path(asked.spec)) if asked.spec is not None else {}


def described(name: str) -> str:
    """What the spec declares of a field, for `run --help`: the only time that the words need torch."""
    from engine.specs.run import RunSpec

    field = RunSpec.model_fields[name.replace("-", "_")]
    words = field.description or field.title or name
    choices = law(field).removeprefix("must be ") if name not in PARTS else f"see `list {name}s`"
    usual = "" if field.default is None else f"; default {field.default}"
    return f"{words} ({choices}{usual})".replace("%", "%%")


def literal(text: str) -> Any:
    """A value as JSON would read it, else the word itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def refuse_machine(asked: Namespace) -> None:
    """What this machine has not is refused at once."""
    read_threads(asked.threads)
    refuse_device(asked.device)


def refuse_device(name: str) -> None:
    if name != "cpu":
        from engine.training.loop import quiet_torch

        with quiet_torch(name):  # refuses what is not here
            pass


# --- the answer --------------------------------------------------------------------------------------------


def emit(body: Any) -> None:
    print(json.dumps(body, ensure_ascii=False, allow_nan=False))
