"""The Kullback-Leibler divergence between a classifier's answers for the original and for the guess."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from engine.metrics.base import METRICS
from engine.metrics.pictures import networks
from engine.metrics.pictures.base import PictureMetric
from engine.metrics.pictures.pairing import paired

SIDE = 224  # pixels, the size that SqueezeNet was trained on; it answers differently for smaller pictures
MEAN = (0.485, 0.456, 0.406)  # of ImageNet
STD = (0.229, 0.224, 0.225)  # of ImageNet
MIN_PROBABILITY = 1e-8


@METRICS.add(
    "kl-squeezenet", title="KL (SqueezeNet)", source="FedEM (under review), there with VGG16; Iandola et al. 2016"
)
class KlSqueezenet(PictureMetric):
    """KL divergence between the answers of SqueezeNet 1.1 for the original and for the guess: 0 means equal answers.

    KL(softmax f(x) || softmax f(x̂)) over the thousand classes of ImageNet, in nats. Probabilities are at least 1e-8,
    so the value is at most 18.4. Pictures are resized to 224 x 224, bilinear. A grey picture fills three equal
    channels. Another classifier gives other numbers.
    """

    better = "lower"

    @classmethod
    def unavailable(cls) -> str:
        return str(networks.unreadable_asset(networks.CLASSIFIER, "SqueezeNet") or "")

    def measure(self, guess: Tensor, truth: Tensor) -> float:
        guess, truth = paired(self.name, guess, truth)
        pictures = torch.cat([networks.three_channels(self.name, picture) for picture in (guess, truth)])
        pictures = interpolate(pictures, (SIDE, SIDE), mode="bilinear", align_corners=False)
        with torch.no_grad():
            logits = networks.squeezenet()((pictures - _channels(MEAN)) / _channels(STD))  # (2, 1000)
        guessed, real = logits.double().softmax(dim=1).clamp_min(MIN_PROBABILITY)
        divergence = float((real * (real / guessed).log()).sum())
        return max(0.0, divergence)  # probabilities raised to 1e-8 can sum to more than 1


def _channels(values: tuple[float, ...]) -> Tensor:
    return torch.tensor(values).view(-1, 1, 1)
