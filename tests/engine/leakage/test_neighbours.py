"""The neighbours of a guess, and the other pictures of the same split."""

from __future__ import annotations

import torch

from engine.datasets import DATASETS
from engine.leakage.neighbours import Neighbours, nearest

DATA = DATASETS.make("fashion-mnist").load()
HALF = len(DATA.test_y) // 2
NEIGHBOURS = Neighbours(DATA.test_x[:HALF], DATA.test_y[:HALF], DATA.train_x, DATA.train_y)


def test_the_original_is_nearest_to_itself_and_another_of_its_class_is_not() -> None:
    shoe = int((DATA.test_y[:HALF] == 7).nonzero()[0])
    other = int((DATA.train_y == 7).nonzero()[5])
    original, label = DATA.test_x[shoe : shoe + 1], DATA.test_y[shoe : shoe + 1]
    same = nearest(original, original, label, NEIGHBOURS)
    assert same["nearer"] == (0.0,) and same["kind"][0] > 0.9
    stranger = nearest(DATA.train_x[other : other + 1], original, label, NEIGHBOURS)
    assert stranger["nearer"][0] >= 0.1 and stranger["kind"][0] > 0.9


def test_the_pictures_of_other_classes_are_of_other_classes() -> None:
    trousers = (DATA.test_y[:HALF] == 1).nonzero().flatten()
    grouped = Neighbours(
        torch.cat([DATA.test_x[trousers], DATA.test_x[:HALF]]), torch.cat([DATA.test_y[trousers], DATA.test_y[:HALF]]),
        DATA.train_x, DATA.train_y,
    )  # fmt: skip
    _, other = grouped.of(1)
    same = {picture.numpy().tobytes() for picture in DATA.test_x[trousers]}
    assert len(other) == 30 and not same & {picture.numpy().tobytes() for picture in other}


def test_others_are_of_the_same_split_and_not_in_the_upload() -> None:
    upload = DATA.train_x[:5] * 0.9999999 + 1e-8  # as a client holds them, normalised and back
    pictures, labels = NEIGHBOURS.others(upload, training=True)
    assert len(pictures) == len(labels) == len(DATA.train_y) - 5
    assert torch.equal(pictures[0], DATA.train_x[5])
    assert len(NEIGHBOURS.others(DATA.test_x[:3], training=False)[1]) == HALF - 3
