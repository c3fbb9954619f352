"""A device that is missing is refused with the reason, and a result names the card that computed it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine.compute import devices
from engine.errors import BadInput
from engine.jobs.backends.device import DEVICE, default_device, placement, refuse_missing_default

REFUSED = "must be cpu, or cuda where a GPU is found, got cuda:7. Leave --device out"


@pytest.fixture
def two_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """What torch reports on a machine with two cards."""
    properties: Any = SimpleNamespace(name="Card", total_memory=24e9)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: properties)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: f"Card {number}")


def refusal(device: str) -> str:
    with pytest.raises(BadInput) as refused:
        devices.refuse_missing(device)
    return str(refused.value)


def test_a_build_without_cuda_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.version, "hip", None)
    version = torch.__version__
    built = f"or install a torch with CUDA: {version} is built without it."
    assert refusal("cuda:7") == f"run: device: {REFUSED}, {built}"


def test_a_machine_without_a_card_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert refusal("cuda:7") == f"run: device: {REFUSED}: torch finds no GPU."


@pytest.mark.usefixtures("two_cards")
def test_the_cards_there_are_can_be_chosen() -> None:
    for device in ("cpu", "cuda", "cuda:0", "cuda:1"):
        devices.refuse_missing(device)
    assert refusal("cuda:7") == f"run: device: {REFUSED}, or choose one of cuda:0, cuda:1."
    assert "got cuda:" in refusal("cuda:") and "got cuda:٣" in refusal("cuda:٣")


def test_the_cards_are_reported_by_name(two_cards: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert devices.summary()[0] == "cuda:0 Card, 24 GB; cuda:1 Card, 24 GB"
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert devices.summary() == ("torch finds none: everything runs on the processor", "")
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.version, "hip", None)
    text, remedy = devices.summary()
    assert "is built without CUDA: everything runs on the processor" in text and "install a torch with CUDA" in remedy


@pytest.mark.usefixtures("two_cards")
def test_a_result_names_the_card_and_not_the_processor() -> None:
    assert devices.device_fact("cpu") == {}
    assert devices.device_fact("cuda") == {"device": "cuda:0, Card 0"}
    assert devices.device_fact("cuda:1") == {"device": "cuda:1, Card 1"}


def test_the_variable_is_the_default_and_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DEVICE, raising=False)
    refuse_missing_default()
    assert default_device() == "cpu" and placement().startswith("the processor for training, testing and attacks; ")
    monkeypatch.setenv(DEVICE, "cuda:7")
    assert default_device() == "cuda:7"
    with pytest.raises(BadInput, match=r"^LEAKLENS_DEVICE: must be cpu, .* got cuda:7") as refused:
        refuse_missing_default()
    assert refused.value.remedy.startswith("Leave LEAKLENS_DEVICE out")


def test_a_card_computes_with_all_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """TF32 has 10 bits, and torch uses it for convolutions by default."""
    cudnn = torch.backends.cudnn
    monkeypatch.setattr(cudnn, "allow_tf32", True)  # restored afterwards
    monkeypatch.setattr(cudnn, "deterministic", False)
    devices.use_full_precision("cpu")
    assert cudnn.allow_tf32
    devices.use_full_precision("cuda")
    assert (cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32, cudnn.deterministic) == (False, False, True)
