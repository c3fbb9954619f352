"""The perceptron with one hidden layer. It is small, so many clients train in one stacked step."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from engine.models.base import MODELS, Dropout, Model, draw_dropout_mask, not_pictures


@MODELS.add("mlp", title="MLP", source="FedCEO (ICML 2025), for EMNIST; there with dropout 0.5")
class Mlp(Model):
    """Two linear layers with a ReLU between them."""

    stackable: ClassVar[bool] = True

    hidden: int = Field(
        64, ge=1, le=4096, title="hidden units", description="Width of the layer between input and classes."
    )
    bias: bool = Field(
        False, title="bias", description="Whether the layers have biases. A bias in the first layer reveals the input."
    )
    dropout: float = Field(
        0.0, ge=0, lt=1, title="dropout", description="Share of the hidden units set to zero in each training step."
    )

    def misfit(self, shape: tuple[int, ...]) -> str:
        return not_pictures(self, shape, smallest_side=1)

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(
            OrderedDict(
                flatten=nn.Flatten(),
                hidden=nn.Linear(math.prod(shape), self.hidden, bias=self.bias),
                dropout=Dropout(self.dropout),
                relu=nn.ReLU(),
                head=nn.Linear(self.hidden, classes, bias=self.bias),
            )
        )

    def dropout_mask(self, rng: torch.Generator, batch: int) -> Tensor | None:
        """The mask (batch, hidden) that the module would draw from this generator; None without dropout."""
        return draw_dropout_mask((batch, self.hidden), self.dropout, rng) if self.dropout else None

    def dropout_masks(self, rngs: Sequence[torch.Generator], rows: Sequence[int]) -> Tensor | None:
        """The masks (clients, batch, hidden) of all clients, padded with zeros; None without dropout."""
        masks = []
        for rng, batch in zip(rngs, rows, strict=True):
            mask = self.dropout_mask(rng, batch)
            if mask is not None:
                masks.append(mask)
        return pad_sequence(masks, batch_first=True) if masks else None

    @torch.no_grad()
    def stacked(
        self,
        weights: Mapping[str, Tensor],
        x: Tensor,
        y: Tensor,
        rngs: Sequence[torch.Generator],
        rows: Sequence[int],
    ) -> dict[str, Tensor]:
        # Written by hand, because the bookkeeping of autograd costs as much as the arithmetic.
        flat = x.flatten(2)  # (clients, batch, inputs)
        hidden = torch.bmm(flat, weights["hidden.weight"].mT)
        if self.bias:
            hidden += weights["hidden.bias"].unsqueeze(1)
        masks = self.dropout_masks(rngs, rows)
        if masks is not None:
            masks = masks.to(hidden)
            hidden *= masks
        active = hidden.relu_()
        logits = torch.bmm(active, weights["head.weight"].mT)
        if self.bias:
            logits += weights["head.bias"].unsqueeze(1)
        errors = logit_errors(logits, y, rows)  # (clients, batch, classes)
        back = torch.bmm(errors, weights["head.weight"])
        if masks is not None:
            back *= masks
        back *= active > 0
        gradients = {"hidden.weight": torch.bmm(back.mT, flat), "head.weight": torch.bmm(errors.mT, active)}
        if self.bias:
            gradients |= {"hidden.bias": back.sum(1), "head.bias": errors.sum(1)}
        return gradients


def logit_errors(logits: Tensor, y: Tensor, rows: Sequence[int]) -> Tensor:
    """The gradient of each client's mean cross-entropy by the logits: probability minus truth, zero on the padding."""
    errors = logits.softmax(2)
    errors.scatter_add_(2, y.unsqueeze(2), errors.new_full((*y.shape, 1), -1.0))
    if rows[0] == rows[-1]:  # rows never increase from client to client, so all are equal
        return errors.div_(rows[0])
    counts = torch.tensor(rows, device=errors.device).view(-1, 1, 1)  # (clients, 1, 1)
    real = torch.arange(y.shape[1], device=errors.device).view(1, -1, 1) < counts  # (clients, batch, 1)
    return errors.mul_(real / counts)
