"""The Dirichlet partition."""

from __future__ import annotations

import pytest
import torch

from engine.errors import BadInput
from engine.partitions import PARTITIONS, split
from engine.seeds import Seeds


def dirichlet(alpha):
    return PARTITIONS.make({"name": "dirichlet", "alpha": alpha})


@pytest.mark.parametrize("alpha", [0.05, 0.5, 3.0])
def test_mean_and_variance_of_the_shares(alpha):
    clients = 5
    shares = dirichlet(alpha).shares(torch.ones(40_000), clients, Seeds(0).rng("law"))
    variance = (clients - 1) / (clients**2 * (clients * alpha + 1))
    torch.testing.assert_close(shares.mean(0), torch.full((clients,), 0.2, dtype=torch.float64), atol=0.01, rtol=0)
    torch.testing.assert_close(shares.var(0), torch.full_like(shares[0], variance), atol=0, rtol=0.04)


def test_a_tiny_alpha_gives_each_class_to_one_client_chosen_fairly():
    shares = dirichlet(0.001).shares(torch.ones(3000), 3, Seeds(0).rng("law"))
    assert bool(torch.isfinite(shares).all())
    largest = shares.max(1)
    assert float((largest.values > 0.999).double().mean()) > 0.98
    torch.testing.assert_close(torch.bincount(largest.indices) / 3000, torch.full((3,), 1 / 3), atol=0.04, rtol=0)


def test_a_large_alpha_comes_close_to_even():
    shares = dirichlet(1000).shares(torch.ones(10), 100, Seeds(0).rng("law"))
    assert float((shares * 100 - 1).abs().max()) < 0.15


def test_a_client_without_pictures_gives_an_error_with_rule_value_and_remedy():
    labels = torch.arange(10).repeat(100)
    with pytest.raises(BadInput) as caught:
        split(dirichlet(0.001), labels, labels, 50, Seeds(0))
    assert caught.value.message.startswith("dirichlet: client ")
    assert "would get no pictures: every client must get at least one, got" in caught.value.message
    assert "50 clients, 1,000 pictures, alpha 0.001" in caught.value.message
    assert caught.value.remedy == "Raise alpha, take fewer clients or more pictures"


def test_shares_that_leave_a_client_empty_are_drawn_again():
    labels = torch.arange(10).repeat(1200)
    part = dirichlet(0.1)
    seeds = Seeds(1)
    first = part.shares(torch.full((10,), 1200.0), 100, seeds.rng("partition"))
    assert any(not len(places) for places in part.assign(labels, first, seeds.rng("deal")))
    train, _ = split(part, labels, labels, 100, seeds)
    assert all(len(places) for places in train)
