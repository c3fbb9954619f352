"""Looking at uploaded samples: the guess is what the client uploaded.

A client that uploads synthetic pictures may upload its own pictures in another form. Of a client with a single picture,
matching gradients gives that very picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import nn

from engine.attacks.base import ATTACKS
from engine.attacks.pictures.base import PictureAttack, Prior
from engine.compute.context import AttackContext
from engine.records import Exposure, Guess, ResidualScale, UploadKind

NOTHING_LEFT = ResidualScale(grey=1.0, floor=0.0, noise_tolerance=0.0, direct=True)


@ATTACKS.add("look", title="Look at the upload", source="the upload itself")
class Look(PictureAttack):
    """Shows the pictures that a client uploaded. It fits methods whose clients upload pictures, and needs no search."""

    reads: ClassVar[frozenset[UploadKind]] = frozenset({"samples"})
    chance: ClassVar[bool] = False

    def reconstruct(
        self, exposure: Exposure, module: nn.Module, prior: Prior | None, context: AttackContext
    ) -> Iterator[Guess]:
        del module, prior, context
        samples = exposure.upload.samples
        assert samples is not None
        mean = torch.tensor(exposure.protocol.mean, device="cpu").view(-1, 1, 1)
        scale = torch.tensor(exposure.protocol.scale, device="cpu").view(-1, 1, 1)
        pictures = (samples.x.cpu() * scale + mean).clamp(0, 1)
        labels = samples.y.cpu() if samples.y.dim() == 1 else samples.y.cpu().argmax(1)
        yield Guess(1, 1, pictures, labels, 0.0, 0.0, NOTHING_LEFT)
