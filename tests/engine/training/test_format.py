"""A spec gives the results that were recorded for this FORMAT, so stored runs stay comparable."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.events import Measured, Spent
from engine.specs.base import FORMAT
from engine.specs.run import RunSpec
from engine.training.loop import run

pytestmark = pytest.mark.slow

FILE = Path(__file__).with_name("format.json")  # FORMAT -> name of the spec -> its results
FIELDS: dict[str, Any] = {
    "rounds": 3, "clients": 30, "sampled": 5, "epochs": 1, "batch": 50, "lr": 0.1, "seed": 0,
    "dataset": "fashion-mnist", "partition": {"name": "dirichlet", "alpha": 0.5},
    "model": {"name": "mlp", "hidden": 32, "dropout": 0.2},
}  # fmt: skip
SPECS: dict[str, dict[str, Any]] = {
    "fedavg": {**FIELDS, "method": "fedavg"},
    "udp-fedavg": {**FIELDS, "method": {"name": "udp-fedavg", "noise": 0.5, "clip": 1.0, "server-step": 0.5}},
    "dp-fedavg": {**FIELDS, "method": {"name": "dp-fedavg", "noise": 1.0, "clip": 1.0, "server-step": 1.0}},
}
# Another processor rounds differently, which changes the fourth digit of the loss. Another seed changes the first.
WITHIN = {"accuracy": 0.015, "loss": 0.005, "epsilon": 1e-6}
REMEDY = (
    "results changed: fix what changed them, or raise FORMAT in engine/specs/base.py "
    "and record again with `python3 -m tests.engine.training.test_format`"
)


def results(fields: dict[str, Any]) -> dict[str, Any]:
    """The results of a run: its id, its last accuracy and loss, and the ε of every view."""
    spec = RunSpec(**fields)
    events = list(run(spec))
    last = {event.name: event.value for event in events if isinstance(event, Measured) and event.who == "global"}
    epsilon = {event.view: event.epsilon for event in events if isinstance(event, Spent)}
    return {"id": spec.id, "accuracy": last["accuracy"], "loss": last["loss"], "epsilon": epsilon}


def agree(actual: dict[str, Any], recorded: dict[str, Any]) -> bool:
    return bool(
        actual["id"] == recorded["id"]
        and all(abs(actual[name] - recorded[name]) <= WITHIN[name] for name in ("accuracy", "loss"))
        and actual["epsilon"] == pytest.approx(recorded["epsilon"], abs=WITHIN["epsilon"])
    )


def recorded_results() -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return recorded


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_gives_the_results_of_its_format(name: str) -> None:
    recorded = recorded_results().get(str(FORMAT), {}).get(name)
    actual = results(SPECS[name])
    assert recorded is not None and agree(actual, recorded), f"{name}: {REMEDY}\nactual   {actual}\nrecorded {recorded}"


@pytest.mark.parametrize("name", SPECS)
def test_another_seed_would_be_noticed(name: str) -> None:
    recorded = recorded_results()[str(FORMAT)][name]
    assert not agree({**results({**SPECS[name], "seed": 1}), "id": recorded["id"]}, recorded)


def record() -> str:
    """Add the results that are missing. Recorded results are never replaced, or their format would mean nothing."""
    recorded = recorded_results()
    of_format = recorded.setdefault(str(FORMAT), {})
    for name, fields in SPECS.items():
        actual = results(fields)
        if not agree(actual, of_format.setdefault(name, actual)):
            return f"{name}: format.json holds other results under FORMAT {FORMAT}: raise FORMAT first"
    FILE.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return ""


if __name__ == "__main__":
    sys.exit(record() or 0)
