"""The command `schema`: prints the JSON Schema of runs and attacks, with the parameters of every part."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from engine.cli.arguments import emit

if TYPE_CHECKING:
    from engine.part import Declared, Part

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PARTS = ("method", "dataset", "model", "partition")  # of a run; an attack adds its own part
NOTE = "LeakLens checks more than a schema can: it also refuses combinations that make no sense, with a remedy."
FORMAT = {
    "type": "integer",
    "minimum": 1,
    "title": "format",
    "description": "The result format that this file was written with. It may be left out.",
}


def options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Editors use the schema to complete and check the files that `run --spec` reads."


def run(arguments: argparse.Namespace) -> int:
    body = schema()
    if arguments.json:
        emit(body)
    else:
        print(json.dumps(body, ensure_ascii=False, allow_nan=False, indent=2))
    return 0


def schema() -> dict[str, Any]:
    """The schema of one file, which holds a run or an attack."""
    from engine.specs.attack import (  # imported here: it loads torch, and most commands need none
        AttackSpec,
        MembershipSpec,
    )
    from engine.specs.run import SHELVES, RunSpec

    definitions: dict[str, Any] = {"run": spec_schema(RunSpec), "attack-spec": spec_schema(AttackSpec)}
    definitions["membership-spec"] = spec_schema(MembershipSpec)
    definitions["membership-spec"]["properties"]["kind"] = {"const": "membership"}
    definitions["membership-spec"].setdefault("required", []).append("kind")
    for name in PARTS:
        definitions["run"]["properties"][name] |= {"$ref": f"#/$defs/{name}"}
    definitions["attack-spec"]["properties"]["run"] |= {"$ref": "#/$defs/run"}
    definitions["attack-spec"]["properties"]["attack"] |= {"$ref": "#/$defs/attack"}
    definitions["membership-spec"]["properties"]["run"] |= {"$ref": "#/$defs/run"}
    definitions["membership-spec"]["properties"]["attack"] |= {"$ref": "#/$defs/attack"}
    for name in (*PARTS, "attack"):
        definitions[name] = shelf_schema(SHELVES[name])
    return {
        "$schema": DIALECT,
        "title": "LeakLens: runs and attacks",
        "description": NOTE,
        "anyOf": [{"$ref": "#/$defs/run"}, {"$ref": "#/$defs/attack-spec"}, {"$ref": "#/$defs/membership-spec"}],
        "$defs": definitions,
    }


def spec_schema(spec: type[Declared]) -> dict[str, Any]:
    body = spec.model_json_schema(by_alias=True)
    body["properties"].setdefault("format", FORMAT)
    return body


def shelf_schema(parts: Iterable[type[Part]]) -> dict[str, Any]:
    """A part is given by its name, or as an object with its name and parameters."""
    known = list(parts)
    by_name = {"enum": [part.name for part in known], "description": "A part with default parameters"}
    return {"oneOf": [by_name, *map(part_schema, known)]}


def part_schema(part: type[Part]) -> dict[str, Any]:
    parameters = part.model_json_schema(by_alias=True)["properties"]
    return {
        "type": "object",
        "title": part.title,
        "description": part.summary(),
        "properties": {"name": {"const": part.name}, **parameters},
        "required": ["name"],
        "additionalProperties": False,
    }
