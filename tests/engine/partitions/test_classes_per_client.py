"""A few classes for each client."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import BadInput
from engine.partitions import PARTITIONS
from engine.seeds import Seeds


def holding(classes):
    return PARTITIONS.make({"name": "classes-per-client", "classes": classes})


@settings(max_examples=50, deadline=None)
@given(clients=st.integers(1, 40), classes=st.integers(1, 12), known=st.integers(1, 12), seed=st.integers(0, 9))
def test_every_client_holds_so_many_and_every_class_is_held(clients, classes, known, seed):
    part, frequencies = holding(classes), torch.full((known,), 100.0)
    if classes > known or classes * clients < known:
        with pytest.raises(BadInput, match=f"must be at .*, got {classes}"):
            part.shares(frequencies, clients, Seeds(seed).rng("law"))
        return
    holds = part.shares(frequencies, clients, Seeds(seed).rng("law")) > 0
    assert bool((holds.sum(0) == classes).all())
    holders = holds.sum(1)
    assert int(holders.min()) >= 1 and int(holders.max() - holders.min()) <= 1


def test_five_clients_with_two_classes_share_none():
    shares = holding(2).shares(torch.full((10,), 600.0), 5, Seeds(0).rng("law"))
    assert bool(((shares == 0) | (shares == 1)).all())


def test_the_refusal_says_how_many_would_do():
    with pytest.raises(BadInput) as caught:
        holding(2).shares(torch.full((10,), 9.0), 3, Seeds(0).rng("law"))
    assert str(caught.value) == (
        "classes-per-client: classes: must be at least 4, so that 3 clients hold all 10 classes, got 2"
    )
