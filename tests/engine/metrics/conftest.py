"""A machine on which weights of VGG16 lie in torch's cache: drawn by chance, but of the real shapes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from engine.metrics.pictures import networks
from engine.seeds import Seeds

WIDTHS = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)  # 0: halved


def drawn() -> dict[str, Tensor]:
    """The convolutions of a VGG16 that was never trained, under torchvision's names."""
    rng, place, channels = Seeds(0).rng("vgg16"), 0, 3
    found: dict[str, Tensor] = {}
    for width in WIDTHS:
        if not width:
            place += 1
            continue
        weight = torch.empty(width, channels, 3, 3)
        found[f"features.{place}.weight"] = nn.init.kaiming_normal_(weight, nonlinearity="relu", generator=rng)
        found[f"features.{place}.bias"] = torch.zeros(width)
        place, channels = place + 2, width
    return found


@pytest.fixture(scope="package")
def filled_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("torch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_HOME", str(folder))
        file = networks.vgg16_file()
    file.parent.mkdir(parents=True)
    torch.save(drawn(), file)
    yield folder
    networks.lpips_vgg.cache_clear()


@pytest.fixture
def vgg16(filled_cache: Path) -> Iterator[Path]:
    """The file of the weights; whoever asks for VGG16 meanwhile gets them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_HOME", str(filled_cache))
        yield networks.vgg16_file()


@pytest.fixture
def no_vgg16(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the weights would lie, on a machine without them that may fetch nothing."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.delenv("LEAKLENS_DOWNLOAD", raising=False)
    networks.lpips_vgg.cache_clear()
    yield networks.vgg16_file()
    networks.lpips_vgg.cache_clear()
