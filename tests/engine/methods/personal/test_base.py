"""PPSGD and CENTAUR: what stays with the client, what the server's own noise promises, and whose accuracy is told."""

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
from engine.training.rounds import Exchange, opening, play
from engine.training.state import State
from tests.engine.makers import accuracies, tiny

pytestmark = pytest.mark.slow

HEAD = "head.weight"
BOTH = ["ppsgd", "centaur"]
SHARDS: dict[str, Any] = {"partition": {"name": "shards"}, "clients": 20, "sampled": 20, "sampling": "all"}


def played(there: LoadedPlan, many: int = 1) -> tuple[State, list[Exchange]]:
    state, seen = opening(there), list[Exchange]()
    with ThreadTeam(2) as team:
        for round in range(1, many + 1):
            state = play(there, state, round, team, watch=seen.append)
    return state, seen


def asked(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


# --- what leaves and what stays ----------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["server", "paper", "full-local"])
def test_the_head_never_leaves_a_client_of_centaur(split: str) -> None:
    there = load_plan(tiny(method=asked("centaur", **{"noise-split": split, "head-epochs": 1}), rounds=3))
    state, seen = played(there, 3)
    for exchange in seen:
        assert all(set(upload.tensors) == {"hidden.weight"} and not upload.public for upload in exchange.uploads)
        assert all(torch.equal(packet[HEAD], there.world.weights[HEAD]) for packet in exchange.packets)
    assert torch.equal(state.server[HEAD], there.world.weights[HEAD])
    assert all(set(private) == {HEAD} for private in state.privates.values()) and state.privates


def test_a_client_of_centaur_goes_on_from_its_own_head() -> None:
    there = load_plan(tiny(method=asked("centaur", **{"head-epochs": 2}), clients=4, sampled=4, sampling="all"))
    first, _ = played(there, 1)
    second, _ = played(there, 2)
    for client in range(4):
        moved = [torch.dist(state.privates[client][HEAD], there.world.weights[HEAD]) for state in (first, second)]
        assert 0 < moved[0] < moved[1]


def test_ppsgd_without_head_epochs_is_udp_fedavg_with_noise_at_the_server() -> None:
    quiet: dict[str, Any] = {"noise": 0.0, "clip": 0.3}
    ours, peer = (
        played(load_plan(tiny(method=method)), 2)[0]
        for method in (asked("ppsgd", **quiet, **{"head-epochs": 0}), asked("udp-fedavg", **quiet))
    )
    assert all(torch.allclose(ours.server[name], peer.server[name], atol=1e-6) for name in peer.server)


def test_what_ppsgd_keeps_is_what_its_head_epochs_moved() -> None:
    there = load_plan(
        tiny(method=asked("ppsgd", noise=0.0, clip=1e3, **{"head-epochs": 1}), clients=3, sampled=3, sampling="all")
    )
    state, seen = played(there)
    for upload in seen[0].uploads:
        own = state.privates[upload.client]
        assert set(own) == {HEAD} and own[HEAD].any()
        assert set(upload.tensors) == {"hidden.weight", HEAD}
        assert not torch.allclose(upload.tensors[HEAD], own[HEAD], atol=1e-4)
    judged = there.method.judged(state.server, state.memory, state.privates)
    assert torch.allclose(judged[0][HEAD], state.server[HEAD] + state.privates[0][HEAD])
    assert torch.equal(judged[0]["hidden.weight"], state.server["hidden.weight"])


@pytest.mark.parametrize("name", BOTH)
def test_no_payload_but_a_state_holds_a_private_part(name: str) -> None:
    events = list(run(tiny(method=asked(name, **{"head-epochs": 1}))))
    kept = [event for event in events if isinstance(event, Kept) and event.payload]
    for event in kept:
        has = any(key.startswith("private/") for key in event.payload or {})
        assert not has or event.kind in ("state", "checkpoint")
    exposure = next(event for event in kept if event.kind == "exposure")
    assert (f"received/{HEAD}" in (exposure.payload or {})) == (name == "ppsgd")


# --- whose accuracy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOTH)
def test_where_clients_differ_their_own_models_are_better(name: str) -> None:
    method = asked(name, noise=0.0, clip=10.0, **{"head-epochs": 3, "head-lr": 0.1, "server-step": 1.0})
    events = list(run(tiny(method=method, **SHARDS, batch=20)))
    own, together = accuracies(events, "personal")[-1], accuracies(events)[-1]
    assert own is not None and together is not None and own > together + 0.1


def test_centaur_says_what_its_global_accuracy_is() -> None:
    events = list(run(tiny(method=asked("centaur", **{"head-epochs": 1}))))
    assert any(isinstance(event, Warned) and "no last layer is shared" in event.reason for event in events)
    there = load_plan(tiny(method="centaur"))
    heads = {2: {HEAD: torch.full_like(there.world.weights[HEAD], 2.0)}, 5: {HEAD: torch.zeros(10, 64)}}
    judged = there.method.judged(there.world.weights, {}, heads)
    assert bool((judged["global"][HEAD] == 1).all()) and set(judged) == {"global", 2, 5}
    assert [event.who for event in events if isinstance(event, Measured)].count("personal") == 2


# --- noise at the server -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOTH)
def test_the_server_adds_the_noise_it_declares(name: str) -> None:
    def end(noise: float) -> Any:
        there = load_plan(tiny(method=asked(name, noise=noise, clip=0.5, **{"head-epochs": 1})))
        return there, played(there)

    (_, (quiet, calm)), (there, (loud, seen)) = end(0.0), end(4.0)
    for one, other in zip(calm[0].uploads, seen[0].uploads, strict=True):
        assert all(torch.equal(one.tensors[key], other.tensors[key]) for key in one.tensors)  # clipped, not noised
        assert weights.norm(one.tensors) <= 0.5
    drawn = torch.cat([(loud.server[key] - quiet.server[key]).flatten() for key in seen[0].uploads[0].tensors])
    told = there.method.protocol(there.world, seen[0].seats[0], "outsider")
    assert told.std == pytest.approx(4.0 * 0.5 * 0.1 / there.world.sampled)
    assert float(drawn.std()) == pytest.approx(told.std, rel=0.02)
    assert there.method.protocol(there.world, seen[0].seats[0], "server").noise == "none"


@pytest.mark.parametrize("part", [PPSGD, Centaur])
def test_what_the_noise_at_the_server_promises(part: Any) -> None:
    world = make_plan(tiny(clients=50, sampled=5, sampling="poisson")).world
    found = {one.view: one for one in part(noise=1.5).releases(world, 1, (3, 8))}
    assert set(found) == set(VIEWS)
    assert isinstance(found["server"].law, NoNoise) and isinstance(found["aggregate"].law, NoNoise)
    assert found["outsider"].law == found["client"].law == Gaussian(1.5, 0.1)
    assert {one.view for one in part().releases(world, 1, ())} == {"outsider", "client"}
    assert part().guarantee(world).status == "formal-other-view"
    assert "personal models" in part().guarantee(world).reason
    full = part(noise_split="full-local")
    assert full.guarantee(world).status == "formal" and "personal models" in full.guarantee(world).reason
    assert full.protocol(world, Seat(0, 0, 1, 1, 1, 6), "server").std == 1.0


@pytest.mark.parametrize("split", ["server", "paper", "full-local"])
@pytest.mark.parametrize("name", BOTH)
def test_an_empty_round_draws_noise_where_any_other_would(name: str, split: str) -> None:
    there = load_plan(tiny(method=asked(name, **{"noise-split": split})))
    from engine.training.rounds import server_desk

    with ThreadTeam(1) as team:
        after, _ = there.method.merge(there.world.weights, [], {}, server_desk(there, (), 1, 1, 1, team))
    moved = {key for key in after if not torch.equal(after[key], there.world.weights[key])}
    shared = {"hidden.weight"} if name == "centaur" else {"hidden.weight", HEAD}
    assert moved == (set() if split == "full-local" else shared)
