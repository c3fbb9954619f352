"""The perceptron with one hidden layer: small enough that many clients are trained as one."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from engine.models.base import MODELS, Dropout, Model, kept


@MODELS.add("mlp", title="MLP", source="FedCEO (ICML 2025), for EMNIST; there with dropout 0.5")
class Mlp(Model):
    """Two linear layers with a ReLU between them."""

    stackable: ClassVar[bool] = True

    hidden: int = Field(
        64, ge=1, le=4096, title="hidden units", description="Width of the layer between input and classes."
    )
    bias: bool = Field(
        False, title="bias", description="Whether the layers have biases; a first layer with one gives its input away."
    )
    dropout: float = Field(
        0.0, ge=0, lt=1, title="dropout", description="Share of hidden units switched off in each training step."
    )

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

    def dropout_masks(self, rng: torch.Generator, batch: int) -> Tensor | None:
        """The mask (batch, hidden) that the module would draw from this generator; None without dropout."""
        return kept((batch, self.hidden), self.dropout, rng) if self.dropout else None

    def stacked(
        self,
        weights: Mapping[str, Tensor],
        x: Tensor,
        rngs: Sequence[torch.Generator] = (),
        rows: Sequence[int] = (),
    ) -> Tensor:
        hidden = torch.bmm(x.flatten(2), weights["hidden.weight"].mT)  # (clients, batch, hidden)
        if self.bias:
            hidden = hidden + weights["hidden.bias"].unsqueeze(1)
        masks = [self.dropout_masks(rng, batch) for rng, batch in zip(rngs, rows, strict=True)]
        drawn = [mask for mask in masks if mask is not None]
        if drawn:
            hidden = hidden * pad_sequence(drawn, batch_first=True).to(hidden)
        logits = torch.bmm(hidden.relu(), weights["head.weight"].mT)
        return logits + weights["head.bias"].unsqueeze(1) if self.bias else logits
