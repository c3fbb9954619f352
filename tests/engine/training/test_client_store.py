"""The attic: what clients keep comes back the same, whether it lies near or far."""

from __future__ import annotations

import pytest
import torch

from engine.seeds import Seeds
from engine.training.client_store import ClientStore, client_store


def private(client: int, turn: int = 0) -> dict[str, torch.Tensor]:
    rng = Seeds(1).rng("private", client, turn)
    return {"head.weight": torch.rand(3, 4, generator=rng), "head.bias": torch.rand(3, generator=rng)}


@pytest.mark.parametrize("limit", [0, 150, 10_000])  # nothing near, two clients near, all near
def test_what_goes_in_comes_out(limit: int) -> None:
    held = ClientStore(limit)
    for turn in (0, 1):
        for client in (5, 2, 9, 0):
            held[client] = private(client, turn)
    assert list(held) == [0, 2, 5, 9] and len(held) == 4
    for client, kept in held.items():
        for name, tensor in private(client, 1).items():
            assert torch.equal(kept[name], tensor) and kept[name].shape == tensor.shape
    with pytest.raises(KeyError):
        held[7]


def test_another_layout_stays_near() -> None:
    held = ClientStore(0)
    held[0] = private(0)
    held[1] = {"other": torch.arange(3)}
    held[2] = {"head.weight": torch.ones(2, 2)}
    assert held[1]["other"].tolist() == [0, 1, 2] and held[2]["head.weight"].shape == (2, 2)
    assert torch.equal(held[0]["head.bias"], private(0)["head.bias"])


def test_a_client_may_change_its_layout() -> None:
    held = ClientStore(0)
    held[0] = private(0)
    held[0] = {"other": torch.arange(3)}
    assert list(held) == [0] and held[0]["other"].tolist() == [0, 1, 2]


def test_nothing_is_removed_and_an_attic_is_kept() -> None:
    held = client_store({3: private(3)})
    assert client_store(held) is held and list(held) == [3]
    with pytest.raises(TypeError, match="never removed"):
        del held[3]
