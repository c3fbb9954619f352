"""What a classifier sees in the truth and no longer in the guess, as a Kullback-Leibler divergence."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from engine.metrics.base import METRICS, Metric
from engine.metrics.pictures import networks
from engine.metrics.pictures.pairing import paired

SIDE = 224  # pixels, as SqueezeNet was trained: of smaller pictures it thinks otherwise
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet
LEAST = 1e-8  # of a probability


@METRICS.add(
    "kl-squeezenet", title="KL (SqueezeNet)", source="FedEM (under review), there with VGG16; Iandola et al. 2016"
)
class KlSqueezenet(Metric):
    """KL divergence of what SqueezeNet 1.1 sees in the guess from what it sees in the truth: 0 is the same.

    KL(softmax f(x) || softmax f(x̂)) over the thousand classes of ImageNet, in nats, with probabilities of at least
    1e-8, so at most 18.4. Pictures are brought to 224 x 224, bilinear; grey ones are shown in three equal channels.
    Another classifier gives other numbers.
    """

    better = "lower"

    @classmethod
    def absent(cls) -> str:
        return str(networks.missing(networks.CLASSIFIER, "SqueezeNet") or "")

    def measure(self, guess: Tensor, truth: Tensor) -> float:
        guess, truth = paired(self.name, guess, truth)
        both = torch.cat([networks.coloured(self.name, picture) for picture in (guess, truth)])
        shown = interpolate(both, (SIDE, SIDE), mode="bilinear", align_corners=False)
        with torch.no_grad():
            logits = networks.squeezenet()((shown - _channels(MEAN)) / _channels(STD))  # (2, 1000)
        seen, real = logits.double().softmax(dim=1).clamp_min(LEAST)
        return max(0.0, float((real * (real / seen).log()).sum()))  # raised to 1e-8 they may sum to more than 1


def _channels(values: tuple[float, ...]) -> Tensor:
    return torch.tensor(values).view(-1, 1, 1)
