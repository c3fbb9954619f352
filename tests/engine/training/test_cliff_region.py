"""The noise over signal at which pictures are expected to disappear, for several models."""

from __future__ import annotations

import math
from typing import Any

import pytest

from engine.specs.run import RunSpec
from engine.training.forecast import ExpectedCliff, cliff_region, forecast


def expected(model: Any, dataset: str = "cifar10") -> ExpectedCliff:
    cliff = forecast(RunSpec(method="fedavg", model=model, dataset=dataset)).cliff
    assert cliff is not None
    return cliff


def test_a15_the_region_of_lenet5_covers_the_noise_that_left_a_picture_recognisable() -> None:
    """Noise 3.7 times the signal left 24.8 dB and SSIM 0.76; 7.35 times left 19.4 dB and SSIM 0.67."""
    cliff = expected("lenet5")
    low, high = cliff.region
    assert cliff.parameters == 1_141_194 and low < 3.7 and high > 7.35
    assert (low, high) == pytest.approx((1.93, 61.7), rel=0.01)


@pytest.mark.parametrize(
    ("model", "region"),
    [
        ({"name": "mlp", "hidden": 64}, (0.80, 25.6)),
        ("convnet", (1.02, 32.7)),
        ("alexnet", (1.89, 60.4)),
        ("lenet-sigmoid", (0.0023, 0.073)),
    ],
)
def test_a15_each_model_has_its_region(model: Any, region: tuple[float, float]) -> None:
    assert expected(model).region == pytest.approx(region, rel=0.02)


@pytest.mark.slow
def test_a15_a_wider_network_needs_more_noise() -> None:
    narrow, wide = (expected({"name": "mlp", "hidden": hidden}) for hidden in (16, 1600))
    factor = math.sqrt(wide.parameters / narrow.parameters)
    assert wide.region == pytest.approx([factor * end for end in narrow.region])


def test_a15_more_pictures_need_less_noise() -> None:
    single = expected("lenet5")
    four = single.with_pictures(4)
    assert four.region == pytest.approx([end / 2 for end in single.region]) and four.pixels == 4 * 3072
    assert four.region == pytest.approx(cliff_region(RunSpec(model="lenet5").model, 4 * 3072, single.parameters))
    assert four.noise_from == pytest.approx(single.noise_from / 2)


def test_a_run_without_pictures_has_a_forecast() -> None:
    assert expected("lstm", "movie-reviews").region[0] > 0
