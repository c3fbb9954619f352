"""Small exposures for the tests of attacks."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from engine.attacks import ATTACKS, Attack
from engine.attacks.pictures.base import PictureAttack, Prior
from engine.compute.context import AttackContext
from engine.compute.threads import ThreadTeam
from engine.leakage.probe import expose, make_victim
from engine.records import Exposure, Guess, Packet, View
from engine.seeds import Seeds
from engine.specs.run import RunSpec
from engine.training.plan import LoadedPlan, load_plan
from engine.training.rounds import first_state

QUICK = {"iterations": 2, "bends": 2, "epochs": 1}
SMALL_MODELS: tuple[Any, ...] = ("lenet-sigmoid", {"name": "mlp", "hidden": 16})
UNIFORM = {"name": "lenet-sigmoid", "init": "uniform"}
Case = tuple[str, int, View]  # method, pictures, view


@dataclass(frozen=True)
class InversionScene:
    """An exposure, the truth behind it, and the plan that builds the model."""

    exposure: Exposure
    attack: PictureAttack
    prior: Prior | None
    x: Tensor
    y: Tensor
    plan: LoadedPlan

    def module(self) -> nn.Module:
        module = self.plan.world.build(torch.Generator())
        return self.attack.tamper(module, Packet({}), self.plan.world)[0]

    def guesses(self, seed: int = 0, module: nn.Module | None = None) -> Iterator[Guess]:
        return self.attack.reconstruct(self.exposure, module or self.module(), self.prior, AttackContext(Seeds(seed)))


def small_plan(method: Any, model: Any = "lenet-sigmoid", dataset: str = "fashion-mnist") -> LoadedPlan:
    """A plan before its first round, loaded once."""
    return _small_plan(json.dumps([method, model, dataset]))


@cache
def _small_plan(key: str) -> LoadedPlan:
    method, model, dataset = json.loads(key)
    return load_plan(
        RunSpec(method=method, model=model, dataset=dataset, clients=40, sampled=3, rounds=2, batch=100, seed=3)
    )


def quick(name: str, **fields: Any) -> PictureAttack:
    """The attack with few steps."""
    few = {field: value for field, value in QUICK.items() if field in ATTACKS[name].model_fields}
    attack = ATTACKS.make({"name": name, **few, **fields})
    assert isinstance(attack, PictureAttack)
    return attack


def suitable_plan(attack: PictureAttack, method: str) -> LoadedPlan:
    """A plan with the first small model that this attack can work on."""
    for model in SMALL_MODELS:
        plan = small_plan(method, model)
        if not attack.misfit(plan.world, plan.world.build(torch.Generator())):
            return plan
    raise AssertionError(f"no small model for {attack.name}")


def inversion_scene(
    attack: Attack, case: Case = ("fedsgd", 1, "server"), plan: LoadedPlan | None = None
) -> InversionScene:
    """The exposure of one case, and what the attack needs."""
    assert isinstance(attack, PictureAttack)
    method, many, view = case
    plan = plan or suitable_plan(attack, method)
    attack = attack.suited_to(normalises=plan.spec.model.normalises, wide=plan.spec.model.wide)
    data = plan.spec.dataset.load()
    x = data.test_x[:many]
    y = data.test_y[:many]
    tamper = partial(attack.tamper, world=plan.world) if attack.malicious else None
    with ThreadTeam(1) as team:
        exposure = expose(plan, first_state(plan), make_victim(plan, 1, x, y), view, team, tamper)
    return InversionScene(exposure, attack, learned_prior(attack, data.test_x[-8:]), x, y, plan)


def learned_prior(attack: PictureAttack, public: Tensor) -> Prior | None:
    return list(attack.learn(public, Seeds(0)))[-1][1] if attack.learns else None


def copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in tensors.items()}


def psnr(guess: Tensor, truth: Tensor) -> float:
    return -10 * math.log10(float((guess - truth).square().mean()))
