"""Small exposures that every attack can be tried on."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from engine.attacks import ATTACKS, Attack, Prior
from engine.compute.threads import ThreadTeam
from engine.leakage.probe import expose, victim
from engine.records import Exposure, Guess, View
from engine.seeds import Seeds
from engine.specs.run import RunSpec
from engine.training.plan import LoadedPlan, load_plan
from engine.training.rounds import opening

QUICK = {"iterations": 2, "bends": 2, "epochs": 1}
SMALL: tuple[Any, ...] = ("lenet-sigmoid", {"name": "mlp", "hidden": 16})
UNIFORM = {"name": "lenet-sigmoid", "init": "uniform"}
Case = tuple[str, int, View]  # method, pictures, who looks


@dataclass(frozen=True)
class InversionScene:
    """An exposure, the truth behind it, and what builds the model that was sent."""

    exposure: Exposure
    attack: Attack
    prior: Prior | None
    x: Tensor
    y: Tensor
    bare: LoadedPlan

    def module(self) -> nn.Module:
        built = self.bare.world.build(torch.Generator())
        return self.attack.tamper(built, {}, self.bare.world)[0]

    def guesses(self, seed: int = 0, module: nn.Module | None = None) -> Iterator[Guess]:
        return self.attack.reconstruct(self.exposure, module or self.module(), self.prior, Seeds(seed))


def bare(method: Any, model: Any = "lenet-sigmoid", dataset: str = "fashion-mnist") -> LoadedPlan:
    """A plan before its first round, built once."""
    return _bare(json.dumps([method, model, dataset]))


@cache
def _bare(asked: str) -> LoadedPlan:
    method, model, dataset = json.loads(asked)
    return load_plan(
        RunSpec(method=method, model=model, dataset=dataset, clients=40, sampled=3, rounds=2, batch=100, seed=3)
    )


def quick(name: str, **fields: Any) -> Attack:
    """The attack with few steps."""
    few = {field: value for field, value in QUICK.items() if field in ATTACKS[name].model_fields}
    return ATTACKS.make({"name": name, **few, **fields})


def fitting(attack: Attack, method: str) -> LoadedPlan:
    """A plan with the first small model that this attack can work on."""
    scenes = (bare(method, model) for model in SMALL)
    return next(one for one in scenes if not attack.misfit(one.world, one.world.build(torch.Generator())))


def inversion_scene(
    attack: Attack, case: Case = ("fedsgd", 1, "server"), there: LoadedPlan | None = None
) -> InversionScene:
    method, many, view = case
    there = there or fitting(attack, method)
    data = there.spec.dataset.load()
    x, y = data.test_x[:many], data.test_y[:many]
    tamper = partial(attack.tamper, world=there.world) if attack.malicious else None
    with ThreadTeam(1) as team:
        exposure = expose(there, opening(there), victim(there, 1, x, y), view, team, tamper)
    return InversionScene(exposure, attack, learnt(attack, data.test_x[-8:]), x, y, there)


def learnt(attack: Attack, public: Tensor) -> Prior | None:
    return list(attack.learn(public, Seeds(0)))[-1][1] if attack.learns else None


def copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in tensors.items()}


def psnr(guess: Tensor, truth: Tensor) -> float:
    return -10 * math.log10(float((guess - truth).square().mean()))
