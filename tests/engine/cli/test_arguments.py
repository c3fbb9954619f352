"""The options of `run`: a file or preset, then the options, then `--set` become one RunSpec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.cli.arguments import literal, read_spec
from engine.cli.main import parser
from engine.errors import BadInput, NewerVersion, UnknownName
from engine.specs import presets as preset_files
from engine.specs.run import RunSpec


def read(*options: str) -> RunSpec:
    return read_spec(parser().parse_args(["run", *options]))


def written(folder: Path, text: str) -> str:
    file = folder / "spec.json"
    file.write_text(text, encoding="utf-8")
    return str(file)


@pytest.fixture
def presets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of presets in place of the shipped one."""
    folder = tmp_path / "assets" / "presets"
    folder.mkdir(parents=True)
    monkeypatch.setattr(preset_files, "FOLDER", tmp_path / "assets" / "presets")
    return folder


def test_without_options_it_is_the_default_run():
    assert read() == RunSpec()


@pytest.mark.parametrize(
    ("option", "field", "value"),
    [
        ("--rounds 3", "rounds", 3),
        ("--clients 50", "clients", 50),
        ("--sampled 5", "sampled", 5),
        ("--sampling poisson", "sampling", "poisson"),
        ("--epochs 4", "epochs", 4),
        ("--batch 7", "batch", 7),
        ("--lr 1e-2", "lr", 0.01),
        ("--momentum 0.9", "momentum", 0.9),
        ("--weight-decay 0.001", "weight_decay", 0.001),
        ("--seed 12", "seed", 12),
        ("--honest-share 0.5", "honest_share", 0.5),
        ("--delta 1e-6", "delta", 1e-6),
    ],
)
def test_an_option_sets_its_field_and_no_other(option: str, field: str, value: Any):
    spec = read(*option.split())
    assert getattr(spec, field) == value
    assert spec == RunSpec(**{field: value})


def test_a_field_of_any_number_takes_a_whole_number():
    assert read("--lr", "1") == RunSpec(lr=1.0)


def test_a_target_and_a_budget_name_their_view():
    spec = read("--method", "udp-fedavg", "--target-epsilon", "3", "--budget", "9", "--view", "outsider")
    assert (spec.target_epsilon, spec.budget, spec.view) == (3.0, 9.0, "outsider")


def test_set_reaches_the_method_and_every_part_by_its_name():
    spec = read(
        *("--method", "udp-fedavg", "--set", "noise=2.5", "--set", "method.clip=0.5"),
        *("--dataset", "mnist", "--set", "dataset.normalise=false", "--set", "model.bias=true"),
        *("--partition", "dirichlet", "--set", "partition.alpha=0.3"),
    )
    assert spec.method.values()["noise"] == 2.5
    assert spec.method.values()["clip"] == 0.5
    assert (spec.dataset.name, spec.dataset.values()["normalise"]) == ("mnist", False)
    assert (spec.model.name, spec.model.values()["bias"]) == ("mlp", True)
    assert (spec.partition.name, spec.partition.values()["alpha"]) == ("dirichlet", 0.3)


def test_underscores_are_hyphens():
    assert read("--method", "udp_fedavg", "--dataset", "fashion_mnist", "--set", "server_step=0.5") == read(
        "--method", "udp-fedavg", "--set", "server-step=0.5"
    )


def test_set_overrules_a_file_in_either_spelling(tmp_path: Path) -> None:
    file = written(tmp_path, '{"method": {"name": "udp-fedavg", "server_step": 0.5}}')
    assert read("--spec", file, "--set", "server-step=0.25").method.server_step == 0.25  # type: ignore[attr-defined]


def test_a_file_comes_first_then_the_options_then_set(tmp_path: Path):
    text = '{"method": "udp_fedavg", "rounds": 9, "weight_decay": 0.5, "partition": {"name": "dirichlet"}}'
    options = ["--rounds", "4", "--weight-decay", "0.25", "--set", "partition.alpha=2", "--set", "noise=3"]
    spec = read("--spec", written(tmp_path, text), *options)
    assert (spec.method.name, spec.rounds, spec.weight_decay) == ("udp-fedavg", 4, 0.25)
    assert spec.partition.values() == {"alpha": 2.0}
    assert spec.method.values()["noise"] == 3.0


def test_a_canonical_spec_describes_the_same_run(tmp_path: Path):
    spec = read("--method", "dp-fedavg", "--set", "noise=0.7", "--clients", "60", "--sampled", "6", "--lr", "0.3")
    assert read("--spec", written(tmp_path, json.dumps(spec.canonical()))).id == spec.id


@pytest.mark.parametrize("name", ["quick-look", "quick_look"])
def test_a_preset_is_a_spec_with_a_name(presets: Path, name: str):
    (presets / "quick-look.json").write_text('{"rounds": 5, "model": "lenet5"}', encoding="utf-8")
    assert read("--preset", name, "--seed", "8") == RunSpec(rounds=5, model="lenet5", seed=8)


def test_an_unknown_preset_is_refused_with_the_known_names(presets: Path):
    with pytest.raises(UnknownName, match=r"preset: no nope\. Known here: none yet"):
        read("--preset", "nope")
    (presets / "quick-look.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UnknownName, match=r"preset: no nope\. Known here: quick-look"):
        read("--preset", "nope")


@pytest.mark.parametrize("name", ["../presets/quick-look", "quick-look.json"])
def test_a_preset_is_never_a_path(presets: Path, name: str):
    (presets / "quick-look.json").write_text('{"rounds": 5}', encoding="utf-8")
    with pytest.raises(UnknownName):
        read("--preset", name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "must be an object of fields"),
        ("rounds = 3", "is not JSON"),
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('{"rounds": NaN}', "run: rounds: must be a whole number between 0 and 10000, got nan"),
        ('{"rounds": true}', "run: rounds: must be a whole number between 0 and 10000, got true"),
        ('{"turns": 3}', "run: turns: no such parameter"),
        ('{"method": 5}', "method: must be a name, or an object with a name, got 5"),
        ('{"method": {"noise": 1}}', "method: must be a name, or an object with a name"),
    ],
)
def test_a_file_without_a_spec_is_refused(tmp_path: Path, text: str, message: str):
    with pytest.raises(BadInput) as error:
        read("--spec", written(tmp_path, text))
    assert message in str(error.value)


def test_a_binary_file_is_refused(tmp_path: Path):
    (tmp_path / "spec.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="is not JSON"):
        read("--spec", str(tmp_path / "spec.json"))


@pytest.mark.parametrize("place", ["nowhere.json", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, place: str):
    with pytest.raises(BadInput, match="Name a file that can be read") as error:
        read("--spec", str(tmp_path / place))
    assert str(tmp_path) in error.value.message


def test_a_file_of_a_newer_format_is_refused(tmp_path: Path):
    with pytest.raises(NewerVersion, match="format 99, and this LeakLens reads formats up to"):
        read("--spec", written(tmp_path, '{"format": 99, "fresh": 1}'))


def test_a_file_and_a_preset_together_are_refused(presets: Path, tmp_path: Path):
    with pytest.raises(BadInput, match="choose one"):
        read("--spec", written(tmp_path, "{}"), "--preset", "x")


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("noise", "run: --set: must be NAME=VALUE, got noise"),
        ("=1", "run: --set: must be NAME=VALUE, got =1"),
        ("server.step=1", "must name a parameter of the method, or begin with one of"),
        ("fog=1", "fedavg: fog: no such parameter. Known here:"),
        ("model.bias=1", "mlp: bias: must be true or false, got 1"),
        ("partition.name=5", "must name a parameter, not another part, got partition.name=5. Use --partition"),
    ],
)
def test_a_wrong_set_is_refused(pair: str, message: str):
    with pytest.raises(BadInput) as error:
        read("--set", pair)
    assert message in str(error.value)


def test_a_set_on_a_part_that_is_a_number_is_refused(tmp_path: Path):
    with pytest.raises(BadInput, match="run: model: must be a name, or an object with a name, got 5"):
        read("--spec", written(tmp_path, '{"model": 5}'), "--set", "model.bias=true")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("true", True),
        ("null", None),
        ("[1, 2]", [1, 2]),
        ('"3"', "3"),
        ("iid", "iid"),
        ("", ""),
    ],
)
def test_a_value_is_read_as_json_or_stays_text(text: str, value: Any):
    result = literal(text)
    assert result == value
    assert type(result) is type(value)


def test_json_that_is_nested_too_deeply_stays_text():
    deep = "[" * 100_000
    assert literal(deep) == deep


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (".5", 0.5), ("+3", 3), ("1e3", 1000), ("-.25", -0.25), ("3.", 3.0), ("1e-3", 0.001), ("2.0", 2.0), ("7", 7),
        ("9007199254740993", 9007199254740993), ("true", True), ("own-7", "own-7"), (".", "."), ("1e", "1e"),
        ("1e999", float("inf")),
    ],
)  # fmt: skip
def test_a_number_is_read_as_people_write_it(text: str, value: object) -> None:
    assert literal(text) == value and type(literal(text)) is type(value)
