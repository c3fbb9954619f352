"""A second device without a card: its tensors hold their numbers on the processor, and refuse what a card refuses.

A tensor of the device wraps one of the processor. Each operation runs on the wrapped tensors, so results are the same
to the bit. As on a card, these end with an error: an operation on tensors of both devices, a generator of the processor
for numbers on the device, and numpy. Numbers from the global generator are refused too: a run could not be repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_iter, tree_map_only

from engine.compute import devices, threads

NAME = "lazy:0"  # a device type of torch that no machine has, and whose gradients the processor's thread computes
DEVICE = torch.device(NAME)
INDEXING = {"aten::index.Tensor", "aten::index_put_"}  # a tensor, its indices, and the values if it is written
CROSSING = {"aten::copy_", "aten::_to_copy"}


class DeviceTensor(Tensor):
    """A tensor on the second device."""

    held: Tensor  # the same numbers on the processor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, held: Tensor) -> DeviceTensor:
        layout: dict[str, Any] = {"strides": held.stride(), "storage_offset": held.storage_offset()}
        wrapper = Tensor._make_wrapper_subclass(cls, held.size(), dtype=held.dtype, device=DEVICE, **layout)
        wrapper.held = held
        return wrapper

    def tolist(self) -> Any:  # torch reads a subclass in no other way
        return self.held.tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        return computed(func, args, dict(kwargs or {}))


class SecondDevice(TorchDispatchMode):
    """While active in a thread, tensors can be made on the second device and moved to it."""

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        return computed(func, args, dict(kwargs or {}))


def computed(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The result of an operation, on the device where a card would have it."""
    tensors = [value for value in tree_iter((args, kwargs)) if isinstance(value, Tensor)]
    on_device = [tensor for tensor in tensors if isinstance(tensor, DeviceTensor)]
    target = kwargs.get("device")
    moved = target is not None and torch.device(target) != DEVICE
    result_on_device = bool(on_device) if target is None else not moved
    if func.name() == "aten::copy_":
        result_on_device = isinstance(args[0], DeviceTensor)
    if on_device or result_on_device:
        refuse_mixture(func, met_tensors(func, args, tensors))
        refuse_generator(func, kwargs)
    if target is not None and not moved:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    inner_args, inner_kwargs = tree_map_only(DeviceTensor, lambda tensor: tensor.held, (args, kwargs))
    result = func(*inner_args, **inner_kwargs)
    if not result_on_device:
        return result
    wrapped = tree_map_only(Tensor, DeviceTensor, result)
    return return_and_correct_aliasing(func, args, kwargs, wrapped)


def met_tensors(func: Any, args: Sequence[Any], tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """The tensors that must be on one device: a card reads also an index that is on the processor."""
    if func.name() not in INDEXING or not isinstance(args[0], DeviceTensor):
        return tensors
    return [value for value in tree_iter((args[0], args[2:])) if isinstance(value, Tensor)]


def refuse_mixture(func: Any, tensors: Sequence[Tensor]) -> None:
    """A card computes with its own tensors, and where one number at a time is read also with a single number."""
    if func.name() in CROSSING:
        return
    single_numbers = torch.Tag.pointwise in func.tags
    for tensor in tensors:
        if not isinstance(tensor, DeviceTensor) and not (single_numbers and tensor.dim() == 0):
            devices = [str(each.device) for each in tensors]
            raise RuntimeError(f"expected all tensors to be on the same device, got {devices} in {func.name()}")


def refuse_generator(func: Any, kwargs: Mapping[str, Any]) -> None:
    """Every generator of a run is one of the processor, and the global one of a card has no seed of the run."""
    if torch.Tag.nondeterministic_seeded in func.tags:
        raise RuntimeError(f"{func.name()} draws on the device with the generator {kwargs.get('generator')}")


@contextmanager
def second_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of the device, which works until the block ends: in this thread, and in those of new thread teams."""
    set_modes = threads.set_thread_modes
    tensor_of = torch.tensor

    def tensor(values: Any, *, device: Any = None, **options: Any) -> Tensor:  # the only factory that skips modes
        made = tensor_of(values, device="cpu", **options)
        return made if device is None else made.to(device)

    def set_modes_with_device() -> None:
        set_modes()
        SecondDevice().__enter__()

    with monkeypatch.context() as patch, SecondDevice():
        patch.setattr(threads, "set_thread_modes", set_modes_with_device)
        for settings, name in ((torch.backends.cudnn, "allow_tf32"), (torch.backends.cudnn, "deterministic")):
            patch.setattr(settings, name, getattr(settings, name))  # restored afterwards: a run changes them
        patch.setattr(torch, "tensor", tensor)
        patch.setattr(torch.cuda, "get_device_name", lambda number: "second device")
        patch.setattr(devices, "is_present", lambda device: device in ("cpu", NAME))
        yield NAME
