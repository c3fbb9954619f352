"""Command-line options of a run, read into a RunSpec: first a file or preset, then the options, then `--set`."""

from __future__ import annotations

import json
import os
import re
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import BadInput, refusal
from engine.jobs.backends.device import DEVICE, default_device, refuse_missing_default
from engine.part import hyphened, rule_of
from engine.specs.presets import read_preset, read_spec_file

if TYPE_CHECKING:
    from engine.specs.run import RunSpec

WRITTEN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
PARTS = ("method", "dataset", "model", "partition")
NUMBERS = ("rounds", "clients", "sampled", "epochs", "batch", "lr", "momentum", "weight-decay", "seed")
PRIVACY = ("honest-share", "delta", "target-epsilon", "budget")


def spec_options(parser: ArgumentParser, describe: bool) -> None:
    """Add the options of a run. Full descriptions load torch, so only `--help` gets them."""
    help_text = described if describe else str
    for name in (*PARTS, "sampling", "view"):
        parser.add_argument(f"--{name}", metavar="NAME", help=help_text(name))
    for name in (*NUMBERS, *PRIVACY):
        parser.add_argument(f"--{name}", type=literal, metavar="X", help=help_text(name))
    set_help = "a parameter of the method, or model.NAME=VALUE"
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=set_help)
    parser.add_argument("--spec", metavar="FILE", help="start from a spec in JSON")
    parser.add_argument("--preset", metavar="NAME", help="start from a preset")


def device_option(parser: ArgumentParser) -> None:
    device_help = f"cpu, cuda or cuda:1; the default is {DEVICE}, else cpu"
    parser.add_argument("--device", default=default_device(), metavar="NAME", help=device_help)


def machine_options(parser: ArgumentParser) -> None:
    device_option(parser)
    threads_help = "threads of each run; the default is all cores for a single run"
    parser.add_argument("--threads", type=literal, default=None, metavar="X", help=threads_help)
    parser.add_argument("--dry-run", action="store_true", help="print the forecast and run nothing")


def read_threads(value: Any) -> int:
    """The number of threads. Without a value: all cores."""
    if value is None:
        return os.cpu_count() or 1
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 256:
        raise refusal("run: threads", "must be a whole number between 1 and 256", value)
    return value


def read_spec(args: Namespace) -> RunSpec:
    """The run that these options describe."""
    from engine.specs.run import RunSpec  # imported here: commands such as `runs` need no torch

    return RunSpec(**read_values(args))


def read_values(args: Namespace, default_method: str | None = None) -> dict[str, Any]:
    """The fields that the command line, a file or a preset sets. `default_method` applies if none of them does."""
    from engine.specs.run import RunSpec

    values: dict[str, Any] = _base(args)
    for name in (*PARTS, *NUMBERS, *PRIVACY, "sampling", "view"):
        value = getattr(args, name.replace("-", "_"))
        if value is not None:
            values = _replaced(values, name, hyphened(value) if isinstance(value, str) else value)
    if default_method is not None:
        values.setdefault("method", default_method)
    default_parts = {part: RunSpec.model_fields[part].default for part in PARTS}
    for pair in args.set:
        _set(values, pair, default_parts)
    return values


def _set(values: dict[str, Any], pair: str, default_parts: dict[str, str]) -> None:
    """Apply one `--set NAME=VALUE` to the values."""
    name, equals, value = pair.partition("=")
    if not equals or not name:
        raise refusal("run: --set", "must be NAME=VALUE", pair)
    part, _, field = name.rpartition(".")
    part = part or "method"
    if part not in PARTS:
        rule = f"must name a parameter of the method, or begin with one of {', '.join(PARTS)}"
        raise refusal("run: --set", rule, name)
    if hyphened(field) == "name":
        raise refusal(
            "run: --set", "must name a parameter, not another part", pair, f"Use --{part} to choose the {part}"
        )
    current = values.get(part, default_parts[part])
    if not isinstance(current, str | dict):
        raise refusal(f"run: {part}", "must be a name, or an object with a name", current)
    fields = {"name": current} if isinstance(current, str) else current
    values[part] = _replaced(fields, hyphened(field), literal(value))


def _replaced(values: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """The values with this one set. It replaces the same name in either spelling, weight_decay or weight-decay."""
    others = {key: other for key, other in values.items() if hyphened(key) != name}
    return {**others, name: value}


def _base(args: Namespace) -> dict[str, Any]:
    if args.spec is not None and args.preset is not None:
        raise BadInput("run: --spec and --preset: choose one of them")
    if args.preset is not None:
        return read_preset(hyphened(args.preset))
    return read_spec_file(Path(args.spec)) if args.spec is not None else {}


def described(name: str) -> str:
    """The declaration of a field, for `run --help`. It loads torch."""
    from engine.specs.run import RunSpec

    field = RunSpec.model_fields[name.replace("-", "_")]
    text = field.description or field.title or name
    rule = rule_of(field).removeprefix("must be ") if name not in PARTS else f"see `list {name}s`"
    default = "" if field.default is None else f"; default {field.default}"
    return f"{text} ({rule}{default})".replace("%", "%%")


def literal(text: str) -> Any:
    """The value of a JSON literal, or of a number as people write it: `.5`, `+3`, `1e3`. Any other text stays text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = float(text) if WRITTEN_NUMBER.fullmatch(text) else text
    if isinstance(value, float) and "." not in text and value.is_integer() and abs(value) < 2**53:
        return int(value)  # 1e3 is a whole number
    return value


def refuse_machine(args: Namespace) -> None:
    """Refuse threads or a device that this machine does not have, before any run is queued."""
    read_threads(args.threads)
    refuse_device(args.device)


def refuse_device(name: str) -> None:
    """Refuse a device that this machine does not have. Only another one than the processor loads torch."""
    if name != "cpu":
        from engine.compute.devices import refuse_missing

        if name == default_device():
            refuse_missing_default()
        refuse_missing(name)


# --- output ------------------------------------------------------------------------------------------------


def emit(body: Any) -> None:
    """Print one line of JSON. It holds no NaN and no Infinity, which JSON does not have."""
    print(json.dumps(body, ensure_ascii=False, allow_nan=False))
