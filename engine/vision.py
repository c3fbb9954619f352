"""The door to torchvision: imported late, and also where its compiled operators are missing."""

from __future__ import annotations

import importlib
import threading
from types import ModuleType

import torch

_lock = threading.Lock()
_kept: list[torch.library.Library] = []  # a library that is let go takes its operators along

OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


def torchvision() -> ModuleType:
    """The package; on a CPU build of torch its import fails until the operators it asks for are at least declared."""
    with _lock:
        try:
            return importlib.import_module("torchvision")
        except RuntimeError as error:
            if _kept or "nms" not in str(error):
                raise
        library = torch.library.Library("torchvision", "DEF")
        for schema in OPERATORS:
            library.define(schema)
        _kept.append(library)
        return importlib.import_module("torchvision")
