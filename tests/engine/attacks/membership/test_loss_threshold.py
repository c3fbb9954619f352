"""The score has the order of the loss of the last model, also where the loss rounds to 0."""

from __future__ import annotations

import torch
from torch.nn import functional

from engine.attacks.membership.loss_threshold import LossThreshold
from engine.compute.context import AttackContext
from engine.records import Sight
from engine.seeds import Seeds


def scores(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return LossThreshold().score(Sight("server", (1, 1), logits, labels), (), AttackContext(Seeds(0)))


def test_a_lower_loss_of_the_last_model_is_a_higher_score() -> None:
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 300, 10, generator=rng)
    labels = torch.randint(0, 10, (300,), generator=rng)
    loss = functional.cross_entropy(logits[1].double(), labels, reduction="none")
    assert torch.equal(scores(logits, labels).argsort(descending=True), loss.argsort())


def test_records_that_a_model_is_sure_of_are_not_equal() -> None:
    logits = torch.zeros(1, 3, 10)
    logits[0, :, 0] = torch.tensor([30.0, 60.0, 90.0])
    assert scores(logits, torch.zeros(3).long()).diff().min() > 10
