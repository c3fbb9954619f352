"""The networks that look at pictures: LPIPS and a classifier, loaded once, on first use; only VGG16 is ever fetched."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import interpolate

from engine.environment import ROOT
from engine.errors import Damaged, MissingData, refusal
from engine.vision import torchvision

ASSETS = ROOT / "assets"
FEATURES = ASSETS / "alexnet_features_fp16.safetensors"
CLASSIFIER = ASSETS / "squeezenet1_1_fp16.safetensors"
VGG16 = "vgg16-397923af.pth"  # as torchvision names it
RESTORE, REFETCH = "Restore this file from the repository", "Delete this file and fetch it again"
LEAST = 64  # pixels a side; LPIPS gets smaller pictures enlarged, else too little is left of them in its last layers


# --- the networks ------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def lpips_alex() -> nn.Module:
    """A frozen module: pictures (n, 3, height, width) in [-1, 1], sides of 31 or more, to distances (n, 1, 1, 1)."""
    damaged = Damaged(f"{FEATURES.name}: does not hold the convolutions of AlexNet", RESTORE)
    return _lpips("alex", alexnet_features(FEATURES), damaged)


@lru_cache(maxsize=1)
def lpips_vgg() -> nn.Module:
    """The same on the convolutions of VGG16, sides of 16 or more."""
    file = vgg16_file()
    return _lpips("vgg", vgg16_weights(file), Damaged(f"{file}: does not hold the convolutions of VGG16", REFETCH))


@lru_cache(maxsize=1)
def squeezenet() -> nn.Module:
    """SqueezeNet 1.1, frozen: pictures (n, 3, height, width), normalised as for ImageNet, to 1000 logits."""
    found = stored(CLASSIFIER, "SqueezeNet")
    with _replaced_weights():
        module: nn.Module = torchvision().models.squeezenet1_1(weights=None)
    try:
        module.load_state_dict(found)
    except RuntimeError as error:
        raise Damaged(f"{CLASSIFIER.name}: does not hold the weights of SqueezeNet 1.1", RESTORE) from error
    return module.requires_grad_(False).eval()


def _lpips(net: str, found: Mapping[str, Tensor], damaged: Damaged) -> nn.Module:
    torchvision()  # first: without it, importing lpips may fail
    with _replaced_weights():
        import lpips

        module: Any = lpips.LPIPS(net=net, pnet_rand=True, verbose=False)
    try:
        # `slice2.3.weight` here is `features.3.weight` there
        own = {name: found["features." + name.partition(".")[2]] for name in module.net.state_dict()}
        module.net.load_state_dict(own)
    except (KeyError, RuntimeError) as error:
        raise damaged from error
    frozen: nn.Module = module.requires_grad_(False).eval()
    return frozen


@contextmanager
def _replaced_weights() -> Iterator[None]:
    """First weights are drawn and then replaced: nobody's chance moves, and nothing is said about it."""
    with warnings.catch_warnings(), torch.random.fork_rng(devices=()):
        warnings.simplefilter("ignore")
        yield


# --- their files -------------------------------------------------------------------------------------------


def missing(file: Path, who: str) -> MissingData | None:
    """What to say where a file that ships with LeakLens is not there."""
    return None if file.is_file() else MissingData(f"{who}: assets/{file.name} is not there", RESTORE)


def stored(file: Path, who: str) -> dict[str, Tensor]:
    """The weights of a file that ships with LeakLens, in single precision."""
    if trouble := missing(file, who):
        raise trouble
    try:
        return {name: tensor.float() for name, tensor in load_file(file).items()}
    except (OSError, SafetensorError) as error:
        raise Damaged(f"{file.name}: cannot be read: {error}", RESTORE) from error


def alexnet_features(file: Path) -> dict[str, Tensor]:
    """The stored convolutions in single precision."""
    return stored(file, "LPIPS")


def vgg16_file() -> Path:
    """Where torchvision keeps the weights it fetched."""
    return Path(torch.hub.get_dir()) / "checkpoints" / VGG16


def vgg16_missing() -> MissingData | None:
    """What to say where the weights of VGG16 are not there and may not be fetched."""
    file = vgg16_file()
    if os.path.isfile(file) or os.environ.get("LEAKLENS_DOWNLOAD") == "1":
        return None
    return MissingData(
        f"LPIPS: torchvision's weights of VGG16 are not on this machine (looked in {file.parent})",
        f"Put {VGG16} (528 MB) into {file.parent}, or set LEAKLENS_DOWNLOAD=1; `lpips` needs neither",
    )


def vgg16_weights(file: Path) -> Mapping[str, Tensor]:
    """From torch's cache; fetched into it once where that is allowed."""
    if trouble := vgg16_missing():
        raise trouble
    url, here = torchvision().models.VGG16_Weights.IMAGENET1K_V1.url, os.path.isfile(file)
    try:
        found: Any = torch.hub.load_state_dict_from_url(
            url, str(file.parent), "cpu", progress=False, check_hash=True, weights_only=True
        )
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        if here:
            raise Damaged(f"{file}: cannot be read", REFETCH) from error
        remedy = f"Put {file.name} into {file.parent}"
        raise MissingData(f"LPIPS: the download of VGG16 failed: {error}", remedy) from error
    return found if isinstance(found, Mapping) else {}


# --- what they are shown -----------------------------------------------------------------------------------


def coloured(who: str, picture: Tensor) -> Tensor:
    """A picture (channels, height, width) as (1, 3, height, width) in single precision; grey is said three times."""
    if len(picture) not in (1, 3):
        raise refusal(f"{who}: pictures", "must have 1 or 3 channels", len(picture))
    return picture.float().expand(3, -1, -1).unsqueeze(0)


def distance(module: nn.Module, who: str, guess: Tensor, truth: Tensor) -> float:
    """LPIPS of two pictures (channels, height, width) in [0, 1]; a side under 64 pixels is enlarged to 64, bilinear."""
    sides = [max(side, LEAST) for side in truth.shape[1:]]
    one, other = (
        interpolate(coloured(who, picture), sides, mode="bilinear", align_corners=False) * 2 - 1
        for picture in (guess, truth)
    )
    with torch.no_grad():
        return float(module(one, other))
