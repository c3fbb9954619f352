"""The number of parameters of each model equals the number in its paper."""

from __future__ import annotations

import pytest
import torch

from engine.models import MODELS
from engine.seeds import Seeds


@pytest.mark.parametrize(
    ("name", "values", "shape", "count"),
    [
        ("lenet5", {}, (3, 32, 32), 1_141_194),
        ("lenet5", {}, (1, 28, 28), 1_141_194 - 2 * 800 - (1600 - 1024) * 512),
        ("lenet-sigmoid", {}, (3, 32, 32), 15_826),
        ("lenet-sigmoid", {"init": "uniform"}, (1, 28, 28), 15_826 - 2 * 12 * 25 - (768 - 588) * 10),
        ("convnet", {}, (1, 28, 28), 317_706),
        ("convnet", {}, (3, 32, 32), 320_010),
        ("alexnet", {}, (3, 32, 32), 1_095_210),
        ("alexnet", {"width": 2, "hidden": 5}, (1, 28, 28), 20 + 114 + 660 + 872 + 584 + 72 + 45 + 30 + 60),
        ("lstm", {}, (40,), 2000 * 128 + 4 * 32 * (128 + 32 + 2) + 33 * 10),
        ("lstm", {"words": 9, "width": 3, "hidden": 5}, (4,), 9 * 3 + 4 * 5 * (3 + 5 + 2) + 6 * 10),
        ("mlp", {}, (1, 28, 28), 784 * 64 + 64 * 10),
        ("mlp", {"bias": True, "hidden": 32}, (3, 32, 32), 3072 * 32 + 32 + 32 * 10 + 10),
    ],
)
def test_the_number_of_parameters(name, values, shape, count):
    module = MODELS.make({"name": name, **values}).build(shape, 10, Seeds(0).rng("weights"))
    assert sum(parameter.numel() for parameter in module.parameters()) == count


@pytest.mark.parametrize("side", [*range(8, 18), 20, 30, 31, 33, 64])
def test_convnet_accepts_any_side(side):
    module = MODELS.make({"name": "convnet", "width": 2}).build((1, side, side + 3), 5, Seeds(0).rng("weights"))
    assert module(torch.zeros(2, 1, side, side + 3)).shape == (2, 5)


@pytest.mark.parametrize(("name", "smallest"), [("alexnet", 16), ("lenet5", 16), ("lenet-sigmoid", 4)])
def test_a_model_reads_the_smallest_picture_that_it_declares(name, smallest):
    for sides in ((smallest, smallest + 1), (smallest + 2, smallest), (smallest + 3, smallest + 5)):
        module = MODELS.make(name).build((1, *sides), 5, Seeds(0).rng("weights"))
        assert module(torch.zeros(2, 1, *sides)).shape == (2, 5)


def test_uniform_initial_weights_fill_their_interval():
    module = MODELS.make({"name": "lenet-sigmoid", "init": "uniform"}).build((3, 32, 32), 10, Seeds(0).rng("weights"))
    for parameter in module.parameters():
        assert float(parameter.detach().abs().max()) <= 0.5
        if parameter.numel() > 100:
            assert float(parameter.detach().std()) == pytest.approx(12**-0.5, rel=0.1)
