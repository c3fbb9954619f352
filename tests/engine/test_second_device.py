"""The second device of the tests refuses what a graphics card refuses, so that a test on it can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from tests.engine.second_device import second_device


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with second_device(monkeypatch) as name:
        yield name


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda there, here: there + here,
        lambda there, here: here @ there.T,
        lambda there, here: torch.cat([there, here]),
        lambda there, here: there.index_select(0, torch.tensor([1], device="cpu")),
        lambda there, here: here[torch.tensor([1], device=there.device)],
        lambda there, here: torch._foreach_add([there], [here]),
        lambda there, here: torch.randn(3, device=there.device),
        lambda there, here: torch.randn(3, generator=seeded(), device=there.device),
        lambda there, here: torch.empty_like(there).normal_(generator=seeded()),
        lambda there, here: there.numpy(),
    ],
)
def test_what_a_card_refuses_is_refused(mistake: Callable[[Tensor, Tensor], object], device: str) -> None:
    here = torch.ones(2, 3, device="cpu")
    with pytest.raises((RuntimeError, TypeError), match=r"same device|draws on the device|numpy"):
        mistake(here.to(device), here)


def test_numbers_and_gradients_are_those_of_the_processor(device: str) -> None:
    here = torch.randn(2, 3, generator=seeded(), device="cpu").requires_grad_()
    there = here.detach().to(device).requires_grad_()
    for x in (here, there):
        (x.relu() @ x.T).square().sum().backward()
    assert here.grad is not None and there.grad is not None and str(there.grad.device) == device
    assert torch.equal(there.grad.cpu(), here.grad)
    assert there.sum().item() == here.sum().item()
