"""Where a run or an attack computes: on the processor or on a graphics card (GPU), and how records move there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor

from engine.errors import BadInput, refusal

PROCESSOR = torch.device("cpu")
CUDA = re.compile(r"cuda(?::(\d{1,3}))?", re.ASCII)


@dataclass(frozen=True)
class GraphicsCard:
    """A card that torch can use."""

    device: str  # the value of --device
    name: str
    gigabytes: float


def cards() -> tuple[GraphicsCard, ...]:
    """The cards of this machine that torch can use."""
    present: list[GraphicsCard] = []
    for number in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(number)
        present.append(GraphicsCard(f"cuda:{number}", str(properties.name), properties.total_memory / 1e9))
    return tuple(present)


def built_for_cards() -> bool:
    """Whether this build of torch can use a card at all."""
    return torch.version.cuda is not None or torch.version.hip is not None


def summary() -> tuple[str, str]:
    """The cards that torch can use or why there are none, and what helps."""
    names = [f"{card.device} {card.name}, {card.gigabytes:.0f} GB" for card in cards()]
    if names:
        return "; ".join(names), "Choose one with --device, or with LEAKLENS_DEVICE for the dashboard"
    if built_for_cards():
        return "torch finds none: everything runs on the processor", ""
    text = f"torch {torch.__version__} is built without CUDA: everything runs on the processor"
    return text, "Only to use a card: install a torch with CUDA"


def is_present(device: str) -> bool:
    """Whether this is the processor, or a card that torch finds."""
    if device == "cpu":
        return True
    match = CUDA.fullmatch(device)
    return match is not None and int(match[1] or 0) < torch.cuda.device_count()


def refuse_missing(device: str, where: str = "run: device", setting: str = "--device") -> None:
    """Refuse a device that this machine does not have."""
    if not is_present(device):
        raise missing(device, where, setting)


def missing(device: str, where: str, setting: str) -> BadInput:
    """The refusal of a device, with the reason in the fix: the build of torch, or the cards there are."""
    leave_out = f"Leave {setting} out"
    names = [card.device for card in cards()]
    if not built_for_cards():
        remedy = f"{leave_out}, or install a torch with CUDA: {torch.__version__} is built without it"
    elif names:
        remedy = f"{leave_out}, or choose one of {', '.join(names)}"
    else:
        remedy = f"{leave_out}: torch finds no GPU"
    return refusal(where, "must be cpu, or cuda where a GPU is found", device, remedy)


def use_full_precision(device: str) -> None:
    """Let a card compute with all digits of its numbers, in the same way each time. It rounds convolutions by default.

    With the 10 bits of TF32, gradients that an attack compares would be wrong by a thousandth.
    """
    if device != "cpu":
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False


def device_fact(device: str) -> dict[str, str]:
    """The fact of a result that was not computed on the processor: a card with its number and its name."""
    if device == "cpu":
        return {}
    number = torch.device(device).index or 0
    return {"device": f"cuda:{number}, {torch.cuda.get_device_name(number)}"}


# --- records -----------------------------------------------------------------------------------------------


def on_device(value: Any, device: torch.device) -> Any:
    """A record, a mapping or a tensor with every tensor in it on this device."""
    return with_tensors(value, lambda tensor: tensor.to(device))


def copied(value: Any) -> Any:
    """A record, a mapping or a tensor with a copy of every tensor in it."""
    return with_tensors(value, Tensor.clone)


def with_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """A record, a mapping or a tensor with every tensor in it changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Mapping):
        return {name: with_tensors(item, change) for name, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        changed = {field.name: with_tensors(getattr(value, field.name), change) for field in fields(value)}
        return replace(value, **changed)
    return value
