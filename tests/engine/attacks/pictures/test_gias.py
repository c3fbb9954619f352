"""A generator learnt once from public pictures, and kept."""

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
    """Keeps what was learnt."""

    def __init__(self) -> None:
        self.kept: dict[str, Payload] = {}

    def prior(self, name: str) -> Payload | None:
        return self.kept.get(name)

    def keep_prior(self, name: str, payload: Mapping[str, Any]) -> None:
        self.kept[name] = payload


def told(resources: AttackResources, **fields: Any) -> list[Event]:
    asked = {"name": "gias", "epochs": 2, "iterations": 10, "bends": 20, **fields}
    return list(attack(AttackSpec(run=RUN, attack=asked, pictures=["test-0"]), resources))


def learning(events: list[Event]) -> int:
    return sum(isinstance(event, Step) for event in events)


@pytest.mark.slow
def test_it_learns_once_and_remembers() -> None:
    shelf = StubShelf()
    first, again = told(shelf), told(shelf)
    assert learning(first) >= 1 and learning(again) == 0
    ours, theirs = (next(event for event in events if isinstance(event, Judged)) for events in (first, again))
    assert ours == theirs
    assert learning(told(shelf, epochs=1)) == 1 and len(shelf.kept) == 2


def test_the_generator_learns_to_draw_the_public_pictures() -> None:
    public = torch.rand(16, 1, 8, 8, generator=torch.Generator().manual_seed(3)).round()
    short, long = (list(Gias(epochs=epochs).learn(public, Seeds(0)))[-1][1] for epochs in (3, 300))
    assert set(short) == set(long) == {name for name, _ in drawer().named_parameters()} | {"codes.mean", "codes.std"}
    assert missed(long, public) < 0.85 * missed(short, public)


def drawer() -> torch.nn.Module:
    return generator((1, 8, 8), torch.Generator())


def missed(prior: Mapping[str, torch.Tensor], public: torch.Tensor) -> float:
    """How far the best of many drawn pictures is from each public one."""
    module = drawer()
    module.load_state_dict({name: prior[name] for name, _ in module.named_parameters()})
    codes = prior["codes.mean"] + prior["codes.std"] * torch.randn(
        2000, CODE, generator=torch.Generator().manual_seed(1)
    )
    with torch.no_grad():
        return float(torch.cdist(public.flatten(1), module(codes).flatten(1)).amin(1).mean())


@pytest.mark.slow
def test_it_brings_a_picture_back() -> None:
    spec = AttackSpec(
        run=RUN, attack={"name": "gias", "epochs": 10, "iterations": 100, "bends": 300}, pictures=["test-0"]
    )
    judged = next(event for event in attack(spec) if isinstance(event, Judged))
    assert judged.numbers["psnr"][0] > judged.trivial["psnr"][0] + 6
