"""The networks of the metrics: LPIPS and a classifier, each loaded once, on first use.

Only VGG16 can be downloaded; the weights of the others are in the repository.
"""

from __future__ import annotations

import math
import os
import pickle
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import interpolate

from engine.environment import ROOT
from engine.errors import Damaged, LeakLensError, MissingData, refusal
from engine.vision import torchvision

ASSETS = ROOT / "assets"
FEATURES = ASSETS / "alexnet_features_fp16.safetensors"
CLASSIFIER = ASSETS / "squeezenet1_1_fp16.safetensors"
VGG16 = "vgg16-397923af.pth"  # torchvision's name for the file
RESTORE = "Restore this file from the repository"
REFETCH = "Delete this file and fetch it again"
MIN_SIDE = 64  # pixels; smaller pictures are enlarged for LPIPS, because its last layers would have too few pixels


# --- the networks ------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def lpips_alex() -> nn.Module:
    """LPIPS on AlexNet, frozen.

    From two batches of pictures (n, 3, height, width) in [-1, 1], sides of 31 or more, to distances (n, 1, 1, 1).
    """
    damaged = Damaged(f"{FEATURES.name}: does not hold the convolutions of AlexNet", RESTORE)
    return _load_lpips("alex", alexnet_features(FEATURES), damaged)


@lru_cache(maxsize=1)
def lpips_vgg() -> nn.Module:
    """The same on VGG16, for sides of 16 or more."""
    file = vgg16_file()
    damaged = Damaged(f"{file}: does not hold the convolutions of VGG16", REFETCH)
    return _load_lpips("vgg", vgg16_weights(file), damaged)


@lru_cache(maxsize=1)
def squeezenet() -> nn.Module:
    """SqueezeNet 1.1, frozen: from pictures (n, 3, height, width), normalised as for ImageNet, to 1000 logits."""
    weights = asset_weights(CLASSIFIER, "SqueezeNet")
    with _initialised_quietly():
        module: nn.Module = torchvision().models.squeezenet1_1(weights=None)
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        raise Damaged(f"{CLASSIFIER.name}: does not hold the weights of SqueezeNet 1.1", RESTORE) from error
    return module.requires_grad_(False).eval()


def _load_lpips(backbone: str, weights: Mapping[str, Tensor], damaged: Damaged) -> nn.Module:
    torchvision()  # must come first: importing lpips can fail without it
    with _initialised_quietly():
        import lpips

        module: Any = lpips.LPIPS(net=backbone, pnet_rand=True, verbose=False)
    try:
        # `slice2.3.weight` of lpips is `features.3.weight` of torchvision
        renamed = {name: weights["features." + name.partition(".")[2]] for name in module.net.state_dict()}
        module.net.load_state_dict(renamed)
    except (KeyError, RuntimeError) as error:
        raise damaged from error
    frozen: nn.Module = module.requires_grad_(False).eval()
    return frozen


@contextmanager
def _initialised_quietly() -> Iterator[None]:
    """Keeps the global generator and hides warnings while a constructor draws weights that are replaced afterwards."""
    with warnings.catch_warnings(), torch.random.fork_rng(devices=()):
        warnings.simplefilter("ignore")
        yield


# --- files of weights --------------------------------------------------------------------------------------


def missing_asset(file: Path, network: str) -> MissingData | None:
    """The error for a file of LeakLens that is not there; None if it is."""
    if file.is_file():
        return None
    return MissingData(f"{network}: assets/{file.name} is not there", RESTORE)


def asset_weights(file: Path, network: str) -> dict[str, Tensor]:
    """The weights in a file of LeakLens, in single precision."""
    missing = missing_asset(file, network)
    if missing:
        raise missing
    try:
        return {name: tensor.float() for name, tensor in load_file(file).items()}
    except (OSError, SafetensorError) as error:
        raise Damaged(f"{file.name}: cannot be read: {error}", RESTORE) from error


def unreadable_asset(file: Path, network: str) -> LeakLensError | None:
    """The error for a file of LeakLens that is missing or damaged; it reads no weights, so it is fast."""
    missing = missing_asset(file, network)
    if missing:
        return missing
    try:
        with safe_open(file, "pt"):
            return None
    except (OSError, SafetensorError) as error:
        return Damaged(f"{file.name}: cannot be read: {error}", RESTORE)


def alexnet_features(file: Path) -> dict[str, Tensor]:
    """The stored convolutions of AlexNet, in single precision."""
    return asset_weights(file, "LPIPS")


def vgg16_file() -> Path:
    """Where torchvision keeps the weights that it downloaded."""
    return Path(torch.hub.get_dir()) / "checkpoints" / VGG16


def vgg16_missing() -> MissingData | None:
    """The error where the weights of VGG16 are not there and may not be downloaded; None where they are usable."""
    file = vgg16_file()
    if os.path.isfile(file) or os.environ.get("LEAKLENS_DOWNLOAD") == "1":
        return None
    return MissingData(
        f"LPIPS: torchvision's weights of VGG16 are not on this machine (looked in {file.parent})",
        f"Put {VGG16} (528 MB) into {file.parent}, or set LEAKLENS_DOWNLOAD=1; `lpips` needs neither",
    )


def vgg16_weights(file: Path) -> Mapping[str, Tensor]:
    """The weights in torch's cache; downloaded into it once where that is allowed."""
    missing = vgg16_missing()
    if missing:
        raise missing
    url = torchvision().models.VGG16_Weights.IMAGENET1K_V1.url
    cached = os.path.isfile(file)
    try:
        weights: Any = torch.hub.load_state_dict_from_url(
            url, str(file.parent), "cpu", progress=False, check_hash=True, weights_only=True
        )
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        if cached:
            raise Damaged(f"{file}: cannot be read", REFETCH) from error
        remedy = f"Put {file.name} into {file.parent}"
        raise MissingData(f"LPIPS: the download of VGG16 failed: {error}", remedy) from error
    return weights if isinstance(weights, Mapping) else {}


# --- their input -------------------------------------------------------------------------------------------


def three_channels(metric: str, picture: Tensor) -> Tensor:
    """A picture (channels, height, width) as (1, 3, height, width) in single precision; grey fills all three."""
    if len(picture) not in (1, 3):
        raise refusal(f"{metric}: pictures", "must have 1 or 3 channels", len(picture))
    return picture.float().expand(3, -1, -1).unsqueeze(0)


def lpips_embedding(module: nn.Module, pictures: Tensor) -> Tensor:
    """Pictures (n, channels, height, width) in [0, 1] as vectors (n, d): squared distances between them are LPIPS.

    One vector serves all comparisons of a picture. `module` runs its network at every comparison.
    """
    lpips: Any = module
    sides = [max(side, MIN_SIDE) for side in pictures.shape[2:]]
    coloured = pictures.float().expand(-1, 3, -1, -1)
    inputs = interpolate(coloured, sides, mode="bilinear", align_corners=False) * 2 - 1
    layers = []
    with torch.no_grad():
        for features, linear in zip(lpips.net(lpips.scaling_layer(inputs)), lpips.lins, strict=True):
            channels = linear.model[-1].weight.flatten().sqrt().view(1, -1, 1, 1)
            unit = features / (features.norm(dim=1, keepdim=True) + 1e-10)
            places = features.shape[2] * features.shape[3]
            layers.append((unit * channels / math.sqrt(places)).flatten(1))
    return torch.cat(layers, dim=1)


def lpips_distance(module: nn.Module, metric: str, guess: Tensor, truth: Tensor) -> float:
    """LPIPS of two pictures (channels, height, width) in [0, 1]; a side under 64 pixels is enlarged to 64, bilinear."""
    sides = [max(side, MIN_SIDE) for side in truth.shape[1:]]
    inputs = []
    for picture in (guess, truth):
        enlarged = interpolate(three_channels(metric, picture), sides, mode="bilinear", align_corners=False)
        inputs.append(enlarged * 2 - 1)
    with torch.no_grad():
        return float(module(*inputs))
