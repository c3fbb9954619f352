"""LPIPS is the real one: it gives the distances that the original package gives on the same pictures."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from engine import perceptual
from engine.errors import Damaged, MissingData
from engine.perceptual import FEATURES, alexnet_features, lpips_alex

COAT = FEATURES.parent / "fashion_mnist.npz"


@pytest.fixture
def fresh() -> None:
    lpips_alex.cache_clear()


def seen(picture: np.ndarray) -> Tensor:
    """(28, 28) in [0, 1] as LPIPS takes it: three channels, in [-1, 1], a small side brought to 64 pixels."""
    x = torch.from_numpy(picture).float().expand(1, 3, *picture.shape)
    return interpolate(x, (64, 64), mode="bilinear", align_corners=False) * 2 - 1


def coat() -> np.ndarray:
    with np.load(COAT) as file:
        return np.asarray(file["x_train"][0] / 255)


# made by an independent run of lpips 0.1.4: noise of this deviation from RandomState(0), clipped to [0, 1]
@pytest.mark.parametrize(("deviation", "distance"), [(0.01, 0.0008), (0.05, 0.0424), (0.2, 0.2982), (0.4, 0.4938)])
def test_it_gives_the_known_distances(deviation: float, distance: float):
    picture = coat()
    noisy = np.clip(picture + deviation * np.random.RandomState(0).standard_normal(picture.shape), 0, 1)
    assert float(lpips_alex()(seen(noisy), seen(picture))) == pytest.approx(distance, abs=0.002)


def test_it_gives_the_known_distance_of_a_negative():
    assert float(lpips_alex()(seen(1 - coat()), seen(coat()))) == pytest.approx(0.3297, abs=0.002)


def test_it_is_loaded_once_in_silence_and_draws_nothing(fresh: None, capfd: pytest.CaptureFixture[str]):
    before = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module = lpips_alex()
    assert lpips_alex() is module
    assert torch.equal(torch.get_rng_state(), before)
    assert capfd.readouterr() == ("", "")
    assert not module.training
    assert not any(weight.requires_grad for weight in module.parameters())


def test_a_picture_may_be_changed_by_its_distance():
    picture = torch.zeros(1, 3, 32, 32, requires_grad=True)
    lpips_alex()(picture, torch.full((1, 3, 32, 32), 0.5)).backward()
    assert picture.grad is not None
    assert float(picture.grad.abs().sum()) > 0


def test_missing_features_are_named(tmp_path: Path):
    with pytest.raises(MissingData, match=r"LPIPS: assets/none\.safetensors is not there"):
        alexnet_features(tmp_path / "none.safetensors")


@pytest.mark.parametrize("size", [0, 100, 4_000_000])
def test_cut_features_are_damage(tmp_path: Path, size: int):
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(FEATURES.read_bytes()[:size])
    with pytest.raises(Damaged, match=r"cut\.safetensors: cannot be read") as told:
        alexnet_features(cut)
    assert "\n" not in str(told.value)


def test_features_of_another_network_are_damage(tmp_path: Path, fresh: None, monkeypatch: pytest.MonkeyPatch):
    from safetensors.torch import save_file

    other = tmp_path / "other.safetensors"
    save_file({"features.0.weight": torch.zeros(2, 3)}, other)
    monkeypatch.setattr(perceptual, "FEATURES", other)
    with pytest.raises(Damaged, match="does not hold the convolutions of AlexNet"):
        lpips_alex()
