"""GIAS: a generator that is trained once on public pictures, and stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from engine.attacks.pictures.gias import CODE, Gias, generator
from engine.events import Event, Judged, Payload, Step
from engine.leakage.pictures import attack
from engine.leakage.target import AttackResources
from engine.seeds import Seeds
from engine.specs.attack import AttackSpec

RUN: dict[str, Any] = {
    "method": "fedsgd", "dataset": "cifar10", "model": "lenet-sigmoid", "clients": 10, "sampled": 5, "epochs": 1,
    "rounds": 1,
}  # fmt: skip


class StubShelf(AttackResources):
    """Keeps priors in memory."""

    def __init__(self) -> None:
        self.priors: dict[str, Payload] = {}

    def prior(self, name: str) -> Payload | None:
        return self.priors.get(name)

    def keep_prior(self, name: str, payload: Mapping[str, Any]) -> None:
        self.priors[name] = payload


def attack_events(resources: AttackResources, **fields: Any) -> list[Event]:
    quick = {"name": "gias", "epochs": 2, "iterations": 10, "bends": 20, **fields}
    return list(attack(AttackSpec(run=RUN, attack=quick, pictures=["test-0"]), resources))


def learning_steps(events: list[Event]) -> int:
    return sum(isinstance(event, Step) for event in events)


def verdict(events: list[Event]) -> Judged:
    return next(event for event in events if isinstance(event, Judged))


@pytest.mark.slow
def test_it_learns_once_and_reuses_the_prior() -> None:
    resources = StubShelf()
    first = attack_events(resources)
    second = attack_events(resources)
    assert learning_steps(first) >= 1 and learning_steps(second) == 0
    assert verdict(first) == verdict(second)
    assert learning_steps(attack_events(resources, epochs=1)) == 1 and len(resources.priors) == 2


@pytest.mark.slow
def test_the_generator_learns_to_draw_the_public_pictures() -> None:
    public = torch.rand(16, 1, 8, 8, generator=torch.Generator().manual_seed(3)).round()
    short = list(Gias(epochs=3).learn(public, Seeds(0)))[-1][1]
    long = list(Gias(epochs=300).learn(public, Seeds(0)))[-1][1]
    parameters = {name for name, _ in small_generator().named_parameters()}
    assert set(short) == set(long) == parameters | {"codes.mean", "codes.std"}
    assert distance_to_public(long, public) < 0.85 * distance_to_public(short, public)


def small_generator() -> torch.nn.Module:
    return generator((1, 8, 8), torch.Generator())


def distance_to_public(prior: Mapping[str, torch.Tensor], public: torch.Tensor) -> float:
    """The mean distance from each public picture to the nearest of many drawn pictures."""
    module = small_generator()
    module.load_state_dict({name: prior[name] for name, _ in module.named_parameters()})
    noise = torch.randn(2000, CODE, generator=torch.Generator().manual_seed(1))
    codes = prior["codes.mean"] + prior["codes.std"] * noise
    with torch.no_grad():
        return float(torch.cdist(public.flatten(1), module(codes).flatten(1)).amin(1).mean())


@pytest.mark.slow
def test_it_reconstructs_a_picture() -> None:
    spec = AttackSpec(
        run=RUN, attack={"name": "gias", "epochs": 10, "iterations": 100, "bends": 300}, pictures=["test-0"]
    )
    judged = verdict(list(attack(spec)))
    assert judged.numbers["psnr"][0] > judged.trivial["psnr"][0] + 6
