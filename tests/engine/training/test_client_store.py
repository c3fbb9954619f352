"""The store of private parts returns them unchanged, from memory and from its file."""

from __future__ import annotations

import pytest
import torch

from engine.seeds import Seeds
from engine.training.client_store import ClientStore, client_store


def private(client: int, version: int = 0) -> dict[str, torch.Tensor]:
    rng = Seeds(1).rng("private", client, version)
    return {"head.weight": torch.rand(3, 4, generator=rng), "head.bias": torch.rand(3, generator=rng)}


@pytest.mark.parametrize("limit", [0, 150, 10_000])  # no client in memory, two, all
def test_the_store_returns_what_was_stored(limit: int) -> None:
    store = ClientStore(limit)
    for version in (0, 1):
        for client in (5, 2, 9, 0):
            store[client] = private(client, version)
    assert list(store) == [0, 2, 5, 9] and len(store) == 4
    for client, stored in store.items():
        for name, tensor in private(client, 1).items():
            assert torch.equal(stored[name], tensor) and stored[name].shape == tensor.shape
    with pytest.raises(KeyError):
        store[7]


def test_another_layout_stays_in_memory() -> None:
    store = ClientStore(0)
    store[0] = private(0)
    store[1] = {"other": torch.arange(3)}
    store[2] = {"head.weight": torch.ones(2, 2)}
    assert store[1]["other"].tolist() == [0, 1, 2] and store[2]["head.weight"].shape == (2, 2)
    assert torch.equal(store[0]["head.bias"], private(0)["head.bias"])


def test_a_client_may_change_its_layout() -> None:
    store = ClientStore(0)
    store[0] = private(0)
    store[0] = {"other": torch.arange(3)}
    assert list(store) == [0] and store[0]["other"].tolist() == [0, 1, 2]


def test_a_private_part_cannot_be_removed_and_a_store_is_used_as_it_is() -> None:
    store = client_store({3: private(3)})
    assert client_store(store) is store and list(store) == [3]
    with pytest.raises(TypeError, match="never removed"):
        del store[3]
