"""GIAS: searches the pictures that a generator can draw, then adapts the generator itself (Jeon et al. 2021).

Paper → here:  z → code,  G → the generator, trained here on public pictures,  stage 1 → iterations,  stage 2 → bends.
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

from engine.attacks.base import ATTACKS
from engine.attacks.pictures.base import PictureAttack, Prior
from engine.attacks.pictures.problem import InversionProblem, total_variation
from engine.attacks.pictures.search import cosine_decay, make_guess, shown_iterations
from engine.capabilities import HasIterations
from engine.compute.context import AttackContext
from engine.records import Exposure, Guess
from engine.seeds import Seeds

CODE = 64  # numbers that describe one picture
BATCH = 64
WEIGHT_LR = 1e-3  # for the generator's weights, in training and in the second stage
CODE_LR = 0.02  # for the codes in training


@ATTACKS.add("gias", title="Generator as a prior", source="arXiv:2110.14962")
class Gias(HasIterations, PictureAttack):
    """Learns from public pictures what pictures look like, and searches such pictures first. Helps where an upload
    reveals little."""

    leaves: ClassVar[float] = 0.06
    learns: ClassVar[tuple[str, ...]] = ("epochs",)

    iterations: int = Field(300, ge=1, le=100_000, title="iterations", description="Steps that optimise the code.")
    bends: int = Field(900, ge=0, le=100_000, title="bends", description="Steps that optimise the generator itself.")
    lr: float = Field(0.03, gt=0, le=10, title="step", description="Size of a step of the code, at first.")
    smoothness: float = Field(1e-3, ge=0, le=100, title="smoothness", description="Weight of the total variation.")
    epochs: int = Field(
        60, ge=1, le=10_000, title="epochs", description="How often the generator trains on each public picture."
    )

    def learn(self, public: Tensor, seeds: Seeds) -> Iterator[tuple[float, Prior]]:
        """Trains codes and generator together, so that the generator draws each public picture from a code."""
        network = generator(tuple(public.shape[1:]), seeds.rng("generator")).to(public.device)
        start = torch.randn(len(public), CODE, generator=seeds.rng("codes"), device="cpu")
        codes = start.to(public.device).requires_grad_()
        groups = [{"params": list(network.parameters()), "lr": WEIGHT_LR}, {"params": [codes], "lr": CODE_LR}]
        adam = torch.optim.Adam(groups)
        rng = seeds.rng("batches")
        for epoch in range(1, self.epochs + 1):
            order = torch.randperm(len(public), generator=rng, device="cpu").to(public.device)
            for places in order.split(BATCH):
                batch = codes[places]
                loss = functional.mse_loss(network(batch), public[places]) + 1e-4 * batch.square().mean()
                adam.zero_grad()
                loss.backward()
                adam.step()
            if epoch % 3 == 0 or epoch == self.epochs:
                prior = {name: tensor.detach().clone() for name, tensor in network.named_parameters()}
                prior["codes.mean"] = codes.detach().mean(0)
                prior["codes.std"] = codes.detach().std(0)
                yield epoch / self.epochs, prior

    def reconstruct(
        self, exposure: Exposure, module: nn.Module, prior: Prior | None, context: AttackContext
    ) -> Iterator[Guess]:
        assert prior is not None
        problem = InversionProblem.of(exposure, module)
        labels = problem.labels
        network = generator(problem.shape, context.seeds.rng("generator"))
        prior = {name: tensor.to(problem.device) for name, tensor in prior.items()}
        weights = {name: prior[name].clone().requires_grad_() for name, _ in network.named_parameters()}
        noise = torch.randn(problem.count, CODE, generator=context.seeds.rng("start"), device="cpu").to(problem.device)
        code = (prior["codes.mean"] + 0.3 * prior["codes.std"] * noise).requires_grad_()
        grey_angle = angle_of_grey(problem)
        last = self.iterations + self.bends
        shown = shown_iterations(last)
        stages = ((self.iterations, [code], self.lr), (self.bends, list(weights.values()), WEIGHT_LR))
        iteration = 0
        for steps, variables, lr in stages:
            adam = torch.optim.Adam(variables, lr=lr)
            for step in range(steps):
                pictures = functional_call(network, weights, (code,))
                angle = problem.picture_angle(pictures, labels)
                loss = angle / grey_angle + self.smoothness * total_variation(pictures)
                for tensor, gradient in zip(variables, torch.autograd.grad(loss, variables), strict=True):
                    tensor.grad = gradient
                adam.param_groups[0]["lr"] = lr * cosine_decay(step / steps)
                adam.step()
                iteration += 1
                if iteration in shown or iteration == last:
                    with torch.no_grad():
                        drawn = functional_call(network, weights, (code,))
                    yield make_guess(problem, iteration, last, drawn, labels, float(loss.detach()))


def angle_of_grey(problem: InversionProblem) -> float:
    """The cosine distance of plain grey pictures."""
    grey = torch.full((problem.count, *problem.shape), 0.5, device=problem.device)
    sent = problem.upload(grey, problem.labels, graph=False)
    return float(problem.cosine_distance(sent).detach())


def generator(shape: tuple[int, ...], rng: torch.Generator) -> nn.Module:
    """A small decoder from codes (n, CODE) to pictures (n, channels, height, width) in [0, 1]."""
    channels, height, width = shape
    low = (math.ceil(height / 4), math.ceil(width / 4))
    with torch.device("meta"):  # constructors draw no weights here, so the global generator stays as it is
        network = nn.Sequential(
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
    network.to_empty(device="cpu")
    with torch.no_grad():
        for layer in network:
            for parameter in layer.parameters():
                fan = parameter[0].numel() if parameter.dim() > 1 else parameter.numel()
                bound = 1 / math.sqrt(fan)
                parameter.uniform_(-bound, bound, generator=rng)
    return network
