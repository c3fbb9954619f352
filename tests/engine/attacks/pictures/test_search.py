"""L-BFGS on a problem of four pixels: when it ends, and which guess it shows then."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.attacks.pictures.problem import InversionProblem
from engine.attacks.pictures.search import PATIENCE, LbfgsObjective, lbfgs
from engine.records import Exposure, Guess, Local, Packet, Protocol, Upload

TRUTH = torch.tensor([[[[0.1, 0.9], [0.4, 0.6]]]])


def small_problem(std: float = 0.0) -> InversionProblem:
    """Two by two pixels, and a linear model of them."""
    module = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    rng = torch.Generator().manual_seed(5)
    sent = {name: torch.randn(tensor.shape, generator=rng) for name, tensor in module.named_parameters()}
    protocol = Protocol("gradient", Local(epochs=1, batch=1, lr=0.1), 1, 1, "whole", std=std, pictures=1)
    unknown = Exposure("server", Packet(sent), Upload(0, "gradient", sent), protocol, (1, 2, 2), 3)
    clean = InversionProblem.of(unknown, module).upload(TRUTH, torch.tensor([2]), graph=False)
    noisy = {name: tensor + std * torch.randn(tensor.shape, generator=rng) for name, tensor in clean.items()}
    return InversionProblem.of(
        Exposure("server", Packet(sent), Upload(0, "gradient", noisy), protocol, (1, 2, 2), 3), module
    )


def minimised(
    problem: InversionProblem, start: Tensor | None = None, label_logits: Tensor | None = None, **fields: Any
) -> list[Guess]:
    settings = {"iterations": 60, "lr": 1.0, "gain": 1e5, "search": True, "tolerance": 1e-11}
    if start is None:
        start = torch.zeros(1, 1, 2, 2)
    return list(lbfgs(problem, start, label_logits, **{**settings, **fields}))


def change_distance(monkeypatch: pytest.MonkeyPatch, change: Callable[[Tensor, int], Tensor]) -> None:
    """Replaces the distance by `change(distance, number of earlier evaluations)`."""
    original = InversionProblem.distance
    evaluations = count()

    def distance(self: InversionProblem, sent: Mapping[str, Tensor]) -> Tensor:
        if not next(iter(sent.values())).requires_grad:  # the residual scale does not change
            return original(self, sent)
        return change(original(self, sent), next(evaluations))

    monkeypatch.setattr(InversionProblem, "distance", distance)


def test_it_ends_at_its_tolerance() -> None:
    guesses = minimised(small_problem())
    assert guesses[-1].loss <= 1e-11 and guesses[-1].iteration == guesses[-1].of < 60
    assert torch.allclose(guesses[-1].pictures.flatten(), TRUTH.flatten(), atol=1e-3)


def test_labels_are_optimised_with_the_pictures() -> None:
    guesses = minimised(small_problem(), label_logits=torch.tensor([[2.0, 0.0, 0.0]]))
    assert guesses[0].labels.tolist() == [0] and guesses[-1].labels.tolist() == [2]


def test_any_memory_layout_of_the_start_works() -> None:
    start = torch.arange(4.0).view(1, 1, 2, 2)
    strided = start.transpose(2, 3).contiguous().transpose(2, 3)
    assert not strided.is_contiguous()
    assert minimised(small_problem(), strided)[-1].loss == minimised(small_problem(), start)[-1].loss
    assert torch.equal(start.flatten(), torch.arange(4.0))  # the search works on a copy


def test_noise_is_not_explained() -> None:
    problem = small_problem(std=0.1)
    objective = LbfgsObjective(problem, torch.zeros(1, 1, 2, 2), None, 1.0, 1e-11)
    assert objective.enough == problem.floor > 0
    objective()
    assert objective.lowest > objective.enough
    objective.lowest = objective.enough  # the search has reached the noise floor
    best = [tensor.clone() for tensor in objective.best]
    objective.leaves[0].data = problem.normalised(TRUTH)
    objective()
    assert all(torch.equal(now, before) for now, before in zip(objective.best, best, strict=True))


def test_nan_ends_it_with_the_last_good_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    change_distance(monkeypatch, lambda distance, earlier: (distance + 0.1) * (math.nan if earlier == 25 else 1))
    guesses = minimised(small_problem())
    assert guesses[-1].loss == math.inf and guesses[-1].iteration == guesses[-1].of < 60
    assert bool(guesses[-1].pictures.isfinite().all()) and math.isfinite(guesses[-2].loss)
    assert torch.equal(guesses[-1].pictures, guesses[-2].pictures)


@pytest.mark.parametrize(("search", "rounds"), [(True, 2), (False, 1)])
def test_a_search_without_progress_ends(monkeypatch: pytest.MonkeyPatch, search: bool, rounds: int) -> None:
    change_distance(monkeypatch, lambda distance, earlier: 0 * distance + 0.5)
    guesses = minimised(small_problem(), search=search)
    assert guesses[-1].iteration == guesses[-1].of == rounds * PATIENCE + 1
    assert guesses[-1].loss == 0.5


def test_the_lowest_point_is_shown_even_if_the_distance_rises(monkeypatch: pytest.MonkeyPatch) -> None:
    change_distance(monkeypatch, lambda distance, earlier: distance + (earlier > 40))
    losses = [guess.loss for guess in minimised(small_problem(), tolerance=0.0, search=False)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < 1
