"""LPIPS on VGG16: from torch's cache where the weights lie, and otherwise a sentence, never a download by itself."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest
import torch

from engine.errors import Damaged, MissingData
from engine.metrics.pictures.lpips_vgg import LpipsVgg
from engine.metrics.pictures.networks import VGG16, lpips_vgg
from engine.vision import torchvision
from tests.engine.metrics.conftest import drawn
from tests.engine.metrics.pictures.makers import noisy, pictures

pytestmark = pytest.mark.slow

TRUTH = pictures("cifar10")[0]
GUESS = noisy(TRUTH, 0.2).clamp(0, 1)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nothing leaves this machine; what would have is noted."""
    asked: list[str] = []

    def refuse(request: urllib.request.Request, **options: object) -> None:
        asked.append(request.full_url)
        raise OSError("no way out")

    monkeypatch.setattr("torch.hub.urlopen", refuse)
    return asked


def test_the_file_is_called_as_torchvision_calls_it():
    assert torchvision().models.VGG16_Weights.IMAGENET1K_V1.url.endswith(f"/{VGG16}")


@pytest.mark.usefixtures("vgg16")
def test_it_is_the_weighted_distance_of_five_layers():
    """Worked out again: unit vectors of channels, squared differences, weighed and averaged over the places."""
    import lpips

    weights = drawn()
    heads = torch.load(Path(lpips.__file__).parent / "weights/v0.1/vgg.pth", "cpu", weights_only=True)
    shift, scale = torch.tensor([-0.030, -0.088, -0.188]), torch.tensor([0.458, 0.448, 0.450])
    x = torch.stack([GUESS, TRUTH])
    x = torch.nn.functional.interpolate(x, (64, 64), mode="bilinear") * 2 - 1
    x = (x - shift.view(3, 1, 1)) / scale.view(3, 1, 1)
    total, taps = 0.0, {2: 0, 7: 1, 14: 2, 21: 3, 28: 4}  # after the last convolution of each block
    for place in range(30):
        if f"features.{place}.weight" in weights:
            x = torch.conv2d(x, weights[f"features.{place}.weight"], padding=1).relu()
            if place in taps:
                unit = x / x.norm(dim=1, keepdim=True)
                apart = (unit[0] - unit[1]).square()
                total += float((heads[f"lin{taps[place]}.model.1.weight"][0] * apart).sum(0).mean())
        elif f"features.{place - 1}.weight" not in weights:
            x = torch.max_pool2d(x, 2)
    assert LpipsVgg().measure(GUESS, TRUTH) == pytest.approx(total, rel=1e-3)


def test_without_weights_it_says_where_and_what_to_do(no_vgg16: Path, offline: list[str]):
    said = LpipsVgg.absent()
    assert VGG16 in said and str(no_vgg16.parent) in said and "LEAKLENS_DOWNLOAD=1" in said
    with pytest.raises(MissingData) as told:
        LpipsVgg().measure(GUESS, TRUTH)
    assert str(told.value) == said
    assert not offline and not no_vgg16.parent.exists()


def test_it_is_fetched_where_that_is_allowed(no_vgg16: Path, offline: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LEAKLENS_DOWNLOAD", "1")
    assert LpipsVgg.absent() == ""
    with pytest.raises(MissingData, match="LPIPS: the download of VGG16 failed: no way out") as told:
        LpipsVgg().measure(GUESS, TRUTH)
    assert told.value.remedy == f"Put {VGG16} into {no_vgg16.parent}"
    assert [address.rsplit("/")[-1] for address in offline] == [VGG16]
    assert not no_vgg16.exists()


@pytest.mark.parametrize("raw", [b"", b"no weights at all", b"PK\x03\x04 cut"])
def test_a_broken_file_is_damage(no_vgg16: Path, offline: list[str], raw: bytes):
    no_vgg16.parent.mkdir(parents=True)
    no_vgg16.write_bytes(raw)
    with pytest.raises(Damaged, match="cannot be read") as told:
        LpipsVgg().measure(GUESS, TRUTH)
    assert str(no_vgg16) in str(told.value) and "\n" not in str(told.value)
    assert told.value.remedy == "Delete this file and fetch it again"
    assert not offline


@pytest.mark.parametrize("held", [{"features.0.weight": torch.zeros(2, 3)}, [1, 2]])
def test_another_network_is_damage(no_vgg16: Path, held: object):
    no_vgg16.parent.mkdir(parents=True)
    torch.save(held, no_vgg16)
    with pytest.raises(Damaged, match="does not hold the convolutions of VGG16"):
        lpips_vgg()
