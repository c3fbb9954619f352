"""Fixtures for machines with and without weights of VGG16 in torch's cache: random numbers of the real shapes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from engine.metrics.pictures import networks
from engine.seeds import Seeds

WIDTHS = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)  # 0: pooling halves the picture


def random_vgg16() -> dict[str, Tensor]:
    """The convolutions of an untrained VGG16, under torchvision's names."""
    rng = Seeds(0).rng("vgg16")
    place = 0
    channels = 3
    weights: dict[str, Tensor] = {}
    for width in WIDTHS:
        if not width:
            place += 1
            continue
        weight = torch.empty(width, channels, 3, 3)
        weights[f"features.{place}.weight"] = nn.init.kaiming_normal_(weight, nonlinearity="relu", generator=rng)
        weights[f"features.{place}.bias"] = torch.zeros(width)
        place += 2
        channels = width
    return weights


@pytest.fixture(scope="package")
def filled_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("torch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_HOME", str(folder))
        file = networks.vgg16_file()
    file.parent.mkdir(parents=True)
    torch.save(random_vgg16(), file)
    yield folder
    networks.lpips_vgg.cache_clear()


@pytest.fixture
def vgg16(filled_cache: Path) -> Iterator[Path]:
    """The file of the weights, on a machine that has them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_HOME", str(filled_cache))
        yield networks.vgg16_file()


@pytest.fixture
def no_vgg16(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The path of the missing file, on a machine that may not download it."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.delenv("LEAKLENS_DOWNLOAD", raising=False)
    networks.lpips_vgg.cache_clear()
    yield networks.vgg16_file()
    networks.lpips_vgg.cache_clear()
