"""PPSGD and CENTAUR: the private parts, the guarantee of noise added by the server, and the reported accuracies."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.compute import weights
from engine.compute.threads import ThreadTeam
from engine.events import Kept, Measured, Warned
from engine.methods.personal.centaur import Centaur
from engine.methods.personal.ppsgd import PPSGD
from engine.records import VIEWS, Gaussian, NoNoise, Seat
from engine.training.loop import run
from engine.training.plan import LoadedPlan, load_plan, make_plan
from engine.training.rounds import Exchange, first_state, server_context, train_round
from engine.training.state import State
from tests.engine.makers import accuracies, tiny_spec

pytestmark = pytest.mark.slow

HEAD = "head.weight"
BOTH = ["ppsgd", "centaur"]
SHARDS: dict[str, Any] = {"partition": {"name": "shards"}, "clients": 20, "sampled": 20, "sampling": "all"}


def played(plan: LoadedPlan, rounds: int = 1) -> tuple[State, list[Exchange]]:
    """The state after the first rounds, and their exchanges."""
    state = first_state(plan)
    exchanges: list[Exchange] = []
    with ThreadTeam(2) as team:
        for round in range(1, rounds + 1):
            state = train_round(plan, state, round, team, watch=exchanges.append)
    return state, exchanges


def method_of(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


# --- what leaves and what stays ----------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["server", "paper", "full-local"])
def test_the_head_never_leaves_a_client_of_centaur(split: str) -> None:
    plan = load_plan(tiny_spec(method=method_of("centaur", **{"noise-split": split, "head-epochs": 1}), rounds=3))
    state, exchanges = played(plan, 3)
    for exchange in exchanges:
        assert all(set(upload.model) == {"hidden.weight"} and not upload.public for upload in exchange.uploads)
        assert all(torch.equal(packet.model[HEAD], plan.world.weights[HEAD]) for packet in exchange.packets)
    assert torch.equal(state.server[HEAD], plan.world.weights[HEAD])
    assert all(set(private) == {HEAD} for private in state.privates.values()) and state.privates


def test_a_client_of_centaur_continues_from_its_own_head() -> None:
    plan = load_plan(tiny_spec(method=method_of("centaur", **{"head-epochs": 2}), clients=4, sampled=4, sampling="all"))
    first, _ = played(plan, 1)
    second, _ = played(plan, 2)
    for client in range(4):
        moved = [torch.dist(state.privates[client][HEAD], plan.world.weights[HEAD]) for state in (first, second)]
        assert 0 < moved[0] < moved[1]


def test_ppsgd_without_head_epochs_equals_udp_fedavg_without_noise() -> None:
    quiet: dict[str, Any] = {"noise": 0.0, "clip": 0.3}
    ppsgd = method_of("ppsgd", **quiet, **{"head-epochs": 0})
    udp_fedavg = method_of("udp-fedavg", **quiet)
    ours, peer = (played(load_plan(tiny_spec(method=method)), 2)[0] for method in (ppsgd, udp_fedavg))
    assert all(torch.allclose(ours.server[name], peer.server[name], atol=1e-6) for name in peer.server)


def test_ppsgd_keeps_the_change_of_its_head_epochs() -> None:
    method = method_of("ppsgd", noise=0.0, clip=1e3, **{"head-epochs": 1})
    plan = load_plan(tiny_spec(method=method, clients=3, sampled=3, sampling="all"))
    state, exchanges = played(plan)
    for upload in exchanges[0].uploads:
        private = state.privates[upload.client]
        assert set(private) == {HEAD} and private[HEAD].any()
        assert set(upload.model) == {"hidden.weight", HEAD}
        assert not torch.allclose(upload.model[HEAD], private[HEAD], atol=1e-4)
    judged = plan.method.judged(state.server, state.memory, state.privates)
    assert torch.allclose(judged[0][HEAD], state.server[HEAD] + state.privates[0][HEAD])
    assert torch.equal(judged[0]["hidden.weight"], state.server["hidden.weight"])


@pytest.mark.parametrize("name", BOTH)
def test_only_the_payload_of_a_state_holds_private_parts(name: str) -> None:
    events = list(run(tiny_spec(method=method_of(name, **{"head-epochs": 1}))))
    kept = [event for event in events if isinstance(event, Kept) and event.payload]
    for event in kept:
        has_private = any(key.startswith("private/") for key in event.payload or {})
        assert not has_private or event.kind in ("state", "checkpoint")
    exposure = next(event for event in kept if event.kind == "exposure")
    assert (f"received/{HEAD}" in (exposure.payload or {})) == (name == "ppsgd")


# --- accuracy ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOTH)
def test_personal_models_are_better_if_clients_differ(name: str) -> None:
    method = method_of(name, noise=0.0, clip=10.0, **{"head-epochs": 3, "head-lr": 0.1, "server-step": 1.0})
    events = list(run(tiny_spec(method=method, **SHARDS, batch=20)))
    personal = accuracies(events, "personal")[-1]
    shared = accuracies(events)[-1]
    assert personal is not None and shared is not None and personal > shared + 0.1


def test_centaur_warns_what_its_global_accuracy_means() -> None:
    events = list(run(tiny_spec(method=method_of("centaur", **{"head-epochs": 1}))))
    assert any(isinstance(event, Warned) and "no last layer is shared" in event.reason for event in events)
    plan = load_plan(tiny_spec(method="centaur"))
    heads = {2: {HEAD: torch.full_like(plan.world.weights[HEAD], 2.0)}, 5: {HEAD: torch.zeros(10, 64)}}
    judged = plan.method.judged(plan.world.weights, {}, heads)
    assert bool((judged["global"][HEAD] == 1).all()) and set(judged) == {"global", 2, 5}
    assert [event.who for event in events if isinstance(event, Measured)].count("personal") == 2


# --- noise at the server -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOTH)
def test_the_server_adds_the_noise_it_declares(name: str) -> None:
    def plan_with(noise: float) -> LoadedPlan:
        return load_plan(tiny_spec(method=method_of(name, noise=noise, clip=0.5, **{"head-epochs": 1})))

    quiet, quiet_exchanges = played(plan_with(0.0))
    plan = plan_with(4.0)
    noisy, noisy_exchanges = played(plan)
    for clean, upload in zip(quiet_exchanges[0].uploads, noisy_exchanges[0].uploads, strict=True):
        assert all(torch.equal(clean.model[key], upload.model[key]) for key in clean.model)  # clipped, no noise
        assert weights.norm(clean.model) <= 0.5
    shared = noisy_exchanges[0].uploads[0].model
    drawn = torch.cat([(noisy.server[key] - quiet.server[key]).flatten() for key in shared])
    seat = noisy_exchanges[0].seats[0]
    protocol = plan.method.protocol(plan.world, seat, "outsider")
    assert protocol.std == pytest.approx(4.0 * 0.5 * 0.1 / plan.world.sampled)
    assert float(drawn.std()) == pytest.approx(protocol.std, rel=0.02)
    assert plan.method.protocol(plan.world, seat, "server").noise == "none"


@pytest.mark.parametrize("part", [PPSGD, Centaur])
def test_the_guarantee_of_noise_at_the_server(part: Any) -> None:
    world = make_plan(tiny_spec(clients=50, sampled=5, sampling="poisson")).world
    laws = {release.view: release.mechanism for release in part(noise=1.5).releases(world, 1, (3, 8))}
    assert set(laws) == set(VIEWS)
    assert isinstance(laws["server"], NoNoise) and isinstance(laws["aggregate"], NoNoise)
    assert laws["outsider"] == laws["client"] == Gaussian(1.5, 0.1)
    assert {release.view for release in part().releases(world, 1, ())} == {"outsider", "client"}
    assert part().guarantee(world).status == "formal-other-view"
    assert "personal models" in part().guarantee(world).reason
    full = part(noise_split="full-local")
    assert full.guarantee(world).status == "formal" and "personal models" in full.guarantee(world).reason
    assert full.protocol(world, Seat(0, 0, 1, 1, 1, 6), "server").std == 1.0


@pytest.mark.parametrize("split", ["server", "paper", "full-local"])
@pytest.mark.parametrize("name", BOTH)
def test_an_empty_round_draws_noise_like_any_other_round(name: str, split: str) -> None:
    plan = load_plan(tiny_spec(method=method_of(name, **{"noise-split": split})))
    with ThreadTeam(1) as team:
        after, _ = plan.method.merge(plan.world.weights, [], {}, server_context(plan, (), 1, 1, 1, team))
    moved = {key for key in after if not torch.equal(after[key], plan.world.weights[key])}
    shared = {"hidden.weight"} if name == "centaur" else {"hidden.weight", HEAD}
    assert moved == (set() if split == "full-local" else shared)
