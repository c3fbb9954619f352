"""LPIPS on the bundled AlexNet features: loaded once, on first use, without a download."""

from __future__ import annotations

import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from engine.errors import Damaged, MissingData
from engine.vision import torchvision

FEATURES = Path(__file__).resolve().parent.parent / "assets" / "alexnet_features_fp16.safetensors"
RESTORE = "Restore this file from the repository"


@lru_cache(maxsize=1)
def lpips_alex() -> Any:
    """A frozen module: pictures (n, 3, height, width) in [-1, 1], sides of 31 or more, to distances (n, 1, 1, 1)."""
    torchvision()  # first: without it, importing lpips may fail
    with warnings.catch_warnings(), torch.random.fork_rng(devices=()):  # first weights are drawn, then replaced
        warnings.simplefilter("ignore")
        import lpips

        module = lpips.LPIPS(net="alex", pnet_rand=True, verbose=False)
    features = alexnet_features(FEATURES)
    try:
        # `slice2.3.weight` here is `features.3.weight` there
        own = {name: features["features." + name.partition(".")[2]] for name in module.net.state_dict()}
        module.net.load_state_dict(own)
    except (KeyError, RuntimeError) as error:
        raise Damaged(f"{FEATURES.name}: does not hold the convolutions of AlexNet", RESTORE) from error
    return module.requires_grad_(False).eval()


def alexnet_features(file: Path) -> dict[str, Tensor]:
    """The stored convolutions in single precision."""
    if not file.is_file():
        raise MissingData(f"LPIPS: assets/{file.name} is not there", RESTORE)
    try:
        return {name: tensor.float() for name, tensor in load_file(file).items()}
    except (OSError, SafetensorError) as error:
        raise Damaged(f"{file.name}: cannot be read: {error}", RESTORE) from error
