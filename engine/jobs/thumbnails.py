"""Small pictures for a page: those of a data set and those people brought, as a model would see them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from engine.errors import refusal
from engine.jobs.home import Home
from engine.jobs.uploads import UploadedPictures


@dataclass(frozen=True)
class Thumbnail:
    """One picture by the name that an attack knows it by."""

    name: str  # test-7, train-7 or own-NAME-LABEL
    png: str  # in base64
    label: int
    title: str  # what it shows: the word for its label


def thumbnails(dataset: Mapping[str, Any] | str, names: Sequence[str], home: Home) -> tuple[Thumbnail, ...]:
    """The pictures of these names, in their order."""
    found = _dataset(dataset)
    return tuple(_own(found, name, home) if name.startswith("own-") else _listed(found, name) for name in names)


def classes(dataset: Mapping[str, Any] | str) -> tuple[str, ...]:
    """What the pictures of a data set may show."""
    return tuple(_dataset(dataset).classes)


def _dataset(dataset: Mapping[str, Any] | str) -> Any:
    from engine.specs.run import SHELVES

    return SHELVES["dataset"].make(dataset)


def _named(name: str) -> tuple[str, int, str, int]:
    from engine.specs.attack import PICTURE

    match = PICTURE.fullmatch(name)
    if match is None:
        raise refusal("picture", "must be like test-7, train-7 or own-NAME-LABEL", name)
    split, place, own, label = match.groups()
    return split or "", int(place or 0), own or "", int(label or 0)


@lru_cache(maxsize=500)
def _listed(dataset: Any, name: str) -> Thumbnail:
    from engine import images

    split, place, _, _ = _named(name)
    data = dataset.load()
    x, y = (data.train_x, data.train_y) if split == "train" else (data.test_x, data.test_y)
    if place >= len(y):
        raise refusal("picture", f"must be {split}-0 to {split}-{len(y) - 1}", name)
    return _thumb(name, images.png(x[place]), int(y[place]), data.classes)


def _own(dataset: Any, name: str, home: Home) -> Thumbnail:
    """Read again every time: it may have been deleted."""
    from engine import images

    _, _, own, label = _named(name)
    if label >= len(dataset.classes):
        raise refusal("picture", f"a label must be between 0 and {len(dataset.classes) - 1}", name)
    seen = images.pixels(UploadedPictures(home).read(own), dataset.shape)
    return _thumb(name, images.png(seen), label, dataset.classes)


def _thumb(name: str, png: bytes, label: int, classes: Sequence[str]) -> Thumbnail:
    return Thumbnail(name, base64.b64encode(png).decode("ascii"), label, classes[label])
