"""FedProx: each local step is pulled back towards the server's model, with and without DP-SGD."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.attacks.pictures.problem import InversionProblem
from engine.compute.threads import ThreadTeam
from engine.leakage.probe import make_victim, probe
from engine.methods import METHODS
from engine.methods.averaging.base import Proximal
from engine.methods.averaging.fedprox import FedProx
from engine.methods.record_level.base import RecordLevel
from engine.records import Seat
from engine.training.plan import LoadedPlan, load_plan
from tests.engine.makers import tiny_spec
from tests.engine.methods.alone import trained_alone, whole_batch_steps


def loaded_plan(mu: float = 0.1, **fields: object) -> LoadedPlan:
    method = {"name": "fedprox", "mu": mu}
    return load_plan(tiny_spec(method=method, model={"name": "mlp", "hidden": 8}, batch=1000, epochs=4, **fields))


@pytest.mark.parametrize("mu", [0.1, 2.0])
def test_the_loss_has_the_squared_distance_without_a_half(mu: float) -> None:
    plan = loaded_plan(mu)
    start = plan.world.weights
    upload, private = trained_alone(plan)
    end = whole_batch_steps(plan, 0, start, lambda name, weight: 2 * mu * (weight - start[name]))
    assert private is None
    for name, tensor in upload.model.items():
        torch.testing.assert_close(tensor, end[name] - start[name], rtol=1e-4, atol=1e-6)


def test_without_a_pull_it_is_fedavg() -> None:
    plan = loaded_plan(0.0)
    prox, _ = trained_alone(plan)
    plain, _ = trained_alone(plan, METHODS.make("fedavg"))
    assert all(torch.equal(prox.model[name], plain.model[name]) for name in plain.model)


def test_a_stronger_pull_moves_less() -> None:
    moved = []
    for mu in (0.0, 0.5, 2.0):
        upload, _ = trained_alone(loaded_plan(mu))
        moved.append(sum(float(tensor.square().sum()) for tensor in upload.model.values()))
    assert moved == sorted(moved, reverse=True) and moved[2] < 0.6 * moved[0]


def test_the_same_pull_works_under_dp_sgd() -> None:
    """The pull is added after the noise, because it depends on no data. Without noise and clip it is FedProx."""

    class PrivateProx(Proximal, RecordLevel):
        pass

    plan = loaded_plan(0.5)
    private, _ = trained_alone(plan, PrivateProx(mu=0.5, noise=0.0, clip=1000.0))
    plain, _ = trained_alone(plan, FedProx(mu=0.5))
    for name, tensor in private.model.items():
        torch.testing.assert_close(tensor, plain.model[name], rtol=1e-3, atol=1e-5)


def test_an_attack_simulates_the_pull_of_several_steps() -> None:
    """The upload that an attack computes for the true pictures is the upload."""
    plan = load_plan(tiny_spec(method={"name": "fedprox", "mu": 2.0}, model={"name": "mlp", "hidden": 8}, epochs=4))
    data = plan.spec.dataset.load()
    with ThreadTeam(1) as team:
        exposure = probe(plan, [], make_victim(plan, 1, data.test_x[:2], data.test_y[:2]), "server", team)
    problem = InversionProblem.of(exposure, plan.world.build(torch.Generator()))
    assert exposure.protocol.steps == 4 and problem.unexplained(data.test_x[:2], data.test_y[:2]) < 1e-8
    weaker = replace(problem, protocol=replace(exposure.protocol, proximal=1.0))
    assert weaker.unexplained(data.test_x[:2], data.test_y[:2]) > 1e-4


def test_an_attacker_knows_the_pull() -> None:
    plan = loaded_plan(0.3)
    assert plan.method.protocol(plan.world, Seat(0, 0, 1, 1, 1, 6), "server").proximal == 0.3
