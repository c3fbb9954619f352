"""UDP-FedAvg: the clip, the noise, the constant divisor, and what each view is told to have cost."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.compute import weights
from engine.compute.threads import ThreadTeam
from engine.methods.user_level.udp_fedavg import UDPFedAvg
from engine.records import VIEWS, Gaussian, Release, Seat, Upload
from engine.specs.run import RunSpec
from engine.training.plan import LoadedPlan, Plan, load_plan, make_plan
from engine.training.rounds import Exchange, opening, play, server_desk
from tests.engine.makers import tiny

SPLITS = ["paper", "full-local"]
SIGMAS = (1.0, 1.5, 2.0)


def loaded_plan(
    noise: float = 1.0, clip: float = 1.0, split: str = "paper", step: float = 0.1, **asked: Any
) -> LoadedPlan:
    method = {"name": "udp-fedavg", "noise": noise, "clip": clip, "noise-split": split, "server-step": step}
    return load_plan(tiny(method=method, **asked))


def played(there: LoadedPlan, round: int = 1) -> Exchange:
    seen: list[Exchange] = []
    with ThreadTeam(2) as team:
        play(there, opening(there), round, team, watch=seen.append)
    return seen[0]


def flat(tensors: Any) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors.values()])


# --- what leaves a client ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [1e-3, 0.3, 50.0])
def test_before_the_noise_no_upload_is_longer_than_the_clip(bound: float) -> None:
    plain, clipped = (
        played(load_plan(tiny(method="fedavg", sampling="poisson"))),
        played(loaded_plan(noise=0.0, clip=bound)),
    )
    for free, upload in zip(plain.uploads, clipped.uploads, strict=True):
        length = weights.norm(free.tensors)
        assert weights.norm(upload.tensors) <= bound
        expected = weights.scale(free.tensors, min(1.0, bound / length))
        torch.testing.assert_close(flat(upload.tensors), flat(expected), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("split", SPLITS)
def test_the_noise_of_an_upload_is_exactly_the_declared_one(split: str) -> None:
    quiet, loud = (played(loaded_plan(noise, clip=0.5, split=split)) for noise in (0.0, 3.0))
    cohort = len(quiet.uploads)
    std = 3.0 * 0.5 / (math.sqrt(cohort) if split == "paper" else 1.0)
    told = UDPFedAvg(noise=3.0, clip=0.5, noise_split=split).protocol(loaded_plan().world, loud.seats[0], "server")  # type: ignore[arg-type]
    assert told.std == pytest.approx(std) and (told.clip, told.bound) == ("whole-update", 0.5) and cohort > 1
    added = [flat(b.tensors) - flat(a.tensors) for a, b in zip(quiet.uploads, loud.uploads, strict=True)]
    for noise in added:
        assert float(noise.std()) == pytest.approx(std, rel=0.02)
        assert abs(float(noise.mean())) < 5 * std / math.sqrt(len(noise))
    alike = torch.corrcoef(torch.stack(added)) - torch.eye(cohort)
    assert alike.abs().max() < 5 / math.sqrt(len(added[0]))  # nobody adds what another adds


def test_the_noise_is_another_in_every_round() -> None:
    one, two = (
        flat(played(loaded_plan(noise=100.0, clients=4, sampled=4, sampling="all"), r).uploads[0].tensors)
        for r in (1, 2)
    )
    assert abs(float(torch.corrcoef(torch.stack([one, two]))[0, 1])) < 0.05


# --- what the server does ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cohort", [1, 4, 9])
def test_the_mean_divides_by_the_constant_k(cohort: int) -> None:
    there, method = loaded_plan(), UDPFedAvg(server_step=0.5)
    ones = {name: torch.ones_like(tensor) for name, tensor in there.world.weights.items()}
    uploads = [Upload(client, "update", ones) for client in range(cohort)]
    with ThreadTeam(1) as team:
        server, _ = method.merge(there.world.weights, uploads, {}, server_desk(there, range(cohort), 1, 1, 1, team))
    for tensor in weights.subtract(server, there.world.weights).values():
        torch.testing.assert_close(tensor, torch.full_like(tensor, 0.5 * cohort / 6))


@pytest.mark.parametrize("split", SPLITS)
def test_an_empty_round_looks_like_any_other_where_noise_is_shared(split: str) -> None:
    there = loaded_plan(noise=2.0, clip=3.0, split=split, step=0.5, sampled=2, rounds=60)
    empty = [round for round in range(1, 61) if not there.cohort(round)][:2]
    moved = []
    with ThreadTeam(1) as team:
        for round in empty:
            after = play(there, opening(there), round, team)
            moved.append(flat(weights.subtract(after.server, there.world.weights)))
    if split == "full-local":
        assert not any(one.any() for one in moved)
        return
    for one in moved:
        assert float(one.std()) == pytest.approx(2.0 * 3.0 * 0.5 / 2, rel=0.02)  # σ · C · η / K
    assert abs(float(torch.corrcoef(torch.stack(moved))[0, 1])) < 0.03


@pytest.mark.parametrize("split", SPLITS)
def test_what_an_outsider_meets_is_declared(split: str) -> None:
    quiet, loud = (
        played(loaded_plan(noise, split=split, step=0.5, clients=6, sampled=6, sampling="all")) for noise in (0.0, 2.0)
    )
    difference = flat(weights.subtract(loud.after, quiet.after))
    method = UDPFedAvg(noise=2.0, noise_split=split, server_step=0.5)  # type: ignore[arg-type]
    world = loaded_plan(clients=6, sampled=6, sampling="all").world
    told = {view: method.protocol(world, loud.seats[0], view).std for view in VIEWS}
    total = 2.0 * (1.0 if split == "paper" else math.sqrt(6))
    assert told["aggregate"] == pytest.approx(total) and told["outsider"] == told["client"] == pytest.approx(
        total * 0.5 / 6
    )
    assert float(difference.std()) == pytest.approx(told["outsider"], rel=0.02)


# --- what it costs -----------------------------------------------------------------------------------------


def releases(
    honest: float = 1.0, split: str = "paper", noise: float = 2.0, **asked: Any
) -> tuple[tuple[int, ...], list[Release]]:
    method = {"name": "udp-fedavg", "noise": noise, "noise-split": split}
    plan = make_plan(tiny(method=method, honest_share=honest, **asked))
    cohort = plan.cohort(1)
    return cohort, list(plan.method.releases(plan.world, 1, cohort))


def of(view: str, found: list[Release]) -> list[Release]:
    return [one for one in found if one.view == view]


def seen_by(observers: tuple[int, ...], found: list[Release]) -> Release:
    (one,) = (release for release in of("client", found) if release.observers == observers)
    return one


def test_releases_where_noise_is_shared() -> None:
    cohort, found = releases()
    many, others = len(cohort), tuple(client for client in range(40) if client not in cohort)
    assert many > 1 and {(one.unit, one.adjacency) for one in found} == {("user", "zero-out")}
    assert of("server", found) == [Release("server", Gaussian(2.0 / math.sqrt(many)), cohort)]
    assert of("aggregate", found) == [Release("aggregate", Gaussian(2.0), cohort)]
    assert of("outsider", found) == [Release("outsider", Gaussian(2.0, 6 / 40), sampling="poisson")]
    but_one = Gaussian(2.0 * math.sqrt(1 - 1 / many))  # a participant knows its own noise
    assert seen_by(cohort, found) == Release("client", but_one, cohort, cohort)
    assert seen_by(others, found) == Release("client", Gaussian(2.0, 6 / 40), None, others, sampling="poisson")


@pytest.mark.parametrize("honest", [0.9, 0.5, 0.0])
def test_only_the_honest_share_protects(honest: float) -> None:
    cohort, found = releases(honest, sampled=20, sampling="fixed")
    assert len(cohort) == 20
    whole = max(honest, 1 / 20)  # the protected client always adds its own part
    inside = max(honest - 1 / 20, 1 / 20)
    assert of("server", found)[0].law == Gaussian(2.0 / math.sqrt(20))  # one upload holds one part of noise
    assert of("aggregate", found)[0].law == Gaussian(2.0 * math.sqrt(whole))
    assert seen_by(cohort, found).law == Gaussian(2.0 * math.sqrt(inside))
    _, drawn = releases(honest, sampled=20)
    assert of("outsider", drawn)[0].law == Gaussian(2.0 * math.sqrt(max(honest, 1 / 40)), 0.5)


def test_a_round_with_one_client_shows_it_to_no_other_client_from_within() -> None:
    _, found = releases(clients=40, sampled=1, sampling="fixed")
    assert len(of("client", found)) == 1 and of("server", found)[0].law == of("aggregate", found)[0].law == Gaussian(
        2.0
    )


@pytest.mark.parametrize("honest", [1.0, 0.5])
def test_a_round_costs_outsiders_the_same_whoever_is_there(honest: float) -> None:
    plan = make_plan(tiny(method="udp-fedavg", honest_share=honest))
    law = Gaussian(math.sqrt(honest), 6 / 40)
    for cohort in ((), (3,), (1, 2), tuple(range(40))):
        found = plan.method.releases(plan.world, 1, cohort)
        assert [one.law for one in of("outsider", list(found))] == [law]
        assert [one.law for one in of("client", list(found)) if one.clients is None] == [law]
        assert cohort or {one.view for one in found} == {"outsider", "client"}


def test_an_empty_round_costs_nothing_where_everybody_adds_all_of_it() -> None:
    plan = make_plan(tiny(method={"name": "udp-fedavg", "noise-split": "full-local"}))
    assert plan.method.releases(plan.world, 1, ()) == ()


def test_a_fixed_number_of_clients_has_no_number() -> None:
    _, found = releases(sampling="fixed")
    assert all(one.sampling == "fixed" for one in of("outsider", found))
    _, everybody = releases(sampling="all", sampled=40)
    assert of("outsider", everybody)[0].law == Gaussian(2.0, 1.0)
    answers = {one.view: one for one in make_plan(tiny(method="udp-fedavg", sampling="fixed")).ledger(2).answers()}
    assert answers["outsider"].epsilon is None and "no ε is proven" in answers["outsider"].reason
    assert answers["server"].epsilon is not None and answers["aggregate"].epsilon is not None


def test_releases_where_everybody_adds_all_of_it() -> None:
    cohort, found = releases(split="full-local")
    many, others = len(cohort), tuple(client for client in range(40) if client not in cohort)
    together, inside = Gaussian(2.0 * math.sqrt(many)), Gaussian(2.0 * math.sqrt(many - 1))
    assert set(found) == {
        Release("server", Gaussian(2.0), cohort),
        Release("aggregate", together, cohort),
        Release("outsider", together, cohort, bound="upper bound"),  # no amplification: the noise tells |S|
        Release("client", inside, cohort, cohort, bound="upper bound"),
        Release("client", together, cohort, others, bound="upper bound"),
    }
    _, half = releases(0.5, "full-local", sampled=20, sampling="fixed")
    assert of("aggregate", half)[0].law == Gaussian(2.0 * math.sqrt(10))
    assert of("server", half)[0].law == Gaussian(2.0)
    _, nobody = releases(0.0, "full-local", sampled=20, sampling="fixed")
    assert all(one.law == Gaussian(2.0) for one in nobody)


def table(noise: float, rounds: int, split: str = "paper", **asked: Any) -> Plan:
    """Exactly ten clients in every round."""
    asked = asked or {"clients": 10, "sampling": "all"}
    return make_plan(
        RunSpec(method={"name": "udp-fedavg", "noise": noise, "noise-split": split}, rounds=rounds, delta=1e-5, **asked)
    )


def epsilons(view: Any, rounds: int, split: str = "paper", precise: bool = False, **asked: Any) -> list[float | None]:
    return [
        table(sigma, rounds, split, **asked).ledger(rounds).answer(view, precise=precise).epsilon for sigma in SIGMAS
    ]


def test_the_agreed_numbers() -> None:
    assert epsilons("server", 1) == pytest.approx([17.86, 10.67, 7.51], abs=0.006)
    assert epsilons("server", 30) == pytest.approx([223, 115, 73.6], abs=0.5)
    assert epsilons("aggregate", 30) == pytest.approx([37.6, 21.6, 14.8], abs=0.05)
    for view in ("aggregate", "outsider"):
        assert epsilons(view, 30, "full-local") == pytest.approx([8.39, 5.17, 3.71], abs=0.006)


def test_the_agreed_numbers_of_an_outsider() -> None:
    asked: dict[str, Any] = {"clients": 100, "sampled": 10}
    assert epsilons("outsider", 300, **asked) == pytest.approx([13.60, 6.87, 4.56], abs=0.006)
    assert epsilons("outsider", 300, precise=True, **asked) == pytest.approx([12.41, 6.30, 4.19], abs=0.006)
    assert epsilons("outsider", 300, precise=True, honest_share=0.9, **asked) == pytest.approx(
        [13.7, 6.8, 4.5], abs=0.06
    )


def test_the_worst_client_has_the_largest_sum_of_cohorts_not_the_most_rounds() -> None:
    plan = table(1.0, 12, clients=60, sampled=6)
    cohorts = [plan.cohort(round) for round in range(1, 13)]
    mu2 = [sum(len(cohort) for cohort in cohorts if client in cohort) for client in range(60)]
    answer = plan.ledger(12).answer("server")
    assert answer.worst is not None and mu2[answer.worst] == max(mu2)


def test_its_promise() -> None:
    world = loaded_plan().world
    assert UDPFedAvg().unit() == "user"
    assert UDPFedAvg().guarantee(world).status == "formal-other-view"
    assert UDPFedAvg(noise_split="full-local").guarantee(world).status == "formal"
    assert UDPFedAvg(noise=0.0).guarantee(world).status == "none"
    assert UDPFedAvg(noise=0.0).protocol(world, Seat(0, 0, 1, 1, 1, 6), "server").noise == "none"
