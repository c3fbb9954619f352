"""Another participant subtracts its own upload and noise from the change that it receives in the same round."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from engine.compute import weights
from engine.compute.threads import ThreadTeam
from engine.errors import BadInput
from engine.events import Judged, Seen
from engine.leakage.compatibility import problem, refuse
from engine.leakage.pictures import attack
from engine.leakage.target import AttackResources, noiseless_plan
from engine.methods.averaging.fedavg import FedAvg
from engine.records import Exposure, Upload, View, Weights
from engine.specs.attack import AttackSpec, MembershipSpec
from engine.training.plan import LoadedPlan, load_plan
from engine.training.rounds import client_contexts, first_state, train_round
from tests.engine.leakage.test_probe import MLP, assert_close, factor_of_sum, first_exchange, loaded_plan, probed
from tests.engine.makers import tiny_spec

pytestmark = pytest.mark.slow

WITHOUT_SLICES = {"name": "fedceo", "unsampled-clients": "mean"}
LINEAR = ("fedavg", "fedprox", "scaffold", "fedsgd", "udp-fedavg", "dp-fedavg", WITHOUT_SLICES)
TWO: dict[str, Any] = {"clients": 2, "sampled": 2, "sampling": "all", "batch": 5000, "rounds": 2, "dataset": "mnist"}


def attacked(view: View, **fields: Any) -> tuple[Seen, Judged]:
    """An analytic attack on a run with two clients."""
    run = {"method": "fedavg", "model": {"name": "mlp", "bias": True}, "epochs": 1, **TWO, **fields}
    name = run.pop("attack", "analytic")
    spec = AttackSpec(run=run, attack=name, pictures=("test-7",), view=view)
    events = list(attack(spec, AttackResources()))
    seen = next(event for event in events if isinstance(event, Seen))
    return seen, next(event for event in events if isinstance(event, Judged))


def flat(tensors: Weights) -> torch.Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors.values()])


def noiseless(plan: LoadedPlan) -> LoadedPlan:
    clean = noiseless_plan(plan)
    assert clean is not None
    return clean


def noise_of(plan: LoadedPlan, round: int = 1) -> tuple[torch.Tensor, Exposure]:
    """The noise that remains in what a participant has, and its exposure."""
    noisy = probed(plan, "client", round)
    clean = probed(noiseless(plan), "client", round)
    return flat(weights.subtract(noisy.upload.model, clean.upload.model)), noisy


# --- the reconstruction ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["fedavg", "fedsgd", "fedprox", "scaffold"])
def test_a03_one_of_two_clients_reads_the_other_exactly(method: str) -> None:
    seen, judged = attacked("client", method=method)
    assert judged.numbers["psnr"][0] >= 140 and judged.state == "converged"
    assert (seen.facts["uploads"], "lacks" in seen.facts) == (1, False)


def test_a03_several_local_steps_of_one_other_client_are_computed_step_by_step() -> None:
    """The participant knows the length of the only other upload, so it does not compare directions alone."""
    quick = {"name": "map", "iterations": 400}
    fields: dict[str, Any] = {"model": "lenet-sigmoid", "epochs": 3, "attack": quick}
    by_server = attacked("server", **fields)[1].numbers["psnr"][0]
    by_participant = attacked("client", **fields)[1].numbers["psnr"][0]
    assert by_participant > by_server - 3


def test_a03_noise_of_the_other_client_remains() -> None:
    method = {"name": "udp-fedavg", "noise": 0.1, "noise-split": "full-local"}
    by_server = attacked("server", method=method)[0].facts["noise-to-signal"]
    by_participant = attacked("client", method=method)[0].facts["noise-to-signal"]
    assert by_participant == pytest.approx(by_server, rel=0.05)


# --- what remains ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", LINEAR, ids=str)
def test_a03_the_view_is_the_aggregate_without_the_own_upload(method: Any) -> None:
    plan = load_plan(tiny_spec(method=method, model=MLP))
    client = probed(plan, "client")
    aggregate = probed(plan, "aggregate")
    assert client.own is not None and client.own.client == plan.cohort(1)[1]
    others = weights.subtract(aggregate.upload.model, client.own.model)
    assert_close(client.upload.model, weights.scale(others, factor_of_sum(plan)), atol=1e-6)
    assert_close(client.packet.model, plan.world.weights, rtol=0, atol=0)
    cohort = len(plan.cohort(1))
    assert client.protocol.uploads == cohort - 1
    assert client.protocol.server_step == pytest.approx(abs(factor_of_sum(plan)) * (cohort - 1))
    assert client.protocol.pictures == 2


@pytest.mark.parametrize("method", ["ppsgd", "centaur"])
def test_a03_only_shared_weights_remain(method: str) -> None:
    plan = load_plan(tiny_spec(method={"name": method, "noise": 0.0, "head-epochs": 1}, model=MLP))
    client = probed(plan, "client")
    aggregate = probed(plan, "aggregate")
    assert client.own is not None and client.upload.model.keys() == client.own.model.keys()
    others = weights.subtract(aggregate.upload.model, client.own.model)
    assert_close(client.upload.model, weights.scale(others, factor_of_sum(plan)), atol=1e-6)


def test_a03_weights_by_size_are_public() -> None:
    method = {"name": "fedavg", "weighting": "size"}
    plan = load_plan(tiny_spec(method=method, model=MLP, partition={"name": "dirichlet", "alpha": 1.0}))
    client = probed(plan, "client")
    sizes = {id: plan.world.sizes[id] for id in plan.cohort(1)} | {plan.cohort(1)[0]: 2}
    uploads = {upload.client: upload.model for upload in first_exchange(plan).uploads}
    uploads[plan.cohort(1)[0]] = probed(plan, "server").upload.model
    rest = [id for id in plan.cohort(1) if id != plan.cohort(1)[1]]
    shares = [sizes[id] / sum(sizes.values()) for id in rest]
    assert_close(client.upload.model, weights.total([uploads[id] for id in rest], shares), atol=1e-6)
    assert client.protocol.server_step == pytest.approx(sum(shares))


NOISY: dict[str, dict[str, Any]] = {
    "the crowd shares": {"name": "udp-fedavg", "noise-split": "paper"},
    "each adds all": {"name": "udp-fedavg", "noise-split": "full-local"},
    "the server adds": {"name": "ppsgd", "noise-split": "server"},
    "personal, shared": {"name": "centaur", "noise-split": "paper"},
    "each step": {"name": "dp-fedavg"},
    "smoothed mean": {"name": "fedceo", "unsampled-clients": "mean", "every": 9},
}


@pytest.mark.parametrize("method", NOISY.values(), ids=NOISY)
@pytest.mark.parametrize("sampled", [2, 6])
def test_a03_the_std_is_that_of_the_noise_which_remains(method: dict[str, Any], sampled: int) -> None:
    fields = {**method, "noise": 50.0, "clip": 0.01, "server-step": 1.0}
    noise, exposure = noise_of(load_plan(tiny_spec(method=fields, model={**MLP, "hidden": 32}, sampled=sampled)))
    assert float(noise.std()) == pytest.approx(exposure.protocol.std, rel=4 / math.sqrt(2 * len(noise)) + 0.01)


def test_a03_clients_of_different_sizes_add_different_noise() -> None:
    fields = {"name": "dp-fedavg", "noise": 50.0, "clip": 0.01}
    parts = {"partition": {"name": "dirichlet", "alpha": 1.0}, "model": {**MLP, "hidden": 32}}
    noise, exposure = noise_of(load_plan(tiny_spec(method=fields, **parts)))
    assert float(noise.std()) == pytest.approx(exposure.protocol.std, rel=4 / math.sqrt(2 * len(noise)) + 0.01)


def test_a03_the_exposure_holds_no_other_upload() -> None:
    """Privacy: a participant has its own upload and a sum, and no noise or upload of any other client."""
    plan = loaded_plan("udp-fedavg")
    client = probed(plan, "client")
    clean = probed(noiseless(plan), "client")
    uploads = {upload.client: upload for upload in first_exchange(noiseless(plan)).uploads}
    assert client.own is not None and clean.own is not None
    assert_close(clean.own.model, uploads[clean.own.client].model, rtol=0, atol=0)
    assert client.upload == replace(client.upload, client=-1) and not client.known
    assert not client.upload.extra


# --- the round and the witness -----------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 1, 3])
def test_a03_the_observer_is_the_first_other_client_of_the_round(place: int) -> None:
    plan = loaded_plan()
    cohort = plan.cohort(2)
    exposure = probed(plan, "client", 2, client=cohort[place])
    assert exposure.own is not None and exposure.own.client == next(id for id in cohort if id != cohort[place])
    with ThreadTeam(1) as team:
        before = train_round(plan, first_state(plan), 1, team)
    assert_close(exposure.packet.model, before.server, rtol=0, atol=0)


def test_a03_later_rounds_do_not_matter() -> None:
    plan = loaded_plan("udp-fedavg")
    longer = load_plan(plan.spec.with_(rounds=9))
    assert longer.cohort(2) == plan.cohort(2)
    last = probed(noiseless(plan), "client", 2)
    assert_close(last.upload.model, probed(noiseless(longer), "client", 2).upload.model, rtol=0, atol=0)


def single_rounds() -> tuple[LoadedPlan, int, int]:
    """A plan, a round of it with one client and a round with several."""
    plan = load_plan(tiny_spec(method="udp-fedavg", sampled=2, rounds=20, model=MLP))
    sizes = {round: len(plan.cohort(round)) for round in range(1, 21)}
    single = next(round for round, size in sizes.items() if size == 1)
    return plan, single, next(round for round, size in sizes.items() if size > 1)


def test_a03_a_round_with_one_client_has_no_other_participant() -> None:
    plan, single, several = single_rounds()
    with pytest.raises(BadInput) as probing:
        probed(plan, "client", single)
    assert str(probing.value) == (
        f"probe: view: client does not apply: no other client took part in round {single}. "
        "Choose another view or another round."
    )
    assert probed(plan, "server", single).view == "server"
    request: dict[str, Any] = {"run": plan.spec, "attack": "map", "pictures": ("test-7",)}
    reason = problem(AttackSpec(**request, view="client", round=single))
    assert reason and reason.reason == f"is not possible in this view: no other client took part in round {single}"
    with pytest.raises(BadInput, match="no other client took part in round"):
        refuse(AttackSpec(**request, view="client", round=single), AttackResources())
    assert problem(AttackSpec(**request, view="client", round=several)) is None
    assert problem(AttackSpec(**request, view="outsider", round=single)) is None


# --- smoothing ---------------------------------------------------------------------------------------------


def smoothing_plan(unsampled_clients: str, smoothing: float = 1e6) -> LoadedPlan:
    method = {"name": "fedceo", "every": 1, "smoothing": smoothing, "unsampled-clients": unsampled_clients}
    return load_plan(tiny_spec(method={**method, "noise": 0.0, "clip": 1000.0, "server-step": 1.0}, model=MLP))


def test_a03_a_slice_of_the_own_number_keeps_what_the_smoothing_mixed_in() -> None:
    """Where the smoothing changes nothing, a client's own slice holds nothing of the others."""
    exposure = probed(smoothing_plan("own"), "client")
    assert exposure.own is not None
    assert weights.norm(exposure.upload.model) < 1e-3 * weights.norm(exposure.own.model)
    assert "the smoothing mixes" in exposure.lacks
    mixed = probed(smoothing_plan("own", smoothing=2.0), "client")
    assert weights.norm(mixed.upload.model) > 0.01 * weights.norm(exposure.own.model)


def test_a03_a_slice_of_another_number_is_the_model_of_that_client() -> None:
    plan = smoothing_plan("slot")
    exposure = probed(plan, "client")
    cohort = plan.cohort(1)
    uploads: dict[int, Upload] = {upload.client: upload for upload in first_exchange(plan).uploads}
    uploads[cohort[0]] = probed(plan, "server").upload
    received = cohort[cohort[1] % len(cohort)]
    assert received != cohort[1]
    assert_close(exposure.upload.model, uploads[received].model, atol=1e-4)
    assert (exposure.protocol.uploads, exposure.protocol.server_step) == (1, 1.0)
    assert exposure.lacks  # so that the attack compares directions only


def test_a03_after_a_smoothing_the_other_clients_started_elsewhere() -> None:
    method = {"name": "fedceo", "every": 2, "noise": 0.0}
    plan = load_plan(tiny_spec(method=method, model=MLP, rounds=4))
    assert probed(plan, "client", 1).lacks == ""
    assert probed(plan, "client", 2).lacks == "the other uploads, which the smoothing mixes with its own"
    assert probed(plan, "client", 3).lacks == "the slices from which the other clients started"
    assert {probed(plan, view, 3).lacks for view in ("server", "outsider")} == {""}


# --- the result format -------------------------------------------------------------------------------------


def test_a03_the_format_is_raised_in_this_view_only() -> None:
    request: dict[str, Any] = {"run": {}, "attack": "map", "pictures": ("test-7",)}
    assert AttackSpec(**request, view="client").format == 3
    assert {AttackSpec(**request, view=view).format for view in ("server", "aggregate", "outsider")} == {1}
    assert MembershipSpec(run={}, view="client").format == 1
    stored = AttackSpec(**request, view="client", format=1)
    assert stored.id != AttackSpec(**request, view="client").id
    with pytest.raises(BadInput) as refused:
        refuse(stored, AttackResources())
    assert str(refused.value) == (
        "attack: format: must be 3 to be replayed, got 1. Remove `format` to attack as this version does."
    )


def test_a03_parts_follow_from_the_public_protocol() -> None:
    """The parts follow from the public protocol, so that a method from another package needs no code for this view."""
    plan = loaded_plan()
    uploads = first_exchange(plan).uploads
    with ThreadTeam(1) as team:
        seat = client_contexts(plan, plan.cohort(1), 1, 1, 1, team)[1].seat
    parts = FedAvg().received_parts(seat, uploads, plan.world)
    assert parts == pytest.approx([1 / len(uploads)] * len(uploads))
