"""Small pictures for a page, from a data set or uploaded, with the pixels that a model receives."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from engine.errors import refusal
from engine.jobs.home import Home
from engine.jobs.uploads import UploadedPictures
from engine.leakage import portrait


@dataclass(frozen=True)
class Thumbnail:
    """One picture, under the name that an attack spec uses for it."""

    name: str  # test-7, train-7, portrait-LABEL or own-NAME-LABEL
    png: str  # in base64
    label: int
    title: str  # the class name of its label


def thumbnails(dataset: Mapping[str, Any] | str, names: Sequence[str], home: Home) -> tuple[Thumbnail, ...]:
    """The pictures with these names, in the same order."""
    part = _dataset(dataset)
    pictures = []
    for name in names:
        of_dataset = name.startswith(("train-", "test-"))
        pictures.append(_from_dataset(part, name) if of_dataset else _photo(part, name, home))
    return tuple(pictures)


def classes(dataset: Mapping[str, Any] | str) -> tuple[str, ...]:
    """The class names of a data set."""
    return tuple(_dataset(dataset).classes)


def _dataset(dataset: Mapping[str, Any] | str) -> Any:
    from engine.specs.run import SHELVES

    return SHELVES["dataset"].make(dataset)


def _parsed(name: str) -> tuple[str, int, str, int]:
    """Split, index, upload name and label; what the name does not hold is empty or 0."""
    from engine.specs.attack import PICTURE, PICTURE_NAMES

    match = PICTURE.fullmatch(name)
    if match is None:
        raise refusal("picture", PICTURE_NAMES, name)
    split, index, upload, label = match.groups()
    return split or "", int(index or 0), upload or "", int(label or 0)


@lru_cache(maxsize=500)
def _from_dataset(dataset: Any, name: str) -> Thumbnail:
    from engine import images

    split, index, _, _ = _parsed(name)
    data = dataset.load()
    x, y = (data.train_x, data.train_y) if split == "train" else (data.test_x, data.test_y)
    if index >= len(y):
        raise refusal("picture", f"must be {split}-0 to {split}-{len(y) - 1}", name)
    return _thumbnail(name, images.to_png(x[index]), int(y[index]), data.classes)


def _photo(dataset: Any, name: str, home: Home) -> Thumbnail:
    """The portrait or an uploaded picture. Not cached, because the visitor may have removed the picture meanwhile."""
    from engine import images

    _, _, upload, label = _parsed(name)
    if label >= len(dataset.classes):
        raise refusal("picture", f"a label must be between 0 and {len(dataset.classes) - 1}", name)
    photo = UploadedPictures(home).read(upload) if upload else portrait.read()
    pixels = images.model_input(photo, dataset.shape)
    return _thumbnail(name, images.to_png(pixels), label, dataset.classes)


def _thumbnail(name: str, png: bytes, label: int, classes: Sequence[str]) -> Thumbnail:
    return Thumbnail(name, base64.b64encode(png).decode("ascii"), label, classes[label])
