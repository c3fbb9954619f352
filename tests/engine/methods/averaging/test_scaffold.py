"""SCAFFOLD: control variates on the server and on the clients, and what an attacker can subtract."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from engine.compute import weights
from engine.compute.threads import ThreadTeam
from engine.events import Judged, Seen
from engine.leakage.pictures import attack
from engine.leakage.probe import expose
from engine.leakage.target import AttackResources
from engine.methods import METHODS
from engine.methods.averaging.scaffold import CONTROL, client_slot
from engine.part import Problem
from engine.records import VIEWS, Packet, Seat
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from engine.training.plan import LoadedPlan, load_plan
from engine.training.rounds import Exchange, first_state, train_round
from engine.training.state import State, read_state
from tests.engine.makers import tiny_spec
from tests.engine.methods.alone import trained_alone, whole_batch_steps

ALL = {"clients": 4, "sampling": "all", "sampled": 4}


def loaded_plan(**fields: Any) -> LoadedPlan:
    values: dict[str, Any] = {"model": {"name": "mlp", "hidden": 8}, **fields}
    return load_plan(tiny_spec(method="scaffold", **values))


def played(plan: LoadedPlan, rounds: int) -> tuple[State, list[Exchange]]:
    state = first_state(plan)
    exchanges: list[Exchange] = []
    with ThreadTeam(2) as team:
        for round in range(1, rounds + 1):
            state = train_round(plan, state, round, team, watch=exchanges.append)
    return state, exchanges


def test_in_the_first_round_it_is_fedavg() -> None:
    plan = loaded_plan()
    own, _ = trained_alone(plan)
    plain, _ = trained_alone(plan, METHODS.make("fedavg"))
    for name, tensor in plain.model.items():
        torch.testing.assert_close(own.model[name], tensor, rtol=1e-6, atol=1e-8)


def test_the_steps_and_the_control_variate_follow_the_paper() -> None:
    """Option II, computed here with torch alone: y ← y - η (g - c_i + c), then c_i ← c_i - c + (x - y) / (K η)."""
    plan = loaded_plan(batch=1000, epochs=3)
    rng = torch.Generator().manual_seed(0)
    start = plan.world.weights
    control = {name: 0.1 * torch.randn(tensor.shape, generator=rng) for name, tensor in start.items()}
    own = {name: 0.1 * torch.randn(tensor.shape, generator=rng) for name, tensor in start.items()}
    upload, private = trained_alone(plan, packet=Packet(start, {CONTROL: control}), private=own)
    end = whole_batch_steps(plan, 0, start, lambda name, weight: control[name] - own[name])
    assert private is not None
    for name, tensor in start.items():
        torch.testing.assert_close(upload.model[name], end[name] - tensor, rtol=1e-4, atol=1e-6)
        expected = own[name] - control[name] + (tensor - end[name]) / (3 * plan.world.local.lr)
        torch.testing.assert_close(private[name], expected, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(upload.extra[CONTROL][name], expected - own[name], rtol=1e-3, atol=1e-5)


def test_the_servers_control_is_the_mean_of_the_clients_controls() -> None:
    plan = loaded_plan(**ALL)
    state, _ = played(plan, 2)
    for name, control in state.memory[CONTROL].items():
        mean = torch.stack([state.privates[client][name] for client in range(4)]).mean(0)
        torch.testing.assert_close(control, mean, rtol=1e-4, atol=1e-6)
        assert control.abs().sum() > 0


def test_with_some_clients_the_change_is_scaled_by_their_share() -> None:
    plan = loaded_plan(sampled=6, sampling="fixed")
    state, exchanges = played(plan, 1)
    total = weights.total([upload.extra[CONTROL] for upload in exchanges[0].uploads])
    for name, control in state.memory[CONTROL].items():
        torch.testing.assert_close(control, total[name] / 40)


def test_the_server_knows_each_clients_control_and_no_other_view_does() -> None:
    plan = loaded_plan(**ALL)
    state, _ = played(plan, 2)
    for client in range(4):
        known = plan.method.known("server", Seat(client, client, 3, 1, 1, 4), state.memory)
        assert all(torch.equal(known["c_k"][name], state.privates[client][name]) for name in known["c_k"])
    first = plan.method.known("server", Seat(0, 0, 1, 1, 1, 4), first_state(plan).memory)
    assert not any(tensor.any() for tensor in first["c_k"].values())
    for view in VIEWS[1:]:
        assert plan.method.known(view, Seat(0, 0, 3, 1, 1, 4), state.memory) == {}


def test_a_state_keeps_every_slot() -> None:
    plan = loaded_plan(**ALL)
    state, _ = played(plan, 1)
    payload = state.payload()
    assert f"memory/{CONTROL}/head.weight" in payload and f"memory/{client_slot(3)}/head.weight" in payload
    again = read_state(1, payload, plan.world.weights)
    assert again.memory.keys() == state.memory.keys()
    for slot, tensors in state.memory.items():
        assert all(torch.equal(again.memory[slot][name], tensor) for name, tensor in tensors.items())


def test_momentum_is_refused() -> None:
    (problem,) = METHODS.make("scaffold").problems(tiny_spec(method="scaffold", momentum=0.9))
    assert problem == Problem(
        "scaffold: momentum and weight decay must be 0: a control variate is the mean plain gradient",
        "Leave them out, or choose fedavg",
    )


# --- attacks -----------------------------------------------------------------------------------------------


RUN: dict[str, Any] = {
    "method": "scaffold", "model": {"name": "mlp", "bias": True}, "rounds": 4, "clients": 6, "sampled": 6,
    "sampling": "all", "batch": 1000, "epochs": 1,
}  # fmt: skip


def attacked(view: str, round: int, part: Any = "analytic", **run: Any) -> tuple[Seen, float]:
    spec = RunSpec(**{**RUN, **run})
    request = AttackSpec(run=spec, attack=part, pictures=("test-7",), round=round, view=view)
    events = list(attack(request, AttackResources()))
    seen = next(event for event in events if isinstance(event, Seen))
    judged = next(event for event in events if isinstance(event, Judged))
    return seen, judged.numbers["psnr"][0]


@pytest.mark.parametrize("round", [1, 3])
def test_the_server_subtracts_the_drift_and_reads_the_picture_exactly(round: int) -> None:
    seen, psnr = attacked("server", round)
    assert psnr > 100 and "lacks" not in seen.facts


@pytest.mark.slow
def test_several_local_steps_are_simulated_with_the_drift() -> None:
    quick = {"name": "map", "iterations": 400}
    _, psnr = attacked("server", 3, quick, model="lenet-sigmoid", dataset="mnist", epochs=3)
    assert psnr > 40


@pytest.mark.slow
def test_another_view_says_what_it_lacks() -> None:
    in_first, _ = attacked("aggregate", 1)
    assert "lacks" not in in_first.facts  # all control variates are still 0
    for view in ("aggregate", "outsider", "client"):
        seen, psnr = attacked(view, 3)
        assert "control variates of single clients" in seen.facts["lacks"] and psnr < 40


def test_without_the_clients_control_the_attack_is_blurred(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the test above: what makes the picture exact is the subtraction."""
    monkeypatch.setattr("engine.leakage.target.expose", lambda *args: replace(expose(*args), known={}))
    _, psnr = attacked("server", 3)
    assert psnr < 60
