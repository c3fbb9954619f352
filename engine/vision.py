"""The lazy import of torchvision, which also works with a CPU build of torch, where its operators are missing."""

from __future__ import annotations

import importlib
import threading
from types import ModuleType

import torch

_lock = threading.Lock()
_libraries: list[torch.library.Library] = []  # torch removes the operators of a library that is garbage-collected

OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


def torchvision() -> ModuleType:
    """The package. With a CPU build of torch, its import fails until the operators that it needs are declared."""
    with _lock:
        try:
            return importlib.import_module("torchvision")
        except RuntimeError as error:
            if _libraries or "nms" not in str(error):
                raise
        library = torch.library.Library("torchvision", "DEF")
        for schema in OPERATORS:
            library.define(schema)
        _libraries.append(library)
        return importlib.import_module("torchvision")
