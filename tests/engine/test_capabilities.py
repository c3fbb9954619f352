"""What a part can do is declared by its base class, and the declaration is true."""

from __future__ import annotations

import importlib

import pytest

from engine.capabilities import HasNoise, HasServerStep, Strength
from engine.methods import METHODS, Method
from engine.part import bounds, hyphened

ALL = list(METHODS)
NOISY = [method for method in ALL if issubclass(method, HasNoise)]


def test_a_method_with_noise_declares_it() -> None:
    assert {method.name for method in ALL if "noise" in method.model_fields} <= {method.name for method in NOISY}
    with_step = {method.name for method in ALL if issubclass(method, HasServerStep)}
    assert {method.name for method in ALL if "server_step" in method.model_fields} == with_step


@pytest.mark.parametrize("method", NOISY, ids=lambda method: method.name)
def test_the_noise_can_be_set_and_switched_off(method: type[Method]) -> None:
    part = method()
    assert isinstance(part, HasNoise)
    assert part.noise_level == method.default_noise() > 0
    assert part.with_noise(0.5).noise_level == 0.5
    quiet = part.without_noise()
    assert quiet.noise_level == 0
    assert {**part.values(), part.noise_name(): quiet.values()[part.noise_name()]} == quiet.values()
    assert part.most_noise() == bounds(method.model_fields[part.noise_field])["le"]


@pytest.mark.parametrize("method", ALL, ids=lambda method: method.name)
def test_strength_and_variants_name_fields_that_the_method_has(method: type[Method]) -> None:
    fields = {hyphened(name) for name in method.model_fields}
    if method.strength:
        assert method.strength.field in fields and method.strength.unit
        parts = [method(**{method.strength.field: value}) for value in method.strength.values]
        assert len(set(parts)) == 4
    for variant in method.variants:
        assert variant.fields.keys() <= fields and method(**variant.fields)
        assert variant.sentence.endswith(".")
    assert sum(variant.suggested for variant in method.variants) <= 1


def test_the_steps_of_a_strength_rise() -> None:
    with pytest.raises(ValueError, match="must rise from off to strong"):
        Strength("noise", (0.0, 2.0, 1.0, 4.0), "σ")


@pytest.mark.parametrize("method", ALL, ids=lambda method: method.name)
def test_a_baseline_protects_nothing(method: type[Method]) -> None:
    baseline = method().baseline()
    if baseline is None:
        assert method().unit() is None
    else:
        assert baseline.unit() is None and baseline.baseline() is None
        assert not (isinstance(baseline, HasNoise) and baseline.noise_level)


@pytest.mark.parametrize("method", ALL, ids=lambda method: method.name)
def test_a_method_has_the_family_of_its_folder(method: type[Method]) -> None:
    folder = method.__module__.rpartition(".")[0]
    assert method.family() == importlib.import_module(f"{folder}.base").FAMILY
    assert method.family().title


def test_a_method_without_protection_has_no_baseline() -> None:
    assert METHODS.make("fedavg").baseline() is None and METHODS.make("fedsgd").baseline() is None
    assert METHODS.make("udp-fedavg").baseline() == METHODS.make("fedavg")
