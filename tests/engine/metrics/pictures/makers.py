"""Real pictures for the tests of metrics, and the same pictures with noise."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.environment import ROOT
from engine.metrics import METRICS
from engine.metrics.pictures.base import PictureMetric
from engine.seeds import Seeds

ASSETS = ROOT / "assets"


@lru_cache
def pictures(name: str, many: int = 6) -> Tensor:
    """The first training pictures of a bundled set, (n, channels, height, width) in [0, 1]."""
    with np.load(ASSETS / f"{name}.npz") as file:
        raw = file["x_train"][:many]
    x = torch.from_numpy(raw.astype(np.float32)) / 255
    return x.unsqueeze(1) if x.dim() == 3 else x.permute(0, 3, 1, 2).contiguous()


def noisy(truth: Tensor, deviation: float) -> Tensor:
    """The pictures plus noise, not clipped, because metrics clip their guess."""
    return truth + deviation * torch.randn(truth.shape, generator=Seeds(0).rng("noise"))


def made(value: Any) -> PictureMetric:
    """A metric of pictures, from its name or its JSON."""
    metric = METRICS.make(value)
    assert isinstance(metric, PictureMetric)
    return metric
