"""The partition with a few classes per client."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import BadInput
from engine.partitions import PARTITIONS
from engine.seeds import Seeds


def partition_with(classes):
    return PARTITIONS.make({"name": "classes-per-client", "classes": classes})


@settings(max_examples=50, deadline=None)
@given(clients=st.integers(1, 40), classes=st.integers(1, 12), total=st.integers(1, 12), seed=st.integers(0, 9))
def test_every_client_holds_its_number_of_classes_and_every_class_has_a_client(clients, classes, total, seed):
    part = partition_with(classes)
    frequencies = torch.full((total,), 100.0)
    if classes > total or classes * clients < total:
        with pytest.raises(BadInput, match=f"must be at .*, got {classes}"):
            part.shares(frequencies, clients, Seeds(seed).rng("law"))
        return
    holds = part.shares(frequencies, clients, Seeds(seed).rng("law")) > 0
    assert bool((holds.sum(0) == classes).all())
    holders = holds.sum(1)
    assert int(holders.min()) >= 1 and int(holders.max() - holders.min()) <= 1


def test_five_clients_with_two_classes_share_none():
    shares = partition_with(2).shares(torch.full((10,), 600.0), 5, Seeds(0).rng("law"))
    assert bool(((shares == 0) | (shares == 1)).all())


def test_the_error_names_the_smallest_possible_number():
    with pytest.raises(BadInput) as caught:
        partition_with(2).shares(torch.full((10,), 9.0), 3, Seeds(0).rng("law"))
    assert str(caught.value) == (
        "classes-per-client: classes: must be at least 4, so that 3 clients hold all 10 classes, got 2"
    )
