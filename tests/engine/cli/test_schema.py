"""The command `schema`: its schema accepts every shipped spec and refuses what the engine refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.attacks import ATTACKS
from engine.datasets import DATASETS
from engine.environment import ROOT
from engine.methods import METHODS
from engine.models import MODELS
from engine.partitions import PARTITIONS
from engine.registry import Shelf
from engine.specs.attack import AttackSpec
from engine.specs.presets import cell_names, read_preset
from engine.specs.run import RunSpec
from tests.engine.makers import run_command

PRESETS = sorted((ROOT / "assets" / "presets").glob("*.json"))
SHELVES: dict[str, Shelf[Any]] = {
    "method": METHODS,
    "dataset": DATASETS,
    "model": MODELS,
    "partition": PARTITIONS,
    "attack": ATTACKS,
}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    answer = run_command("schema --json")
    assert answer.code == 0
    body = answer.json
    assert isinstance(body, dict)
    return body


def refusals(schema: dict[str, Any], spec: Any) -> list[str]:
    """Every error that an independent validator finds."""
    jsonschema = pytest.importorskip("jsonschema")
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(spec)]


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from (value for key, value in node.items() if key == "$ref")
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from references(child)


def test_it_is_a_json_schema_whose_references_resolve(schema: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(references(schema)) == {f"#/$defs/{name}" for name in schema["$defs"]}


def test_without_json_the_schema_has_many_lines(schema: dict[str, Any]) -> None:
    text = run_command("schema").out
    assert json.loads(text) == schema
    assert text.count("\n") > 100


@pytest.mark.parametrize("kind", SHELVES)
def test_every_part_has_its_parameters_and_no_other(schema: dict[str, Any], kind: str) -> None:
    names, *objects = schema["$defs"][kind]["oneOf"]
    assert tuple(names["enum"]) == SHELVES[kind].names()
    for part, body in zip(SHELVES[kind], objects, strict=True):
        assert body["properties"]["name"] == {"const": part.name}
        assert set(body["properties"]) == {"name", *part().values()}
        assert body["additionalProperties"] is False


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_every_stored_preset_is_accepted(schema: dict[str, Any], path: Path) -> None:
    assert refusals(schema, json.loads(path.read_text(encoding="utf-8"))) == []


def test_the_preset_of_a_table_cell_is_accepted(schema: dict[str, Any]) -> None:
    assert refusals(schema, read_preset(cell_names()[0])) == []


def test_canonical_specs_are_accepted(schema: dict[str, Any]) -> None:
    run = RunSpec(method="udp-fedavg", target_epsilon=8, view="outsider", momentum=0.5)
    assert refusals(schema, run.canonical()) == []
    assert refusals(schema, AttackSpec(run=run, pictures=("test-7",), view="outsider").canonical()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"round": 3},
        {"rounds": "three"},
        {"rounds": -1},
        {"model": "no-such-model"},
        {"method": {"name": "udp-fedavg", "nois": 1}},
        {"method": {"name": "udp-fedavg", "noise": -1}},
        {"method": {"noise": 1}},
        {"method": {"name": "fedavg", "noise": 1}},
    ],
    ids=json.dumps,
)
def test_specs_that_the_engine_refuses_are_refused(schema: dict[str, Any], change: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        RunSpec(**change)
    assert refusals(schema["$defs"]["run"] | {"$defs": schema["$defs"]}, change)
