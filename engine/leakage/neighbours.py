"""The neighbours of a guess: whether it is nearer to its original than to other pictures of the same class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.metrics.pictures import networks

EACH = 30  # pictures of the class, and as many of other classes


@dataclass(frozen=True)
class Neighbours:
    """Pictures of the data set, with which guesses are compared: half of the test split, then the training split."""

    test_x: Tensor  # (n, channels, height, width) in [0, 1]
    test_y: Tensor
    train_x: Tensor
    train_y: Tensor

    def of(self, label: int) -> tuple[Tensor, Tensor]:
        """Pictures of this class, one more than needed because one may be the original, and pictures of others.

        The training split is used only where the test split has too few pictures of the class.
        """
        same = self.test_x[self.test_y == label][: EACH + 1]
        if len(same) <= EACH:
            places = (self.train_y == label).nonzero().flatten()[: EACH + 1 - len(same)]
            same = torch.cat([same, self.train_x[places]])
        return same, self.test_x[self.test_y != label][:EACH]

    def others(self, pictures: Tensor, training: bool) -> tuple[Tensor, Tensor]:
        """Pictures of the same split that are not among these, and their classes.

        The two splits of MNIST follow different laws, so the pictures of an upload are compared with others of theirs.
        """
        x, y = (self.train_x, self.train_y) if training else (self.test_x, self.test_y)
        taken = {shades(picture) for picture in pictures}
        free = torch.tensor([shades(picture) not in taken for picture in x], device="cpu")
        return x[free], y[free]


def shades(picture: Tensor) -> bytes:
    """A picture in 256 shades: a record that a client normalised differs from the data set by rounding."""
    return (255 * picture.cpu()).round().to(torch.uint8).numpy().tobytes()


def nearest(
    guesses: Tensor, originals: Tensor, labels: Tensor, neighbours: Neighbours
) -> Mapping[str, tuple[float, ...]]:
    """Compares each guess with pictures of its original's class and of other classes, by LPIPS.

    `nearer` is the fraction of the pictures of the class that are nearer to the guess than its original is. `kind` is
    the chance that a picture of the class is nearer to the guess than one of another class. Without LPIPS, the result
    is empty.
    """
    if networks.unreadable_asset(networks.FEATURES, "LPIPS"):
        return {}
    module = networks.lpips_alex()
    vectors: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
    nearer: list[float] = []
    kind: list[float] = []
    for guess, original, label in zip(guesses, originals, labels.tolist(), strict=True):
        if label not in vectors:
            same, other = neighbours.of(label)
            vectors[label] = same, networks.lpips_embedding(module, same), networks.lpips_embedding(module, other)
        same, of_same, of_other = vectors[label]
        pair = networks.lpips_embedding(module, torch.stack([guess.clamp(0, 1), original]).to("cpu"))
        differs = (same != original).flatten(1).any(dim=1)
        to_original = squared_distance(pair[1], pair[0])
        to_same = squared_distance(of_same[differs][:EACH], pair[0])
        to_other = squared_distance(of_other, pair[0])
        nearer.append(float((to_same < to_original).double().mean()))
        kind.append(float((to_same[:, None] < to_other[None, :]).double().mean()))
    return {"nearer": tuple(nearer), "kind": tuple(kind)}


def squared_distance(vectors: Tensor, vector: Tensor) -> Tensor:
    """The squared distance of each vector to another one."""
    return (vectors - vector).square().sum(dim=-1).double()
