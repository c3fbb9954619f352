"""The doctor opens the networks that measure, and says what VGG16 would need."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine import doctor
from engine.doctor import Finding, examine
from engine.errors import Damaged, MissingData
from engine.metrics.pictures.networks import VGG16


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of torch, and empty."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.delenv("LEAKLENS_DOWNLOAD", raising=False)
    return tmp_path / "hub" / "checkpoints"


def test_it_says_what_vgg16_would_need(cache: Path):
    found = doctor.lpips_works()
    assert found.ok and found.text.endswith("SqueezeNet opens; VGG16: not here")
    assert found.remedy.startswith(f"For lpips-vgg: Put {VGG16} (528 MB) into {cache}, or set LEAKLENS_DOWNLOAD=1")


def test_vgg16_may_be_fetched(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LEAKLENS_DOWNLOAD", "1")
    found = doctor.lpips_works()
    assert found.text.endswith("VGG16: here or to be fetched") and not found.remedy


def test_a_classifier_that_is_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def gone() -> None:
        raise MissingData("SqueezeNet: assets/none is not there", "Restore it")

    monkeypatch.setattr("engine.metrics.pictures.networks.squeezenet", gone)
    found = {one.name: one for one in examine()}["lpips"]
    assert found == Finding("lpips", False, "SqueezeNet: assets/none is not there", "Restore it")


def test_lpips_that_does_not_measure_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("engine.metrics.pictures.networks.lpips_alex", lambda: lambda one, other: torch.ones(1))
    with pytest.raises(Damaged, match="must be 0 from itself and more from its noisy twin, got 1 and 1"):
        doctor.lpips_works()
