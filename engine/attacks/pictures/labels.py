"""The classes behind an upload, read from its last layer or found by how well they explain the upload."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from engine.seeds import Seeds

if TYPE_CHECKING:
    from engine.attacks.pictures.problem import InversionProblem

LABEL_STEPS = 100  # of the search that compares two classes
MOST_SWAPPED = 8  # pictures up to which pairs of labels are tried
GREY_PICTURES = 64  # grey noise pictures that estimate what the sent model answers before it has seen any data


def labels_of(problem: InversionProblem) -> Tensor:
    """The classes behind the upload, sorted."""
    # A mask removes entries of the last layer, and the class with the missing entry would be read wrongly.
    masked = problem.protocol.mask != "none"
    return labels_by_objective(problem) if masked else labels_by_last_layer(problem)


def labels_by_last_layer(problem: InversionProblem) -> Tensor:
    """The last layer moves towards the classes of the pictures."""
    protocol = problem.protocol
    weight, bias = last_layer(problem.module)
    sign = 1.0 if protocol.kind == "gradient" else -1.0 / step_length(problem)
    if bias not in problem.target and weight not in problem.target:
        return torch.zeros(problem.count, dtype=torch.int64, device=problem.device)
    probabilities, features = grey_outputs(problem)
    expected = probabilities.mean(0)
    if bias in problem.target:
        per_picture = 1.0
        gradients = sign * problem.target[bias]
    else:
        per_picture = max(1e-12, float(features.sum(1).mean()))
        gradients = sign * problem.target[weight].sum(1)
        expected = expected * per_picture
    if protocol.clip != "none" or problem.direction_only:  # the length is unknown: use the negative gradients
        negative = gradients.clamp(max=0).abs().sum().clamp_min(1e-30)
        gradients = gradients / negative * per_picture * (1 - 1 / problem.classes)
    missing = (expected - gradients) * problem.count / per_picture  # pictures of each class not yet in `labels`
    labels = []
    for _ in range(problem.count):
        label = int(missing.argmax())
        labels.append(label)
        missing[label] -= 1
    return torch.tensor(sorted(labels), device=problem.device)


def labels_by_objective(problem: InversionProblem) -> Tensor:
    """The classes with which a short search comes nearest to the upload's direction, chosen one after the other."""
    labels: list[int] = []
    for _ in range(problem.count):
        losses = [least_angle(problem, [*labels, label]) for label in range(problem.classes)]
        labels.append(min(range(problem.classes), key=losses.__getitem__))
    return torch.tensor(sorted(labels), device=problem.device)


def least_angle(problem: InversionProblem, classes: Sequence[int]) -> float:
    """The least angle to the upload that a short search reaches with pictures of these classes."""
    rng = Seeds(0).rng("labels")
    noise = torch.randn(len(classes), *problem.shape, generator=rng, device="cpu").to(problem.device)
    pictures = (0.5 + 0.1 * noise).requires_grad_()
    labels = torch.tensor(classes, device=problem.device)
    adam = torch.optim.Adam([pictures], lr=0.05)
    lowest = math.inf
    with torch.enable_grad():
        for _ in range(LABEL_STEPS):
            angle = problem.cosine_distance(problem.upload(pictures, labels))
            (pictures.grad,) = torch.autograd.grad(angle, [pictures])
            adam.step()
            pictures.data.clamp_(0, 1)
            lowest = min(lowest, float(angle.detach()))
    return lowest


def step_length(problem: InversionProblem) -> float:
    """The factor between one gradient and the update of all local steps along it."""
    protocol = problem.protocol
    if protocol.server_step and problem.direction_only and protocol.uploads > 1:
        return protocol.local.lr
    return protocol.path_length


def grey_outputs(problem: InversionProblem) -> tuple[Tensor, Tensor]:
    """The probabilities of the sent model for grey noise, and the inputs of its last layer."""
    rng = Seeds(0).rng("grey")
    noise = torch.randn(GREY_PICTURES, *problem.shape, generator=rng, device="cpu").to(problem.device)
    grey = (0.5 + 0.25 * noise).clamp(0, 1)
    features: list[Tensor] = []
    head = problem.module.get_submodule(last_layer(problem.module)[0].rpartition(".")[0])
    hook = head.register_forward_pre_hook(lambda _, inputs: features.append(inputs[0]))
    with torch.no_grad():
        probabilities = problem.module(problem.normalised(grey)).softmax(1)
    hook.remove()
    return probabilities, features[0]


def last_layer(module: nn.Module) -> tuple[str, str]:
    """The names of the weight and the bias of the last linear layer."""
    name = [name for name, layer in module.named_modules() if isinstance(layer, nn.Linear)][-1]
    return f"{name}.weight", f"{name}.bias"


def labels_in_order(pictures: Tensor, problem: InversionProblem) -> Tensor:
    """The label of each picture: two labels are swapped as long as that explains more of the upload."""
    if len(pictures) > MOST_SWAPPED:
        return labels_by_direction(pictures, problem)
    labels = problem.labels.clone()
    lowest = problem.unexplained(pictures, labels)
    improved = True
    while improved:
        improved = False
        for first, second in combinations(range(len(labels)), 2):
            trial = labels.clone()
            trial[[first, second]] = labels[[second, first]]
            if torch.equal(trial, labels):
                continue
            unexplained = problem.unexplained(pictures, trial)
            if unexplained < lowest:
                lowest = unexplained
                labels = trial
                improved = True
    return labels


def labels_by_direction(pictures: Tensor, problem: InversionProblem) -> Tensor:
    """The label of each of many pictures: those whose gradients together point most towards the upload."""
    from scipy.optimize import linear_sum_assignment

    classes = problem.labels.unique().tolist()
    alignment = torch.zeros(len(pictures), problem.classes, dtype=torch.float64, device="cpu")
    for label in classes:
        single = torch.tensor([label], device=problem.device)
        for place, picture in enumerate(pictures):
            with torch.enable_grad():
                sent = problem.upload(picture.detach().unsqueeze(0), single, graph=False)
            parts = [torch.dot(sent[name].flatten(), tensor.flatten()) for name, tensor in problem.target.items()]
            alignment[place, label] = float(torch.stack(parts).sum().detach())
    places, chosen = linear_sum_assignment(-alignment[:, problem.labels.cpu()].numpy())
    labels = problem.labels.clone()
    labels[torch.from_numpy(places)] = problem.labels[torch.from_numpy(chosen)]
    return labels
