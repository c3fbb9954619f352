"""LPIPS on VGG16: weights come from torch's cache; without them there is an error, never an unasked download."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest
import torch

from engine.errors import Damaged, MissingData
from engine.metrics.pictures.lpips_vgg import LpipsVgg
from engine.metrics.pictures.networks import VGG16, lpips_vgg
from engine.vision import torchvision
from tests.engine.metrics.conftest import random_vgg16
from tests.engine.metrics.pictures.makers import noisy, pictures

pytestmark = pytest.mark.slow

TRUTH = pictures("cifar10")[0]
GUESS = noisy(TRUTH, 0.2).clamp(0, 1)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses of attempted downloads; each of them fails."""
    addresses: list[str] = []

    def refuse(request: urllib.request.Request, **options: object) -> None:
        addresses.append(request.full_url)
        raise OSError("no network")

    monkeypatch.setattr("torch.hub.urlopen", refuse)
    return addresses


def test_the_file_has_the_name_of_torchvision():
    assert torchvision().models.VGG16_Weights.IMAGENET1K_V1.url.endswith(f"/{VGG16}")


@pytest.mark.usefixtures("vgg16")
def test_it_is_the_weighted_distance_of_five_layers():
    """Computed again: unit vectors of channels, squared differences, weighted and averaged over the places."""
    import lpips

    weights = random_vgg16()
    heads = torch.load(Path(lpips.__file__).parent / "weights/v0.1/vgg.pth", "cpu", weights_only=True)
    shift = torch.tensor([-0.030, -0.088, -0.188])
    scale = torch.tensor([0.458, 0.448, 0.450])
    x = torch.stack([GUESS, TRUTH])
    x = torch.nn.functional.interpolate(x, (64, 64), mode="bilinear") * 2 - 1
    x = (x - shift.view(3, 1, 1)) / scale.view(3, 1, 1)
    total = 0.0
    taps = {2: 0, 7: 1, 14: 2, 21: 3, 28: 4}  # after the last convolution of each block
    for place in range(30):
        if f"features.{place}.weight" in weights:
            x = torch.conv2d(x, weights[f"features.{place}.weight"], padding=1).relu()
            if place in taps:
                unit = x / x.norm(dim=1, keepdim=True)
                squares = (unit[0] - unit[1]).square()
                total += float((heads[f"lin{taps[place]}.model.1.weight"][0] * squares).sum(0).mean())
        elif f"features.{place - 1}.weight" not in weights:
            x = torch.max_pool2d(x, 2)
    assert LpipsVgg().measure(GUESS, TRUTH) == pytest.approx(total, rel=1e-3)


def test_without_weights_the_error_names_the_folder_and_a_fix(no_vgg16: Path, offline: list[str]):
    reason = LpipsVgg.unavailable()
    assert VGG16 in reason and str(no_vgg16.parent) in reason and "LEAKLENS_DOWNLOAD=1" in reason
    with pytest.raises(MissingData) as caught:
        LpipsVgg().measure(GUESS, TRUTH)
    assert str(caught.value) == reason
    assert not offline and not no_vgg16.parent.exists()


def test_it_is_downloaded_where_that_is_allowed(no_vgg16: Path, offline: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LEAKLENS_DOWNLOAD", "1")
    assert LpipsVgg.unavailable() == ""
    with pytest.raises(MissingData, match="LPIPS: the download of VGG16 failed: no network") as caught:
        LpipsVgg().measure(GUESS, TRUTH)
    assert caught.value.remedy == f"Put {VGG16} into {no_vgg16.parent}"
    assert [address.rsplit("/")[-1] for address in offline] == [VGG16]
    assert not no_vgg16.exists()


@pytest.mark.parametrize("raw", [b"", b"no weights at all", b"PK\x03\x04 cut"])
def test_a_broken_file_is_damaged(no_vgg16: Path, offline: list[str], raw: bytes):
    no_vgg16.parent.mkdir(parents=True)
    no_vgg16.write_bytes(raw)
    with pytest.raises(Damaged, match="cannot be read") as caught:
        LpipsVgg().measure(GUESS, TRUTH)
    assert str(no_vgg16) in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.remedy == "Delete this file and fetch it again"
    assert not offline


@pytest.mark.parametrize("content", [{"features.0.weight": torch.zeros(2, 3)}, [1, 2]])
def test_a_file_of_another_network_is_damaged(no_vgg16: Path, content: object):
    no_vgg16.parent.mkdir(parents=True)
    torch.save(content, no_vgg16)
    with pytest.raises(Damaged, match="does not hold the convolutions of VGG16"):
        lpips_vgg()
