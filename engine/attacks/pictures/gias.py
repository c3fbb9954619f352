"""GIAS: the picture is looked for among those a generator can draw, then the generator bends (Jeon et al. 2021).

Paper → here:  z → code,  G → the generator, learnt here from public pictures,  plan 1 → iterations,  plan 2 → bends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from engine.attacks.base import ATTACKS, Attack, Prior
from engine.attacks.pictures.problem import InversionProblem, moments, roughness
from engine.attacks.pictures.search import cosine, guess
from engine.records import Exposure, Guess
from engine.seeds import Seeds

CODE = 64  # numbers that describe one picture
BATCH = 64
SLOW = 1e-3  # of the generator's weights, while it learns and while it bends


@ATTACKS.add("gias", title="Generator as a prior", source="arXiv:2110.14962")
class Gias(Attack):
    """Knows from public pictures what pictures look like, and looks among such first. Helps where little comes."""

    leaves: ClassVar[float] = 0.06
    learns: ClassVar[tuple[str, ...]] = ("epochs",)

    iterations: int = Field(300, ge=1, le=100_000, title="iterations", description="Steps in search of the code.")
    bends: int = Field(
        900, ge=0, le=100_000, title="bends", description="Steps in which the generator itself gives way."
    )
    lr: float = Field(0.03, gt=0, le=10, title="step", description="Size of a step of the code, at first.")
    smoothness: float = Field(1e-3, ge=0, le=100, title="smoothness", description="Weight of the total variation.")
    epochs: int = Field(
        60, ge=1, le=10_000, title="epochs", description="How often the generator sees the public pictures."
    )

    def learn(self, public: Tensor, seeds: Seeds) -> Iterator[tuple[float, Prior]]:
        """Codes and generator together, so that each public picture has a code it is drawn from."""
        drawer = generator(tuple(public.shape[1:]), seeds.rng("generator"))
        codes = torch.randn(len(public), CODE, generator=seeds.rng("codes")).requires_grad_()
        adam = torch.optim.Adam([{"params": list(drawer.parameters()), "lr": SLOW}, {"params": [codes], "lr": 0.02}])
        shuffle = seeds.rng("batches")
        for epoch in range(1, self.epochs + 1):
            for places in torch.randperm(len(public), generator=shuffle).split(BATCH):
                own = codes[places]
                loss = functional.mse_loss(drawer(own), public[places]) + 1e-4 * own.square().mean()
                adam.zero_grad()
                loss.backward()
                adam.step()
            if epoch % 3 == 0 or epoch == self.epochs:
                known = {name: tensor.detach().clone() for name, tensor in drawer.named_parameters()}
                known |= {"codes.mean": codes.detach().mean(0), "codes.std": codes.detach().std(0)}
                yield epoch / self.epochs, known

    def reconstruct(self, exposure: Exposure, module: nn.Module, prior: Prior | None, seeds: Seeds) -> Iterator[Guess]:
        assert prior is not None
        problem = InversionProblem.of(exposure, module)
        drawer = generator(problem.shape, seeds.rng("generator"))
        weights = {name: prior[name].clone().requires_grad_() for name, _ in drawer.named_parameters()}
        noise = torch.randn(problem.many, CODE, generator=seeds.rng("start"))
        code = (prior["codes.mean"] + 0.3 * prior["codes.std"] * noise).requires_grad_()
        grey = torch.full((problem.many, *problem.shape), 0.5)
        usual = float(
            problem.turned(problem.upload(grey, problem.labels, graph=False)).detach()
        )  # the angle of plain grey
        of = self.iterations + self.bends
        shown, labels = moments(of), problem.labels
        stages = ((self.iterations, [code], self.lr), (self.bends, list(weights.values()), SLOW))
        iteration = 0
        for steps, moving, lr in stages:
            adam = torch.optim.Adam(moving, lr=lr)
            for step in range(steps):
                pictures = functional_call(drawer, weights, (code,))
                loss = problem.angle(pictures, labels) / usual + self.smoothness * roughness(pictures)
                for tensor, slope in zip(moving, torch.autograd.grad(loss, moving), strict=True):
                    tensor.grad = slope
                adam.param_groups[0]["lr"] = lr * cosine(step / steps)
                adam.step()
                iteration += 1
                if iteration in shown or iteration == of:
                    with torch.no_grad():
                        drawn = functional_call(drawer, weights, (code,))
                    yield guess(problem, iteration, of, drawn, labels, float(loss.detach()))


def generator(shape: tuple[int, ...], rng: torch.Generator) -> nn.Module:
    """A small decoder from codes (n, CODE) to pictures (n, channels, height, width) in [0, 1]."""
    channels, height, width = shape
    low = (math.ceil(height / 4), math.ceil(width / 4))
    with torch.device("meta"):  # torch's own chance rests
        drawer = nn.Sequential(
            nn.Linear(CODE, 64 * low[0] * low[1]),
            nn.Unflatten(1, (64, *low)),
            nn.LeakyReLU(0.2),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(64, 48, 3, padding=1),
            nn.LeakyReLU(0.2),
            nn.Upsample(size=(height, width)),
            nn.Conv2d(48, 32, 3, padding=1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(32, channels, 3, padding=1),
            nn.Sigmoid(),
        )
    drawer.to_empty(device="cpu")
    with torch.no_grad():
        for layer in drawer:
            for parameter in layer.parameters():
                fan = parameter[0].numel() if parameter.dim() > 1 else parameter.numel()
                parameter.uniform_(-1 / math.sqrt(fan), 1 / math.sqrt(fan), generator=rng)
    return drawer
