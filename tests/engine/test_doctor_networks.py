"""The doctor loads the networks that metrics use, and names what VGG16 needs."""

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
    """An empty cache of torch."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.delenv("LEAKLENS_DOWNLOAD", raising=False)
    return tmp_path / "hub" / "checkpoints"


def test_a_missing_vgg16_has_its_remedy(cache: Path):
    finding = doctor.lpips_works()
    assert finding.ok and finding.text.endswith("SqueezeNet loads; VGG16: not here")
    assert finding.remedy.startswith(f"For lpips-vgg: Put {VGG16} (528 MB) into {cache}, or set LEAKLENS_DOWNLOAD=1")


def test_vgg16_may_be_downloaded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LEAKLENS_DOWNLOAD", "1")
    finding = doctor.lpips_works()
    assert finding.text.endswith("VGG16: here or can be downloaded") and not finding.remedy


def test_a_missing_classifier_is_reported(monkeypatch: pytest.MonkeyPatch):
    def missing() -> None:
        raise MissingData("SqueezeNet: assets/none is not there", "Restore it")

    monkeypatch.setattr("engine.metrics.pictures.networks.squeezenet", missing)
    finding = next(finding for finding in examine() if finding.name == "lpips")
    assert finding == Finding("lpips", False, "SqueezeNet: assets/none is not there", "Restore it")


def test_wrong_lpips_distances_are_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("engine.metrics.pictures.networks.lpips_alex", lambda: lambda first, second: torch.ones(1))
    with pytest.raises(Damaged, match="must be 0 from a picture to itself and above 0 to a noisy copy, got 1 and 1"):
        doctor.lpips_works()
