"""The settings of a run mean the same in a form, a link, a command and a script."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from app.session import run_settings
from app.session.run_settings import (
    command,
    completed,
    flat,
    link,
    nested,
    read_link,
    script,
    spec_of,
    with_seeds,
)
from engine.cli.arguments import read_spec
from engine.cli.main import parser
from engine.errors import BadInput
from engine.events import Event
from engine.specs.attack_grid import baseline_of
from engine.specs.run import RunSpec

SPECS = (
    RunSpec(),
    RunSpec(method={"name": "udp-fedavg", "noise": 0.25, "noise-split": "full-local"}, seed=7),
    RunSpec(method="udp-fedavg", target_epsilon=8.0, view="outsider", delta=1e-4),
    RunSpec(method="dp-fedavg", dataset="cifar10", model={"name": "lenet5"}, clients=20, sampled=5),
    RunSpec(
        partition={"name": "dirichlet", "alpha": 0.3}, model={"name": "mlp", "bias": True}, sampling="all", clients=10
    ),
)
DEFAULT = completed(flat(SPECS[1].canonical()))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_a_form_describes_the_same_run(spec: RunSpec) -> None:
    assert spec_of(flat(spec.canonical())).id == spec.id
    assert spec_of(completed(flat(spec.canonical()))).id == spec.id


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_a_link_means_the_same_on_another_machine(spec: RunSpec) -> None:
    params = link(completed(flat(spec.canonical())))
    settings, notes = read_link(params, DEFAULT)
    assert notes == []
    assert spec_of(settings).id == spec.id


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_the_command_describes_the_same_run(spec: RunSpec) -> None:
    words = shlex.split(command(spec.canonical()))
    assert words[:4] == ["python3", "-m", "engine", "run"]
    assert read_spec(parser().parse_args(words[3:])).id == spec.id


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_the_script_describes_the_same_run(spec: RunSpec) -> None:
    specs: list[RunSpec] = []

    def record(spec: RunSpec, threads: int) -> list[Event]:
        specs.append(spec)
        return []

    lines = script(spec.canonical())
    assert "from engine import RunSpec, run\n" in lines
    exec(lines.replace("import RunSpec, run\n", "import RunSpec\n"), {"run": record})
    assert specs[0].id == spec.id


def test_a_link_holds_every_setting() -> None:
    params = link(DEFAULT)
    assert {"rounds", "seed", "method.noise", "method.server-step", "model.hidden", "dataset.full"} <= params.keys()


@pytest.mark.parametrize(
    ("params", "note"),
    [
        ({"rounds": "abc"}, "rounds = abc. It must be a whole number between 0 and 10000"),
        ({"rounds": "1.5"}, "rounds = 1.5. It must be a whole number"),
        ({"rounds": "true"}, "rounds = true. It must be a whole number"),
        ({"lr": "NaN"}, "lr = NaN. It must be a number"),
        ({"lr": "1e999"}, "lr = 1e999. It must be a number"),
        ({"method": "nonsense"}, "names the method nonsense. This version does not know it, so udp-fedavg is used."),
        ({"method.colour": "1"}, "has a setting method.colour"),
        ({"nothing.colour": "1"}, "has a setting nothing.colour"),
        ({"later": "1"}, "has a setting later"),
        ({"format": "99"}, "A newer LeakLens made this link (format 99"),
        ({"sampling": "sometimes"}, "sampling = sometimes. It must be one of"),
        ({"dataset.full": "yes"}, "dataset.full = yes. It must be true or false"),
    ],
)
def test_a_wrong_parameter_of_a_link_is_named_and_left_out(params: dict[str, str], note: str) -> None:
    settings, notes = read_link(params, DEFAULT)
    assert len(notes) == 1 and note in notes[0]
    assert spec_of(settings).id == spec_of(DEFAULT).id


def test_a_value_out_of_range_is_refused_by_its_field() -> None:
    settings, notes = read_link({"rounds": "99999999"}, DEFAULT)
    assert notes == []
    with pytest.raises(BadInput, match="run: rounds: must be a whole number between 0 and"):
        spec_of(settings)


def test_another_method_has_its_own_fields_and_keeps_the_shared_ones() -> None:
    settings = completed({**DEFAULT, "method": "dp-fedavg"})
    assert settings["method.noise"] == DEFAULT["method.noise"]
    assert "method.noise-split" not in settings
    assert "method.noise" not in completed({**DEFAULT, "method": "fedavg"})


def test_the_baseline_is_the_same_run_without_protection() -> None:
    spec = RunSpec(method="udp-fedavg", rounds=7, clients=50, target_epsilon=8.0, view="outsider", seed=3)
    baseline = baseline_of(spec)
    assert baseline is not None
    assert baseline.method.name == "fedavg" and baseline.method.unit() is None
    assert (baseline.rounds, baseline.clients, baseline.seed, baseline.sampling) == (7, 50, 3, spec.sampling)
    assert baseline.target_epsilon is None and baseline.delta is None
    assert baseline_of(baseline) is None


def test_seeds_follow_each_other() -> None:
    specs = with_seeds(RunSpec(seed=4), 3)
    assert [spec.seed for spec in specs] == [4, 5, 6]
    assert len(with_seeds(RunSpec(), 99)) == run_settings.SEEDS


def test_empty_settings_are_left_out() -> None:
    values: dict[str, Any] = nested({"method": "fedavg", "method.weighting": "size", "delta": None})
    assert values == {"method": {"name": "fedavg", "weighting": "size"}}
    assert json.dumps(values)
