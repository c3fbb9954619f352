"""UDP-FedAvg: the clip, the noise, the constant divisor, and the cost reported for each view."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.compute import weights
from engine.compute.threads import ThreadTeam
from engine.methods.user_level.udp_fedavg import UDPFedAvg
from engine.privacy.accountant import epsilon_exact
from engine.records import VIEWS, AllBut, Clients, Gaussian, Release, Seat, Upload
from engine.specs.run import RunSpec
from engine.training.plan import LoadedPlan, Plan, load_plan, make_plan
from engine.training.rounds import Exchange, first_state, server_context, train_round
from tests.engine.makers import tiny_spec

SPLITS = ["paper", "full-local"]
SIGMAS = (1.0, 1.5, 2.0)


def loaded_plan(
    noise: float = 1.0, clip: float = 1.0, split: str = "paper", step: float = 0.1, **fields: Any
) -> LoadedPlan:
    method = {"name": "udp-fedavg", "noise": noise, "clip": clip, "noise-split": split, "server-step": step}
    return load_plan(tiny_spec(method=method, **fields))


def played(plan: LoadedPlan, round: int = 1) -> Exchange:
    exchanges: list[Exchange] = []
    with ThreadTeam(2) as team:
        train_round(plan, first_state(plan), round, team, watch=exchanges.append)
    return exchanges[0]


def flat(tensors: Any) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors.values()])


# --- what leaves a client ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [1e-3, 0.3, 50.0])
def test_before_the_noise_no_upload_is_longer_than_the_clip(bound: float) -> None:
    baseline = played(load_plan(tiny_spec(method="fedavg", sampling="poisson")))
    clipped = played(loaded_plan(noise=0.0, clip=bound))
    for unclipped, upload in zip(baseline.uploads, clipped.uploads, strict=True):
        length = weights.norm(unclipped.model)
        assert weights.norm(upload.model) <= bound
        expected = weights.scale(unclipped.model, min(1.0, bound / length))
        torch.testing.assert_close(flat(upload.model), flat(expected), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("split", SPLITS)
def test_the_noise_of_an_upload_is_the_declared_noise(split: str) -> None:
    quiet, loud = (played(loaded_plan(noise, clip=0.5, split=split)) for noise in (0.0, 3.0))
    cohort = len(quiet.uploads)
    std = 3.0 * 0.5 / (math.sqrt(cohort) if split == "paper" else 1.0)
    method = UDPFedAvg(noise=3.0, clip=0.5, noise_split=split)  # type: ignore[arg-type]
    protocol = method.protocol(loaded_plan().world, loud.seats[0], "server")
    assert protocol.std == pytest.approx(std) and cohort > 1
    assert (protocol.clip, protocol.bound) == ("whole-update", 0.5)
    noises = [flat(b.model) - flat(a.model) for a, b in zip(quiet.uploads, loud.uploads, strict=True)]
    for noise in noises:
        assert float(noise.std()) == pytest.approx(std, rel=0.02)
        assert abs(float(noise.mean())) < 5 * std / math.sqrt(len(noise))
    correlation = torch.corrcoef(torch.stack(noises)) - torch.eye(cohort)
    assert correlation.abs().max() < 5 / math.sqrt(len(noises[0]))  # the noises of two clients are independent


def test_the_noise_of_two_rounds_is_independent() -> None:
    plan = loaded_plan(noise=100.0, clients=4, sampled=4, sampling="all")
    uploads = [flat(played(plan, round).uploads[0].model) for round in (1, 2)]
    assert abs(float(torch.corrcoef(torch.stack(uploads))[0, 1])) < 0.05


# --- what the server does ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cohort", [1, 4, 9])
def test_the_mean_divides_by_the_constant_k(cohort: int) -> None:
    plan, method = loaded_plan(), UDPFedAvg(server_step=0.5)
    ones = {name: torch.ones_like(tensor) for name, tensor in plan.world.weights.items()}
    uploads = [Upload(client, "update", ones) for client in range(cohort)]
    with ThreadTeam(1) as team:
        server, _ = method.merge(plan.world.weights, uploads, {}, server_context(plan, range(cohort), 1, 1, 1, team))
    for tensor in weights.subtract(server, plan.world.weights).values():
        torch.testing.assert_close(tensor, torch.full_like(tensor, 0.5 * cohort / 6))


@pytest.mark.parametrize("split", SPLITS)
def test_an_empty_round_adds_noise_if_clients_share_the_noise(split: str) -> None:
    plan = loaded_plan(noise=2.0, clip=3.0, split=split, step=0.5, sampled=2, rounds=60)
    empty = [round for round in range(1, 61) if not plan.cohort(round)][:2]
    changes = []
    with ThreadTeam(1) as team:
        for round in empty:
            after = train_round(plan, first_state(plan), round, team)
            changes.append(flat(weights.subtract(after.server, plan.world.weights)))
    if split == "full-local":
        assert not any(change.any() for change in changes)
        return
    for change in changes:
        assert float(change.std()) == pytest.approx(2.0 * 3.0 * 0.5 / 2, rel=0.02)  # σ · C · η / K
    assert abs(float(torch.corrcoef(torch.stack(changes))[0, 1])) < 0.03


@pytest.mark.parametrize("split", SPLITS)
def test_the_protocol_declares_the_noise_that_an_outsider_receives(split: str) -> None:
    everyone: dict[str, Any] = {"clients": 6, "sampled": 6, "sampling": "all"}
    quiet, loud = (played(loaded_plan(noise, split=split, step=0.5, **everyone)) for noise in (0.0, 2.0))
    difference = flat(weights.subtract(loud.after, quiet.after))
    method = UDPFedAvg(noise=2.0, noise_split=split, server_step=0.5)  # type: ignore[arg-type]
    world = loaded_plan(**everyone).world
    stds = {view: method.protocol(world, loud.seats[0], view).std for view in VIEWS}
    total = 2.0 * (1.0 if split == "paper" else math.sqrt(6))
    assert stds["aggregate"] == pytest.approx(total)
    assert stds["outsider"] == stds["client"] == pytest.approx(total * 0.5 / 6)
    assert float(difference.std()) == pytest.approx(stds["outsider"], rel=0.02)


# --- the privacy cost --------------------------------------------------------------------------------------


def releases_of(
    honest: float = 1.0, split: str = "paper", noise: float = 2.0, **fields: Any
) -> tuple[Sequence[int], list[Release]]:
    """The cohort of the first round, and its releases."""
    method = {"name": "udp-fedavg", "noise": noise, "noise-split": split}
    plan = make_plan(tiny_spec(method=method, honest_share=honest, **fields))
    cohort = plan.cohort(1)
    return cohort, list(plan.method.releases(plan.world, 1, cohort))


def of(view: str, releases: Sequence[Release]) -> list[Release]:
    return [release for release in releases if release.view == view]


def seen_by(observers: Clients, releases: Sequence[Release]) -> Release:
    (release,) = (release for release in of("client", releases) if release.observers == observers)
    return release


def test_releases_if_clients_share_the_noise() -> None:
    cohort, releases = releases_of()
    size = len(cohort)
    others = AllBut(cohort)
    assert size > 1 and {(release.unit, release.adjacency) for release in releases} == {("user", "zero-out")}
    assert of("server", releases) == [Release("server", Gaussian(2.0 / math.sqrt(size)), cohort)]
    assert of("aggregate", releases) == [Release("aggregate", Gaussian(2.0), cohort)]
    assert of("outsider", releases) == [Release("outsider", Gaussian(2.0, 6 / 40), sampling="poisson")]
    but_one = Gaussian(2.0 * math.sqrt(1 - 1 / size))  # a participant can subtract its own noise
    assert seen_by(cohort, releases) == Release("client", but_one, cohort, cohort)
    assert seen_by(others, releases) == Release("client", Gaussian(2.0, 6 / 40), None, others, sampling="poisson")


@pytest.mark.parametrize("honest", [0.9, 0.5, 0.0])
def test_only_the_honest_share_protects(honest: float) -> None:
    cohort, releases = releases_of(honest, sampled=20, sampling="fixed")
    assert len(cohort) == 20
    share_of_sum = max(honest, 1 / 20)  # the protected client always adds its own part
    share_inside = max(honest - 1 / 20, 1 / 20)
    assert of("server", releases)[0].mechanism == Gaussian(2.0 / math.sqrt(20))  # one upload holds one part of noise
    assert of("aggregate", releases)[0].mechanism == Gaussian(2.0 * math.sqrt(share_of_sum))
    assert seen_by(cohort, releases).mechanism == Gaussian(2.0 * math.sqrt(share_inside))
    _, drawn = releases_of(honest, sampled=20)
    assert of("outsider", drawn)[0].mechanism == Gaussian(2.0 * math.sqrt(max(honest, 1 / 40)), 0.5)


def test_a_round_with_one_client_has_no_release_to_participants() -> None:
    _, releases = releases_of(clients=40, sampled=1, sampling="fixed")
    assert len(of("client", releases)) == 1
    assert of("server", releases)[0].mechanism == of("aggregate", releases)[0].mechanism == Gaussian(2.0)


@pytest.mark.parametrize("honest", [1.0, 0.5])
def test_the_cost_for_outsiders_does_not_depend_on_the_cohort(honest: float) -> None:
    plan = make_plan(tiny_spec(method="udp-fedavg", honest_share=honest))
    law = Gaussian(math.sqrt(honest), 6 / 40)
    for cohort in ((), (3,), (1, 2), tuple(range(40))):
        releases = plan.method.releases(plan.world, 1, cohort)
        assert [release.mechanism for release in of("outsider", releases)] == [law]
        assert [release.mechanism for release in of("client", releases) if release.clients is None] == [law]
        assert cohort or {release.view for release in releases} == {"outsider", "client"}


def test_an_empty_round_costs_nothing_if_each_client_adds_full_noise() -> None:
    plan = make_plan(tiny_spec(method={"name": "udp-fedavg", "noise-split": "full-local"}))
    assert plan.method.releases(plan.world, 1, ()) == ()


def test_fixed_sampling_has_no_epsilon_for_an_outsider() -> None:
    _, releases = releases_of(sampling="fixed")
    assert all(release.sampling == "fixed" for release in of("outsider", releases))
    _, of_everyone = releases_of(sampling="all", sampled=40)
    assert of("outsider", of_everyone)[0].mechanism == Gaussian(2.0, 1.0)
    ledger = make_plan(tiny_spec(method="udp-fedavg", sampling="fixed")).ledger(2)
    answers = {answer.view: answer for answer in ledger.answers()}
    assert answers["outsider"].value is None and "no ε is proven" in answers["outsider"].reason
    assert answers["server"].value is not None and answers["aggregate"].value is not None


def test_releases_if_each_client_adds_full_noise() -> None:
    cohort, releases = releases_of(split="full-local")
    others = AllBut(cohort)
    together = Gaussian(2.0 * math.sqrt(len(cohort)))
    inside = Gaussian(2.0 * math.sqrt(len(cohort) - 1))
    assert set(releases) == {
        Release("server", Gaussian(2.0), cohort),
        Release("aggregate", together, cohort),
        Release("outsider", together, cohort, bound="upper bound"),  # no amplification: the noise reveals |S|
        Release("client", inside, cohort, cohort, bound="upper bound"),
        Release("client", together, cohort, others, bound="upper bound"),
    }
    _, half = releases_of(0.5, "full-local", sampled=20, sampling="fixed")
    assert of("aggregate", half)[0].mechanism == Gaussian(2.0 * math.sqrt(10))
    assert of("server", half)[0].mechanism == Gaussian(2.0)
    _, none_honest = releases_of(0.0, "full-local", sampled=20, sampling="fixed")
    assert all(release.mechanism == Gaussian(2.0) for release in none_honest)


def plan_of(noise: float, rounds: int, split: str = "paper", **fields: Any) -> Plan:
    """A plan with the given fields; without any, exactly ten clients take part in every round."""
    fields = fields or {"clients": 10, "sampling": "all"}
    method = {"name": "udp-fedavg", "noise": noise, "noise-split": split}
    return make_plan(RunSpec(method=method, rounds=rounds, delta=1e-5, **fields))


def epsilons(view: Any, rounds: int, split: str = "paper", precise: bool = False, **fields: Any) -> list[float | None]:
    ledgers = [plan_of(sigma, rounds, split, **fields).ledger(rounds) for sigma in SIGMAS]
    return [ledger.answer(view, precise=precise).value for ledger in ledgers]


def test_epsilons_of_the_views() -> None:
    assert epsilons("server", 1) == pytest.approx([17.86, 10.67, 7.51], abs=0.006)
    assert epsilons("server", 30) == pytest.approx([223, 115, 73.6], abs=0.5)
    assert epsilons("aggregate", 30) == pytest.approx([37.6, 21.6, 14.8], abs=0.05)
    for view in ("aggregate", "outsider"):
        assert epsilons(view, 30, "full-local") == pytest.approx([8.39, 5.17, 3.71], abs=0.006)


def test_epsilons_of_an_outsider() -> None:
    fields: dict[str, Any] = {"clients": 100, "sampled": 10}
    assert epsilons("outsider", 300, **fields) == pytest.approx([13.60, 6.87, 4.56], abs=0.006)
    assert epsilons("outsider", 300, precise=True, **fields) == pytest.approx([12.41, 6.30, 4.19], abs=0.006)
    some_dishonest = epsilons("outsider", 300, precise=True, honest_share=0.9, **fields)
    assert some_dishonest == pytest.approx([13.7, 6.8, 4.5], abs=0.06)


def test_the_worst_client_has_the_largest_sum_of_cohorts_not_the_most_rounds() -> None:
    plan = plan_of(1.0, 12, clients=60, sampled=6)
    cohorts = [plan.cohort(round) for round in range(1, 13)]
    mu2 = [sum(len(cohort) for cohort in cohorts if client in cohort) for client in range(60)]
    answer = plan.ledger(12).answer("server")
    assert answer.worst is not None and mu2[answer.worst] == max(mu2)


def test_the_guarantee() -> None:
    world = loaded_plan().world
    assert UDPFedAvg().unit() == "user"
    assert UDPFedAvg().guarantee(world).status == "formal-other-view"
    assert UDPFedAvg(noise_split="full-local").guarantee(world).status == "formal"
    assert UDPFedAvg(noise=0.0).guarantee(world).status == "none"
    assert UDPFedAvg(noise=0.0).protocol(world, Seat(0, 0, 1, 1, 1, 6), "server").noise == "none"


@pytest.mark.parametrize("split", ["paper", "full-local"])
def test_a06_with_dishonest_clients_every_sum_is_an_approximation(split: str) -> None:
    """Who is honest differs by round, and the true value can be far above that of the average round."""
    _, releases = releases_of(honest=0.5, split=split)
    bounds = {view: {release.bound for release in of(view, releases)} for view in ("aggregate", "outsider", "client")}
    assert bounds == {view: {"approximation"} for view in bounds}
    assert {release.bound for release in of("server", releases)} == {""}
    _, honest = releases_of(split=split)
    assert "approximation" not in {release.bound for release in honest}


def test_a06_an_approximation_can_be_far_too_low() -> None:
    """One round of two clients, honest share .99: if the other adds no noise, half of the variance is missing."""
    delta, noise, share = 1e-5, 0.2, 0.99
    claimed = epsilon_exact(1 / (noise * math.sqrt((1 + share) / 2)), delta)
    assert 1.6 < epsilon_exact(math.sqrt(2) / noise, delta) / claimed < 1.7
