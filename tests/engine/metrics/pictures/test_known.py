"""The metrics reproduce the numbers of an independent computation on three pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.engine.metrics.pictures.makers import ASSETS, made

KNOWN = json.loads((Path(__file__).parent / "image_metrics.json").read_text(encoding="utf-8"))
NAMES = {"mse": "mse", "psnr": "psnr", "ssim": "ssim", "lpips_alex": "lpips"}
CASES = [(row, column) for row in KNOWN["rows"] for column in NAMES]


def picture(name: str) -> NDArray[Any]:
    """(height, width) or (height, width, 3) in [0, 1]"""
    if name == "fashion_0":
        with np.load(ASSETS / "fashion_mnist.npz") as file:
            return np.asarray(file["x_train"][0] / 255)
    from skimage import data

    large: NDArray[Any] = data.astronaut()[50:178, 160:288] / 255
    return large if name == "astronaut_128" else large.reshape(32, 4, 32, 4, 3).mean(axis=(1, 3))


def tensor(image: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(np.atleast_3d(image)).permute(2, 0, 1)


def test_every_row_is_in_the_file():
    assert {row["image"] for row in KNOWN["rows"]} == set(KNOWN["images"])
    assert len(CASES) == 60


@pytest.mark.parametrize(
    ("row", "column"), CASES, ids=[f"{row['image']}-{row['sigma']}-{column}" for row, column in CASES]
)
def test_it_gives_the_known_number(row: dict[str, Any], column: str):
    image = picture(row["image"])
    noise = np.random.RandomState(0).standard_normal(image.shape)
    guess = 1 - image if row["sigma"] is None else image + row["sigma"] * noise  # clipped by the metric
    number = made(NAMES[column]).measure(tensor(guess), tensor(image))
    assert number == pytest.approx(row[column], abs=KNOWN["tolerance"][column])
