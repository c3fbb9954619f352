"""FedCEO as released: the cost and guarantee of DP-SGD, the smoothing of FedCEO."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.compute.threads import ThreadTeam
from engine.events import Smoothed, Started
from engine.methods import METHODS
from engine.methods.smoothing.fedceo_released import FedCEOReleased
from engine.records import VIEWS, Seat
from engine.specs.run import RunSpec
from engine.training.loop import run
from engine.training.plan import load_plan, make_plan
from engine.training.rounds import first_state, train_round
from engine.training.state import State
from tests.engine.makers import tiny_spec, with_noise_of

NOISY = {"noise": 1.2, "clip": 0.5}


def released(mode: str = "own", **fields: Any) -> dict[str, Any]:
    return {"name": "fedceo-released", "every": 2, "unsampled-clients": mode, **NOISY, **fields}


def last_state(spec: RunSpec) -> State:
    """The state after all rounds, with the noise of the same run of DP-FedAvg."""
    plan = with_noise_of(load_plan(spec), load_plan(spec.with_(method={"name": "dp-fedavg", **NOISY})))
    state = first_state(plan)
    with ThreadTeam(2) as team:
        for round in range(1, spec.rounds + 1):
            state = train_round(plan, state, round, team)
    return state


# --- without smoothing it equals DP-FedAvg -----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["poisson", "all"])
def test_with_the_mean_and_a_tiny_threshold_it_equals_dp_fedavg(sampling: str) -> None:
    sampled = 4 if sampling == "poisson" else 8
    fields: dict[str, Any] = {"sampling": sampling, "rounds": 4, "clients": 8, "sampled": sampled}
    smoothed = last_state(tiny_spec(method=released("mean", smoothing=1e6), **fields))
    dp_fedavg = last_state(tiny_spec(method={"name": "dp-fedavg", **NOISY}, **fields))
    for name, tensor in dp_fedavg.server.items():
        torch.testing.assert_close(smoothed.server[name], tensor, atol=1e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize("mode", ["own", "slot", "mean"])
def test_it_costs_the_same_as_dp_fedavg(mode: str) -> None:
    fields: dict[str, Any] = {"rounds": 6, "epochs": 2, "partition": {"name": "dirichlet", "alpha": 0.5}}
    smoothing = make_plan(tiny_spec(method=released(mode), **fields))
    dp_fedavg = make_plan(tiny_spec(method={"name": "dp-fedavg", **NOISY}, **fields))
    views = [view for view in VIEWS if mode == "mean" or view != "aggregate"]
    assert set(smoothing.guarantee.absent) == set(VIEWS) - set(views)
    answers = smoothing.answers(smoothing.ledger(6))
    expected = dp_fedavg.answers(dp_fedavg.ledger(6))
    assert answers == tuple(answer for answer in expected if answer.view in views)
    assert {(answer.unit, answer.adjacency) for answer in answers} == {("record", "add-remove")}
    for round in (1, 2):  # round 2 smooths: then outsiders and clients receive slices, or their mean
        cohort = smoothing.cohort(round)
        seat = Seat(cohort[0], 0, round, 1, 1, len(cohort))
        for view in [view for view in views if view == "server" or round == 1 or mode == "mean"]:
            protocol = smoothing.method.protocol(smoothing.world, seat, view)
            assert protocol == dp_fedavg.method.protocol(dp_fedavg.world, seat, view)


# --- with smoothing ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_smooths_and_gives_every_client_its_own_slice() -> None:
    spec = tiny_spec(method=released(smoothing=0.5), rounds=2, sampled=4)
    state = last_state(spec)
    cohort = load_plan(spec).cohort(2)
    owners = {slot for slot in state.memory if slot[0].isdigit()}
    assert owners == {str(client) for client in cohort}
    [event] = [event for event in run(spec) if isinstance(event, Smoothed)]
    assert event.clients == cohort and event.threshold == 1.0


def test_it_differs_from_the_algorithm_of_the_paper() -> None:
    part, paper = FedCEOReleased(), METHODS["fedceo"]()
    assert (part.unit(), paper.unit()) == ("record", "user")
    assert part.unsampled_clients == "own" and part.server_step == 1.0
    assert set(paper.values()) - set(part.values()) == {"noise-split"}  # it has all other parameters


def test_the_guarantee() -> None:
    world = make_plan(tiny_spec()).world
    guarantee = FedCEOReleased().guarantee(world)
    assert guarantee.status == "formal"
    assert "one picture, not one client" in guarantee.reason and "costs no more" in guarantee.reason
    quiet = FedCEOReleased(noise=0.0).guarantee(world)
    assert quiet.status == "none" and "aggregate" in quiet.absent and "smoothing" not in quiet.reason


@pytest.mark.parametrize("name", ["dp-fedavg", "fedceo-released"])
def test_the_guarantee_for_text_names_sentences(name: str) -> None:
    spec = RunSpec(method=name, dataset="movie-reviews", model="lstm", rounds=0)
    start = next(iter(run(spec)))
    assert isinstance(start, Started)
    assert "one sentence, not one client, and how many sentences" in start.facts["guarantee"]["reason"]
