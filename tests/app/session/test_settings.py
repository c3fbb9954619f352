"""A question keeps its meaning in a form, a link, a command and a script."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from app.session import run_settings
from app.session.run_settings import (
    baseline_of,
    command,
    flat,
    link,
    nested,
    read_link,
    script,
    settled,
    spec_of,
    with_seeds,
)
from engine.cli.arguments import read_spec
from engine.cli.main import parser
from engine.errors import BadInput
from engine.events import Event
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
USUAL = settled(flat(SPECS[1].canonical()))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_a_form_asks_the_same_question(spec: RunSpec) -> None:
    assert spec_of(flat(spec.canonical())).id == spec.id
    assert spec_of(settled(flat(spec.canonical()))).id == spec.id


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_a_link_means_the_same_on_another_machine(spec: RunSpec) -> None:
    params = link(settled(flat(spec.canonical())))
    found, told = read_link(params, USUAL)
    assert told == []
    assert spec_of(found).id == spec.id


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_the_command_asks_the_same(spec: RunSpec) -> None:
    words = shlex.split(command(spec.canonical()))
    assert words[:4] == ["python3", "-m", "engine", "run"]
    assert read_spec(parser().parse_args(words[3:])).id == spec.id


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_the_script_asks_the_same(spec: RunSpec) -> None:
    seen: list[RunSpec] = []

    def noted(asked: RunSpec, threads: int) -> list[Event]:
        seen.append(asked)
        return []

    exec(script(spec.canonical()).replace("from engine.training.loop import run\n", ""), {"run": noted})
    assert seen[0].id == spec.id


def test_a_link_holds_every_setting() -> None:
    params = link(USUAL)
    assert {"rounds", "seed", "method.noise", "method.server-step", "model.hidden", "dataset.full"} <= params.keys()


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"rounds": "abc"}, "rounds = abc cannot be meant"),
        ({"rounds": "1.5"}, "rounds = 1.5 cannot be meant"),
        ({"rounds": "true"}, "rounds = true cannot be meant"),
        ({"lr": "NaN"}, "lr = NaN cannot be meant"),
        ({"lr": "1e999"}, "lr = 1e999 cannot be meant"),
        ({"method": "nonsense"}, "There is no method nonsense here: udp-fedavg is used."),
        ({"method.colour": "1"}, "knows no setting method.colour"),
        ({"nothing.colour": "1"}, "knows no setting nothing.colour"),
        ({"later": "1"}, "knows no setting later"),
        ({"format": "99"}, "newer LeakLens (format 99"),
        ({"sampling": "sometimes"}, "sampling = sometimes cannot be meant"),
        ({"dataset.full": "yes"}, "dataset.full = yes cannot be meant"),
    ],
)
def test_nonsense_in_a_link_is_named_and_left_out(params: dict[str, str], said: str) -> None:
    found, told = read_link(params, USUAL)
    assert len(told) == 1 and said in told[0]
    assert spec_of(found).id == spec_of(USUAL).id


def test_a_value_out_of_range_is_left_for_its_field_to_refuse() -> None:
    found, told = read_link({"rounds": "99999999"}, USUAL)
    assert told == []
    with pytest.raises(BadInput, match="run: rounds: must be a whole number between 0 and"):
        spec_of(found)


def test_another_method_brings_its_own_fields_and_keeps_the_shared_ones() -> None:
    there = settled({**USUAL, "method": "dp-fedavg"})
    assert there["method.noise"] == USUAL["method.noise"]
    assert "method.noise-split" not in there
    assert "method.noise" not in settled({**USUAL, "method": "fedavg"})


def test_the_twin_asks_the_same_without_protection() -> None:
    spec = RunSpec(method="udp-fedavg", rounds=7, clients=50, target_epsilon=8.0, view="outsider", seed=3)
    twin = baseline_of(spec)
    assert twin is not None
    assert twin.method.name == "fedavg" and twin.method.unit() is None
    assert (twin.rounds, twin.clients, twin.seed, twin.sampling) == (7, 50, 3, spec.sampling)
    assert twin.target_epsilon is None and twin.delta is None
    assert baseline_of(twin) is None


def test_seeds_follow_each_other() -> None:
    many = with_seeds(RunSpec(seed=4), 3)
    assert [spec.seed for spec in many] == [4, 5, 6]
    assert len(with_seeds(RunSpec(), 99)) == run_settings.SEEDS


def test_nothing_that_is_empty_is_asked() -> None:
    values: dict[str, Any] = nested({"method": "fedavg", "method.weighting": "size", "delta": None})
    assert values == {"method": {"name": "fedavg", "weighting": "size"}}
    assert json.dumps(values)
