"""The LSTM: a text classifier that reads a sentence word by word."""

from __future__ import annotations

import math

import torch
from pydantic import Field
from torch import Tensor, nn

from engine.models.base import MODELS, Model
from engine.words import PADDING, UNKNOWN


class LstmClassifier(nn.Module):
    """An embedding, an LSTM, and a linear layer on the sum of its states over the root of their number."""

    def __init__(self, words: int, width: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.words = words
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, hidden, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        real = (x != PADDING).unsqueeze(2)  # (batch, length, 1)
        states, _ = self.lstm(self.embedding(x.where(x < self.words, UNKNOWN)))  # (batch, length, hidden)
        logits: Tensor = self.head((states * real).sum(1) / real.sum(1).clamp(min=1).sqrt())
        return logits


@MODELS.add("lstm", title="LSTM", source="Hochreiter, Schmidhuber 1997; in FedCEO (ICML 2025) for Sentiment140")
class Lstm(Model):
    """A model for text: a vector for each word, one LSTM over the vectors, one linear layer over all its states."""

    words: int = Field(
        2000, ge=3, le=200_000, title="words known", description="The most frequent words; all others share one vector."
    )
    width: int = Field(128, ge=1, le=1024, title="width of a word", description="Length of the vector of a word.")
    hidden: int = Field(32, ge=1, le=1024, title="hidden units", description="Width of the state of the LSTM.")

    def misfit(self, shape: tuple[int, ...]) -> str:
        if len(shape) == 1:
            return ""
        return f"{self.label()}: needs text, got pictures of shape {shape}"

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        del shape  # an LSTM reads sentences of any length
        return LstmClassifier(self.words, self.width, self.hidden, classes)

    def example(self, shape: tuple[int, ...], count: int, rng: torch.Generator) -> Tensor:
        return torch.randint(UNKNOWN, self.words, (count, *shape), generator=rng)

    def fill(self, layer: nn.Module, rng: torch.Generator) -> None:
        if isinstance(layer, nn.Embedding):
            layer.weight.normal_(generator=rng)
        elif isinstance(layer, nn.LSTM):
            bound = 1 / math.sqrt(self.hidden)
            for parameter in layer.parameters():
                parameter.uniform_(-bound, bound, generator=rng)
        else:
            super().fill(layer, rng)
