"""Random streams depend only on (seed, purpose, place), and cohorts follow their sampling."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.seeds import Seeds

places = st.lists(st.integers(-1, 10**6), max_size=3).map(tuple)
streams = st.tuples(st.integers(0, 2**53), st.sampled_from(["weights", "noise", "batches", "cohort"]), places)


def draw(seed: int, purpose: str, place: tuple[int, ...], count: int = 4) -> torch.Tensor:
    return torch.randint(2**60, (count,), generator=Seeds(seed).rng(purpose, *place))


@given(streams, streams)
def test_equal_arguments_and_only_they_give_equal_streams(first: tuple, second: tuple) -> None:
    assert torch.equal(draw(*first), draw(*first))
    assert (first == second) == torch.equal(draw(*first), draw(*second))


def test_the_global_generator_of_torch_is_not_used() -> None:
    before = torch.random.get_rng_state()
    draw(0, "noise", (1, 2))
    Seeds(0).cohort(1, 100, 10, "poisson")
    Seeds(0).cohort(1, 100, 10, "fixed")
    assert torch.equal(before, torch.random.get_rng_state())


def test_streams_of_neighbouring_places_are_not_correlated() -> None:
    rows = torch.stack([torch.randn(2000, generator=Seeds(7).rng("noise", 1, client, 1)) for client in range(20)])
    off_diagonal = torch.corrcoef(rows) - torch.eye(20)
    assert off_diagonal.abs().max() < 0.1  # 4.5 deviations of 1/sqrt(2000)


@given(st.integers(0, 2**53), st.integers(1, 10_000), st.integers(1, 60), st.data())
def test_a_fixed_cohort_has_exactly_k_clients_by_id(seed: int, round: int, clients: int, data: st.DataObject) -> None:
    sampled = data.draw(st.integers(1, clients))
    cohort = Seeds(seed).cohort(round, clients, sampled, "fixed")
    assert len(set(cohort)) == sampled and list(cohort) == sorted(cohort)
    assert cohort[0] >= 0 and cohort[-1] < clients
    assert cohort == Seeds(seed).cohort(round, clients, sampled, "fixed")


def test_all_means_every_client() -> None:
    assert Seeds(3).cohort(1, 5, 2, "all") == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("sampling", ["poisson", "fixed"])
def test_all_clients_are_equally_likely(sampling: str) -> None:
    rounds, clients, sampled = 4000, 20, 5
    counts = torch.zeros(clients)
    for round in range(rounds):
        counts[list(Seeds(1).cohort(round, clients, sampled, sampling))] += 1
    rate = sampled / clients
    assert (counts / rounds - rate).abs().max() < 5 * (rate * (1 - rate) / rounds) ** 0.5


def test_poisson_draws_each_client_independently() -> None:
    rounds, clients, sampled = 4000, 20, 5
    sizes = torch.tensor([float(len(Seeds(2).cohort(round, clients, sampled, "poisson"))) for round in range(rounds)])
    variance = clients * (sampled / clients) * (1 - sampled / clients)
    assert sizes.mean() == pytest.approx(sampled, abs=5 * (variance / rounds) ** 0.5)
    assert sizes.var() == pytest.approx(variance, rel=0.15)
    assert sizes.min() < 2 and sizes.max() > 9


def test_a_poisson_round_may_be_empty() -> None:
    assert any(Seeds(0).cohort(round, 10, 1, "poisson") == () for round in range(20))


@given(st.integers(0, 1000), st.integers(1, 50), st.integers(1, 49))
def test_a_larger_rate_only_adds_clients(seed: int, round: int, sampled: int) -> None:
    fewer = Seeds(seed).cohort(round, 50, sampled, "poisson")
    assert set(fewer) <= set(Seeds(seed).cohort(round, 50, sampled + 1, "poisson"))
