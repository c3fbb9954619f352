"""When a walk by curvature ends, and what it shows then."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.attacks.pictures.problem import InversionProblem
from engine.attacks.pictures.search import PATIENCE, LowestPoint, newton
from engine.records import Exposure, Guess, Local, Protocol


def problem(std: float = 0.0) -> InversionProblem:
    """Two by two pixels, and a linear model of them."""
    module = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    rng = torch.Generator().manual_seed(5)
    sent = {name: torch.randn(tensor.shape, generator=rng) for name, tensor in module.named_parameters()}
    protocol = Protocol("gradient", Local(epochs=1, batch=1, lr=0.1), 1, 1, "whole", std=std, pictures=1)
    shell = Exposure("server", sent, sent, protocol, (1, 2, 2), 3)
    truth = torch.tensor([[[[0.1, 0.9], [0.4, 0.6]]]])
    received = InversionProblem.of(shell, module).upload(truth, torch.tensor([2]), graph=False)
    shaken = {name: tensor + std * torch.randn(tensor.shape, generator=rng) for name, tensor in received.items()}
    return InversionProblem.of(Exposure("server", sent, shaken, protocol, (1, 2, 2), 3), module)


def walked(
    there: InversionProblem, start: Tensor | None = None, belief: Tensor | None = None, **fields: Any
) -> list[Guess]:
    rules = {"iterations": 60, "lr": 1.0, "gain": 1e5, "search": True, "tolerance": 1e-11}
    begin = torch.zeros(1, 1, 2, 2) if start is None else start
    return list(newton(there, begin, belief, **{**rules, **fields}))


def answering(monkeypatch: pytest.MonkeyPatch, change: Callable[[Tensor, int], Tensor]) -> None:
    """Bend what the problem answers: `change` is told the distance and how often it was asked for before."""
    real, asked = InversionProblem.distance, count()

    def distance(self: InversionProblem, sent: Mapping[str, Tensor]) -> Tensor:
        if not next(iter(sent.values())).requires_grad:  # the scale is not bent
            return real(self, sent)
        return change(real(self, sent), next(asked))

    monkeypatch.setattr(InversionProblem, "distance", distance)


def test_it_ends_at_its_tolerance() -> None:
    guesses = walked(problem())
    assert guesses[-1].loss <= 1e-11 and guesses[-1].iteration == guesses[-1].of < 60
    assert torch.allclose(guesses[-1].pictures.flatten(), torch.tensor([0.1, 0.9, 0.4, 0.6]), atol=1e-3)


def test_labels_are_found_with_the_pictures() -> None:
    guesses = walked(problem(), belief=torch.tensor([[2.0, 0.0, 0.0]]))
    assert guesses[0].labels.tolist() == [0] and guesses[-1].labels.tolist() == [2]


def test_any_layout_of_the_start_will_do() -> None:
    start = torch.arange(4.0).view(1, 1, 2, 2)
    turned = start.transpose(2, 3).contiguous().transpose(2, 3)
    assert not turned.is_contiguous()
    assert walked(problem(), turned)[-1].loss == walked(problem(), start)[-1].loss
    assert torch.equal(start.flatten(), torch.arange(4.0))  # it walks on a copy


def test_noise_is_not_explained() -> None:
    there = problem(std=0.1)
    slope = LowestPoint(there, torch.zeros(1, 1, 2, 2), None, 1.0, 1e-11)
    assert slope.enough == there.floor > 0
    slope()
    assert slope.lowest > slope.enough
    slope.lowest = slope.enough  # it has arrived
    kept = [tensor.clone() for tensor in slope.best]
    slope.leaves[0].data = there.normal(torch.tensor([[[[0.1, 0.9], [0.4, 0.6]]]]))
    slope()
    assert all(torch.equal(one, other) for one, other in zip(slope.best, kept, strict=True))


def test_what_is_no_number_ends_it_with_the_last_good_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, lambda distance, before: (distance + 0.1) * (math.nan if before == 25 else 1))
    guesses = walked(problem())
    assert guesses[-1].loss == math.inf and guesses[-1].iteration == guesses[-1].of < 60
    assert bool(guesses[-1].pictures.isfinite().all()) and math.isfinite(guesses[-2].loss)
    assert torch.equal(guesses[-1].pictures, guesses[-2].pictures)


@pytest.mark.parametrize(("search", "rounds"), [(True, 2), (False, 1)])
def test_a_walk_that_gains_nothing_ends(monkeypatch: pytest.MonkeyPatch, search: bool, rounds: int) -> None:
    answering(monkeypatch, lambda distance, before: 0 * distance + 0.5)
    guesses = walked(problem(), search=search)
    assert guesses[-1].iteration == guesses[-1].of == rounds * PATIENCE + 1
    assert guesses[-1].loss == 0.5


def test_the_lowest_point_is_shown_wherever_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, lambda distance, before: distance + (before > 40))
    losses = [guess.loss for guess in walked(problem(), tolerance=0.0, search=False)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < 1
