"""The judge: compares the guesses of an attack with the originals, after the attack has ended.

Privacy: only the judge holds guess and truth together. An attack that could call it would choose its guess by the
truth, and its result would not show what the upload leaks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.attacks.pictures.base import PictureAttack
from engine.events import Judged, Warned
from engine.leakage.matching import matching_test
from engine.leakage.neighbours import Neighbours, nearest
from engine.metrics import METRICS, available
from engine.metrics.pictures import networks
from engine.metrics.pictures.base import PictureMetric
from engine.metrics.pictures.pairing import matched, trivial
from engine.records import Guess
from engine.seeds import Seeds
from engine.specs.attack import MOST_PICTURES, UNCLASSED, AttackSpec
from engine.training.plan import LoadedPlan

DIRECT_RESIDUAL = 0.1  # the allowed residual where the first layer reads the pixels themselves
QUIET = 3e-3  # noise that changes the residual by less never prevents convergence
CURVES = ("psnr", "ssim", "lpips")  # metrics that are measured for every guess


@dataclass(frozen=True)
class Truth:
    """The originals of an upload, and the public pictures with which guesses are compared."""

    pictures: Tensor  # (m, channels, height, width)
    labels: Tensor
    mean_picture: Tensor  # of the public pictures
    neighbours: Neighbours
    own: int  # the first pictures: the portrait or a visitor's own, which have no class of the data set
    training: bool  # whether the pictures are from the training split


def make_truth(spec: AttackSpec, plan: LoadedPlan, pictures: Tensor, labels: Tensor) -> Truth:
    """The truth of one upload. Attacks learn from the second half of the test split, so the first half is compared."""
    data = plan.spec.dataset.load()
    half = len(data.test_y) // 2
    neighbours = Neighbours(data.test_x[:half], data.test_y[:half], data.train_x, data.train_y)
    own = sum(name.startswith(UNCLASSED) for name in spec.pictures)  # they come first
    training = spec.upload != "listed" or not any(name.startswith("test-") for name in spec.pictures)
    return Truth(pictures, labels, data.test_x[half:].mean(dim=0), neighbours, own, training)


def perceptual_problem() -> Warned | None:
    """The warning where LPIPS cannot be computed, before an attack runs."""
    error = networks.unreadable_asset(networks.FEATURES, "LPIPS")
    return Warned(f"{error.message}. PSNR and SSIM alone judge this attack", error.remedy) if error else None


def picture_metrics(std: Sequence[float]) -> list[PictureMetric]:
    """The metrics that this machine can compute, for a data set whose pixels are divided by these deviations."""
    return [metric.with_deviations(std) for metric in available(PictureMetric)]  # type: ignore[type-abstract]


# --- the result --------------------------------------------------------------------------------------------


def judge(attack: PictureAttack, paths: Mapping[int, Sequence[Guess]], truth: Truth, std: Sequence[float]) -> Judged:
    """The restart with the lowest loss, measured by every available metric.

    Privacy: the loss is the attack's own objective. A choice by the truth would show a stronger attacker than one that
    exists.
    """
    ends = {restart: path[-1] for restart, path in sorted(paths.items())}
    best = min(ends, key=lambda restart: sortable_loss(ends[restart].loss))
    end = ends[best]
    places, pictures = in_order_of_originals(end.pictures, truth.pictures)
    originals = truth.pictures[list(places)]
    path = [guess.pictures[matched(guess.pictures, originals)] for guess in paths[best][:-1]]
    path.append(pictures)
    state, reason = state_of(paths[best], attack.leaves)
    metrics = picture_metrics(std)
    if len(places) > MOST_PICTURES:  # the others take long for a hundred pictures
        metrics = [metric for metric in metrics if metric.name in CURVES]
    names = {metric.name for metric in metrics}
    mean_picture = truth.mean_picture.expand_as(originals)
    labels = truth.labels[list(places)]
    return Judged(
        attack=attack.name,
        state=state,
        reason=reason,
        restart=best,
        places=places,
        labels=tuple(end.labels[guess_order(end.pictures, truth.pictures)[list(places)]].tolist()),
        numbers={metric.name: measure_paths(metric, path, originals) for metric in metrics},
        trivial={metric.name: measure_paths(metric, [trivial(originals)], originals) for metric in metrics},
        curves={name: curve(name, path, originals) for name in CURVES if name in names},
        restarts=tuple(restart_row(attack, paths[restart], truth.pictures) for restart in ends),
        floor=end.residual_scale.floor,
        mean_picture={name: measure_pairs(name, mean_picture, originals) for name in CURVES if name in names},
        nearest=_nearest(places, path[-1], originals, labels, truth),
        matching=matching(end, truth) if attack.names_classes else {},
        control=control(end, truth) if len(truth.pictures) > MOST_PICTURES else {},
    )


def matching(end: Guess, truth: Truth) -> Mapping[str, float]:
    """The matching test of an upload with several pictures of the data set; empty for any other."""
    if len(truth.pictures) - truth.own < 2:
        return {}
    others = truth.neighbours.others(truth.pictures, truth.training)
    seeds = Seeds.of_text("matching")
    members = (truth.pictures[truth.own :], truth.labels[truth.own :])
    return matching_test(end.pictures, end.labels, members, others, seeds)


def control(end: Guess, truth: Truth) -> Mapping[str, tuple[float, ...]]:
    """The scores of the same guesses against as many pictures of the same classes that were never sent.

    Among a hundred guesses some fit some picture by chance. What the control reaches is that chance.
    """
    pictures, labels = _never_sent(truth)
    if not len(pictures):
        return {}
    places, guesses = in_order_of_originals(end.pictures, pictures)
    originals = pictures[list(places)]
    mean_picture = truth.mean_picture.expand_as(originals)
    available_names = {metric.name for metric in available(PictureMetric)}  # type: ignore[type-abstract]
    scores = dict(nearest(guesses, originals, labels[list(places)], truth.neighbours))
    for name in CURVES:
        if name in available_names:
            scores[name] = measure_pairs(name, guesses, originals)
            scores[f"trivial-{name}"] = measure_pairs(name, trivial(originals), originals)
            scores[f"mean-{name}"] = measure_pairs(name, mean_picture, originals)
    return scores


def _never_sent(truth: Truth) -> tuple[Tensor, Tensor]:
    """Pictures of the same split as the upload's, as many of each class as far as there are."""
    x, y = truth.neighbours.others(truth.pictures, truth.training)
    rng = Seeds.of_text("control").rng("pictures")
    order = torch.randperm(len(y), generator=rng, device="cpu")
    chosen: list[int] = []
    for label, count in zip(*truth.labels.unique(return_counts=True), strict=True):
        chosen += order[y[order] == label][: int(count)].tolist()
    return x[chosen], y[chosen]


def _nearest(
    places: Sequence[int], guesses: Tensor, originals: Tensor, labels: Tensor, truth: Truth
) -> Mapping[str, tuple[float, ...]]:
    """The ranks of the guesses among neighbours, with the places of the originals that have a class."""
    classed = [index for index, place in enumerate(places) if place >= truth.own]
    if not classed:
        return {}
    ranks = nearest(guesses[classed], originals[classed], labels[classed], truth.neighbours)
    if truth.own and ranks:
        return {**ranks, "places": tuple(float(places[index]) for index in classed)}
    return ranks


def restart_row(attack: PictureAttack, path: Sequence[Guess], truth: Tensor) -> dict[str, float | str]:
    """The end of one restart."""
    end = path[-1]
    places, pictures = in_order_of_originals(end.pictures, truth)
    return {
        "loss": end.loss,
        "left": end.residual_scale.left(end.unexplained),
        "state": state_of(path, attack.leaves)[0],
        "psnr": mean(measure_pairs("psnr", pictures, truth[list(places)])),
    }


def state_of(path: Sequence[Guess], allowed_residual: float) -> tuple[str, str]:
    """Whether the attack found pictures that explain the upload, and if not, why.

    The reason never mentions protection: an attack that does not converge is no evidence of privacy.
    """
    first = path[0]
    last = path[-1]
    scale = last.residual_scale
    if not (math.isfinite(last.loss) and math.isfinite(last.unexplained)):
        return "diverged", "its numbers left every bound"
    if last.unexplained > 1.05 * max(1.0, first.unexplained):
        return "diverged", "it ended further from the upload than it began"
    if scale.hides_pictures:
        return "not converged", "noise drowns the pictures: plain grey explains the upload as well as any"
    residual = scale.left(last.unexplained)
    allowed = max(allowed_residual, DIRECT_RESIDUAL if scale.direct else 0)
    if residual > allowed:
        left = share_text(residual)
        return "not converged", f"it leaves {left} of what tells these pictures from plain grey unexplained"
    if scale.noise_effect > max(allowed, QUIET):
        return "not converged", "the noise is too loud to tell whether it found the pictures"
    if scale.ambiguous:
        numbers = f"{scale.pixels:,} numbers, and the upload {scale.received:,}"
        return "not converged", f"it explains the upload, and so would other pictures: they hold {numbers}"
    return "converged", ""


def share_text(share: float) -> str:
    """A share in percent, with two digits below 1 %."""
    percent = 100 * min(share, 9.99)
    return f"{percent:.0f} %" if percent >= 1 else f"{percent:.2g} %"


def sortable_loss(loss: float) -> float:
    """The loss, with infinity for NaN and for minus infinity."""
    return loss if math.isfinite(loss) else math.inf


def in_order_of_originals(guess: Tensor, truth: Tensor) -> tuple[tuple[int, ...], Tensor]:
    """The places of the originals that have a guess, and their guesses in the same order."""
    order = guess_order(guess, truth)
    places = tuple(place for place, index in enumerate(order.tolist()) if index < len(guess))
    return places, guess[order[list(places)]]


def guess_order(guess: Tensor, truth: Tensor) -> Tensor:
    """The index of the guess for each original, as in `matched`.

    Of more than 8 guesses, the first original has the nearest one if it would have none: it is the chosen picture.
    """
    order = matched(guess, truth)
    if len(guess) > MOST_PICTURES and int(order[0]) == len(guess):
        nearest_guess = (guess - truth[0]).flatten(1).norm(dim=1).argmin()
        order[order == nearest_guess] = len(guess)
        order[0] = nearest_guess
    return order


def measure_pairs(name: str, guesses: Tensor, originals: Tensor) -> tuple[float, ...]:
    """One number for each pair of guess and original."""
    metric = METRICS[name]()
    assert isinstance(metric, PictureMetric)
    return tuple(metric.measure(guess, original) for guess, original in zip(guesses, originals, strict=False))


def measure_paths(metric: PictureMetric, path: Sequence[Tensor], originals: Tensor) -> tuple[float, ...]:
    """One number for each original, over all guesses of it."""
    numbers = []
    for place in range(min(len(originals), len(path[-1]))):
        guesses = [pictures[place] for pictures in path]
        numbers.append(metric.measure_path(guesses, originals[place]))
    return tuple(numbers)


def curve(name: str, path: Sequence[Tensor], originals: Tensor) -> tuple[float, ...]:
    """The mean of a metric over the pictures, for each guess of the path; of more than 8 pictures, the first one's."""
    shown = len(originals) if len(originals) <= MOST_PICTURES else 1
    return tuple(mean(measure_pairs(name, pictures[:shown], originals[:shown])) for pictures in path)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
