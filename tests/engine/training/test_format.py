"""Old runs keep their meaning: a question gives the results that were recorded for this FORMAT."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.events import Measured, Spent
from engine.specs.run import FORMAT, RunSpec
from engine.training.loop import run

pytestmark = pytest.mark.slow

FILE = Path(__file__).with_name("format.json")  # FORMAT -> question -> what came of it
ASKED: dict[str, Any] = {
    "rounds": 3, "clients": 30, "sampled": 5, "epochs": 1, "batch": 50, "lr": 0.1, "seed": 0,
    "dataset": "fashion-mnist", "partition": {"name": "dirichlet", "alpha": 0.5},
    "model": {"name": "mlp", "hidden": 32, "dropout": 0.2},
}  # fmt: skip
QUESTIONS: dict[str, dict[str, Any]] = {
    "fedavg": {**ASKED, "method": "fedavg"},
    "udp-fedavg": {**ASKED, "method": {"name": "udp-fedavg", "noise": 0.5, "clip": 1.0, "server-step": 0.5}},
    "dp-fedavg": {**ASKED, "method": {"name": "dp-fedavg", "noise": 1.0, "clip": 1.0, "server-step": 1.0}},
}
# another processor rounds otherwise, which moves the loss in its fourth digit; other chance moves it by a tenth
WITHIN = {"accuracy": 0.015, "loss": 0.005, "epsilon": 1e-6}
REMEDY = (
    "results changed: mend what changed them, or raise FORMAT in engine/specs/run.py "
    "and record anew with `python -m tests.engine.training.test_format`"
)


def results(asked: dict[str, Any]) -> dict[str, Any]:
    """What a run comes to: its name, its last accuracy and loss, and the ε of every view."""
    spec = RunSpec(**asked)
    events = list(run(spec))
    last = {one.name: one.value for one in events if isinstance(one, Measured) and one.who == "global"}
    epsilon = {one.view: one.epsilon for one in events if isinstance(one, Spent)}
    return {"id": spec.id, **{name: last[name] for name in ("accuracy", "loss")}, "epsilon": epsilon}


def agree(found: dict[str, Any], recorded: dict[str, Any]) -> bool:
    return bool(
        found["id"] == recorded["id"]
        and all(abs(found[name] - recorded[name]) <= WITHIN[name] for name in ("accuracy", "loss"))
        and found["epsilon"] == pytest.approx(recorded["epsilon"], abs=WITHIN["epsilon"])
    )


def known() -> dict[str, Any]:
    held: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return held


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_gives_the_results_of_its_format(name: str) -> None:
    recorded, found = known().get(str(FORMAT), {}).get(name), results(QUESTIONS[name])
    assert recorded is not None and agree(found, recorded), f"{name}: {REMEDY}\nfound    {found}\nrecorded {recorded}"


@pytest.mark.parametrize("name", QUESTIONS)
def test_other_chance_would_be_noticed(name: str) -> None:
    recorded = known()[str(FORMAT)][name]
    assert not agree({**results({**QUESTIONS[name], "seed": 1}), "id": recorded["id"]}, recorded)


def record() -> str:
    """Add what is not there; what was recorded under a number is never replaced, or the number would mean nothing."""
    held = known()
    ours = held.setdefault(str(FORMAT), {})
    for name, asked in QUESTIONS.items():
        found = results(asked)
        if not agree(found, ours.setdefault(name, found)):
            return f"{name}: format.json holds other results under FORMAT {FORMAT}: raise FORMAT first"
    FILE.write_text(json.dumps(held, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return ""


if __name__ == "__main__":
    sys.exit(record() or 0)
