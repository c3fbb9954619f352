"""The noise that hides the pictures of an upload, for each model. There is no peer: the promise is the noise region.

The signal is clipped, so noise / signal is the noise multiplier · √parameters. Levels are in the unit of the region:
u = noise / signal · √(pixels / parameters).
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from typing import Any

from engine.bench import BenchRow
from engine.events import Judged
from engine.leakage.pictures import attack
from engine.models import MODELS
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec

STEPS = 4  # levels from the start to the end of the region
CLIP = 0.1  # shorter than every update here
AT_START, AT_END = 0.4, 0.2  # SSIM that a picture still has at the start, and no picture has at the end
PROMISE = f"SSIM at least {AT_START:g} at the start of the noise region, at most {AT_END:g} at its end"
GRADIENTS = {"name": "inverting-gradients", "iterations": 400}
MAP = {"name": "map", "iterations": 600}


@dataclass(frozen=True)
class CliffCase:
    """Uploads of one model and data set, and the attacks on them. The best one counts."""

    model: str
    pictures: tuple[str, ...] = ("test-0",)
    dataset: str = "cifar10"
    attacks: tuple[Any, ...] = field(default=(GRADIENTS,))

    @property
    def title(self) -> str:
        several = f" x{len(self.pictures)}" if len(self.pictures) > 1 else ""
        return f"{self.model} {self.dataset}{several}"

    def run(self, **fields: Any) -> RunSpec:
        size = {"clients": 10, "sampled": 5, "epochs": 1, "rounds": 1}
        return RunSpec(model=self.model, dataset=self.dataset, **size, **fields)


FOUR = ("test-0", "test-1", "test-3", "test-4")
CASES = (
    CliffCase("lenet5"),
    CliffCase("lenet5", FOUR),
    CliffCase("lenet5", ("test-1",), "fashion-mnist"),
    CliffCase("mlp"),
    CliffCase("convnet"),
    CliffCase("alexnet"),
    CliffCase("lenet-sigmoid", attacks=(MAP, GRADIENTS)),
    CliffCase("lenet-sigmoid", FOUR, attacks=(MAP, GRADIENTS)),
    CliffCase("lenet-sigmoid", ("test-1",), "fashion-mnist", (MAP, GRADIENTS)),
)


@dataclass(frozen=True)
class CliffScore:
    """The best attack at one level: means over the pictures."""

    psnr: float
    ssim: float


def measure() -> BenchRow:
    ours: dict[str, str] = {}
    kept = True
    for case in CASES:
        scores = [best_score(case, level) for level in noise_levels(case)]
        for level, score in zip(noise_levels(case), scores, strict=True):
            ours[f"{case.title} u={level:.2g}"] = f"{score.psnr:.1f} dB SSIM {score.ssim:.2f}"
        kept = kept and scores[0].ssim >= AT_START and scores[-1].ssim <= AT_END
    return BenchRow("cliff", ours, promise=PROMISE, kept=kept)


def noise_levels(case: CliffCase) -> tuple[float, ...]:
    """Levels from the start to the end of the region, in equal factors."""
    low, high = MODELS.make(case.model).noise_region()
    return tuple(low * (high / low) ** (place / (STEPS - 1)) for place in range(STEPS))


def best_score(case: CliffCase, level: float) -> CliffScore:
    """The score of the attack with the highest SSIM at this level."""
    method = {"name": "udp-fedavg", "noise-split": "full-local", "clip": CLIP, "noise": noise(case, level)}
    run = case.run(method=method)
    scores = []
    for part in case.attacks:
        spec = AttackSpec(run=run, attack=part, pictures=case.pictures)
        judged = next(event for event in attack(spec) if isinstance(event, Judged))
        scores.append(CliffScore(statistics.mean(judged.numbers["psnr"]), statistics.mean(judged.numbers["ssim"])))
    return max(scores, key=lambda score: score.ssim)


def noise(case: CliffCase, level: float) -> float:
    """The noise multiplier at a level. It is noise / signal over √parameters, so the parameters cancel."""
    return level / math.sqrt(len(case.pictures) * math.prod(case.run().dataset.shape))
