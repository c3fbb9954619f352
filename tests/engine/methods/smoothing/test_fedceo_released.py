"""FedCEO as released: DP-SGD's price and promise, FedCEO's smoothing."""

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
from engine.training.rounds import opening, play
from engine.training.state import State
from tests.engine.makers import tiny

NOISY = {"noise": 1.2, "clip": 0.5}


def released(mode: str = "own", **fields: Any) -> dict[str, Any]:
    return {"name": "fedceo-released", "every": 2, "unsampled-clients": mode, **NOISY, **fields}


def last(spec: RunSpec) -> State:
    there = load_plan(spec)
    state = opening(there)
    with ThreadTeam(2) as team:
        for round in range(1, spec.rounds + 1):
            state = play(there, state, round, team)
    return state


# --- without smoothing it is DP-FedAvg ---------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["poisson", "all"])
def test_with_the_mean_and_hardly_any_threshold_it_is_dp_fedavg(sampling: str) -> None:
    where: dict[str, Any] = {
        "sampling": sampling,
        "rounds": 4,
        "clients": 8,
        "sampled": 4 if sampling == "poisson" else 8,
    }
    one, other = (
        last(tiny(method=method, **where))
        for method in (released("mean", smoothing=1e6), {"name": "dp-fedavg", **NOISY})
    )
    for name, tensor in other.server.items():
        torch.testing.assert_close(one.server[name], tensor, atol=1e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize("mode", ["own", "slot", "mean"])
def test_it_costs_what_dp_fedavg_costs(mode: str) -> None:
    where: dict[str, Any] = {"rounds": 6, "epochs": 2, "partition": {"name": "dirichlet", "alpha": 0.5}}
    one, other = (
        make_plan(tiny(method=method, **where)) for method in (released(mode), {"name": "dp-fedavg", **NOISY})
    )
    views = [view for view in VIEWS if mode == "mean" or view != "aggregate"]
    assert set(one.guarantee.absent) == set(VIEWS) - set(views)
    found = one.answers(one.ledger(6))
    assert found == tuple(answer for answer in other.answers(other.ledger(6)) if answer.view in views)
    assert {(answer.unit, answer.adjacency) for answer in found} == {("record", "add-remove")}
    for round in (1, 2):  # after the second they smooth: what others are given then are slices, or their mean
        seat = Seat(one.cohort(round)[0], 0, round, 1, 1, len(one.cohort(round)))
        for view in [view for view in views if view == "server" or round == 1 or mode == "mean"]:
            assert one.method.protocol(one.world, seat, view) == other.method.protocol(other.world, seat, view)


# --- and with it -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_smooths_and_gives_every_client_its_own_slice() -> None:
    spec = tiny(method=released(smoothing=0.5), rounds=2, sampled=4)
    state, cohort = last(spec), load_plan(spec).cohort(2)
    assert {name.partition("/")[0] for name in state.memory if name[0].isdigit()} == {str(client) for client in cohort}
    [event] = [one for one in run(spec) if isinstance(one, Smoothed)]
    assert event.clients == cohort and event.threshold == 1.0


def test_it_is_another_part_than_the_algorithm_as_written() -> None:
    part, written = FedCEOReleased(), METHODS["fedceo"]()
    assert (part.unit(), written.unit()) == ("record", "user")
    assert part.unsampled_clients == "own" and part.server_step == 1.0
    assert set(written.values()) - set(part.values()) == {"noise-split"}  # of the rest nothing is missing


def test_its_promise() -> None:
    world = make_plan(tiny()).world
    found = FedCEOReleased().guarantee(world)
    assert (
        found.status == "formal" and "one picture, not one client" in found.reason and "costs no more" in found.reason
    )
    quiet = FedCEOReleased(noise=0.0).guarantee(world)
    assert quiet.status == "none" and "aggregate" in quiet.absent and "smoothing" not in quiet.reason


@pytest.mark.parametrize("name", ["dp-fedavg", "fedceo-released"])
def test_of_sentences_it_promises_sentences(name: str) -> None:
    spec = RunSpec(method=name, dataset="movie-reviews", model="lstm", rounds=0)
    start = next(iter(run(spec)))
    assert isinstance(start, Started)
    assert "one sentence, not one client, and how many sentences" in start.facts["guarantee"]["reason"]
