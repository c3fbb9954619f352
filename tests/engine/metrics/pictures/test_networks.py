"""LPIPS gives the distances of the original package, and the classifier recognises pictures."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from engine.errors import Damaged, MissingData
from engine.metrics import METRICS
from engine.metrics.pictures import networks
from engine.metrics.pictures.networks import CLASSIFIER, FEATURES, alexnet_features, lpips_alex, squeezenet
from engine.vision import torchvision

COAT = FEATURES.parent / "fashion_mnist.npz"


@pytest.fixture
def lpips_not_loaded() -> None:
    lpips_alex.cache_clear()


@pytest.fixture
def squeezenet_not_loaded() -> Iterator[None]:
    squeezenet.cache_clear()
    yield
    squeezenet.cache_clear()


def lpips_input(picture: np.ndarray) -> Tensor:
    """A picture (28, 28) in [0, 1] as the input of LPIPS: three channels in [-1, 1], enlarged to 64 pixels."""
    x = torch.from_numpy(picture).float().expand(1, 3, *picture.shape)
    return interpolate(x, (64, 64), mode="bilinear", align_corners=False) * 2 - 1


def coat() -> np.ndarray:
    with np.load(COAT) as file:
        return np.asarray(file["x_train"][0] / 255)


# computed independently with lpips 0.1.4: noise of this deviation from RandomState(0), clipped to [0, 1]
@pytest.mark.parametrize(("deviation", "distance"), [(0.01, 0.0008), (0.05, 0.0424), (0.2, 0.2982), (0.4, 0.4938)])
def test_it_gives_the_known_distances(deviation: float, distance: float):
    picture = coat()
    noisy = np.clip(picture + deviation * np.random.RandomState(0).standard_normal(picture.shape), 0, 1)
    assert float(lpips_alex()(lpips_input(noisy), lpips_input(picture))) == pytest.approx(distance, abs=0.002)


def test_it_gives_the_known_distance_of_a_negative():
    assert float(lpips_alex()(lpips_input(1 - coat()), lpips_input(coat()))) == pytest.approx(0.3297, abs=0.002)


def test_lpips_is_loaded_once_and_prints_and_draws_nothing(lpips_not_loaded: None, capfd: pytest.CaptureFixture[str]):
    before = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module = lpips_alex()
    assert lpips_alex() is module
    assert torch.equal(torch.get_rng_state(), before)
    assert capfd.readouterr() == ("", "")
    assert not module.training
    assert not any(weight.requires_grad for weight in module.parameters())


def test_lpips_has_a_gradient():
    picture = torch.zeros(1, 3, 32, 32, requires_grad=True)
    lpips_alex()(picture, torch.full((1, 3, 32, 32), 0.5)).backward()
    assert picture.grad is not None
    assert float(picture.grad.abs().sum()) > 0


def test_missing_features_are_named(tmp_path: Path):
    with pytest.raises(MissingData, match=r"LPIPS: assets/none\.safetensors is not there"):
        alexnet_features(tmp_path / "none.safetensors")


@pytest.mark.parametrize("size", [0, 100, 4_000_000])
def test_truncated_features_are_damaged(tmp_path: Path, size: int):
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(FEATURES.read_bytes()[:size])
    with pytest.raises(Damaged, match=r"cut\.safetensors: cannot be read") as caught:
        alexnet_features(cut)
    assert "\n" not in str(caught.value)


def test_features_of_another_network_are_damaged(
    tmp_path: Path, lpips_not_loaded: None, monkeypatch: pytest.MonkeyPatch
):
    from safetensors.torch import save_file

    other = tmp_path / "other.safetensors"
    save_file({"features.0.weight": torch.zeros(2, 3)}, other)
    monkeypatch.setattr(networks, "FEATURES", other)
    with pytest.raises(Damaged, match="does not hold the convolutions of AlexNet"):
        lpips_alex()


# --- the classifier ----------------------------------------------------------------------------------------


# what these pictures show, in torchvision's names
@pytest.mark.parametrize(("name", "labels"), [("chelsea", {"Egyptian cat", "tabby"}), ("coffee", {"espresso"})])
def test_the_classifier_recognises_a_picture(name: str, labels: set[str]):
    from skimage import data

    models: Any = torchvision().models
    x = torch.from_numpy(getattr(data, name)()).permute(2, 0, 1)[None].float() / 255
    x = interpolate(x, (224, 224), mode="bilinear", antialias=True)
    colours = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]]).view(2, 3, 1, 1)
    label = int(squeezenet()((x - colours[0]) / colours[1]).argmax())
    assert models.SqueezeNet1_1_Weights.IMAGENET1K_V1.meta["categories"][label] in labels


def test_the_classifier_is_loaded_once_and_draws_nothing(
    squeezenet_not_loaded: None, capfd: pytest.CaptureFixture[str]
):
    before = torch.get_rng_state()
    module = squeezenet()
    assert squeezenet() is module
    assert torch.equal(torch.get_rng_state(), before)
    assert capfd.readouterr() == ("", "")
    assert not module.training
    assert not any(weight.requires_grad for weight in module.parameters())


def test_a_missing_classifier_is_named(tmp_path: Path, squeezenet_not_loaded: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(networks, "CLASSIFIER", tmp_path / "none.safetensors")
    with pytest.raises(MissingData, match=r"SqueezeNet: assets/none\.safetensors is not there"):
        squeezenet()
    assert (
        METRICS["kl-squeezenet"].unavailable().startswith("SqueezeNet: assets/none.safetensors is not there. Restore")
    )


def test_missing_features_are_reported_before_they_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(networks, "FEATURES", tmp_path / "none.safetensors")
    assert METRICS["lpips"].unavailable() == f"{networks.missing_asset(networks.FEATURES, 'LPIPS')}"
    assert "Restore this file" in METRICS["lpips"].unavailable()


@pytest.mark.parametrize("size", [0, 100, 2_000_000])
def test_a_truncated_classifier_is_damaged(
    tmp_path: Path, squeezenet_not_loaded: None, monkeypatch: pytest.MonkeyPatch, size: int
):
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(CLASSIFIER.read_bytes()[:size])
    monkeypatch.setattr(networks, "CLASSIFIER", cut)
    with pytest.raises(Damaged, match=r"cut\.safetensors: cannot be read") as caught:
        squeezenet()
    assert "\n" not in str(caught.value)


def test_a_file_of_another_network_is_no_classifier(squeezenet_not_loaded: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(networks, "CLASSIFIER", FEATURES)
    with pytest.raises(Damaged, match=r"does not hold the weights of SqueezeNet 1\.1"):
        squeezenet()
