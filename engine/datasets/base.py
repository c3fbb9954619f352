"""What every data set declares: its names and constants, and the places where its files may lie."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from engine.errors import Damaged, MissingData
from engine.formats import Bundle, Layout
from engine.part import Part, Problem
from engine.registry import Shelf
from engine.vision import torchvision

REFETCH = "Restore these files, or fetch them again"
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Places:
    """Where data sets are looked for on this machine."""

    assets: Path  # the bundled subsets
    folders: tuple[Path, ...]  # full sets: the user's own folders, then the home's, which takes downloads
    system: Path = Path("/usr/share/datasets")  # full sets that came as a package of the operating system
    download: bool = False

    @classmethod
    def here(cls, environ: Mapping[str, str] | None = None) -> Places:
        """As the environment says: LEAKLENS_DATA, LEAKLENS_HOME and LEAKLENS_DOWNLOAD."""
        environ = os.environ if environ is None else environ
        # os.path leaves the ~ of somebody unknown as it is written: nothing is found there, and the doctor shows it
        own = [
            Path(os.path.expanduser(folder))
            for folder in environ.get("LEAKLENS_DATA", "").split(os.pathsep)
            if folder.strip()
        ]
        home = Path(os.path.expanduser(environ.get("LEAKLENS_HOME") or ROOT / ".leaklens"))
        return cls(ROOT / "assets", (*own, home / "data"), download=environ.get("LEAKLENS_DOWNLOAD") == "1")


@dataclass(frozen=True, eq=False)
class Data:
    """A data set in memory; (x - mean) / std is left to whoever trains."""

    train_x: Tensor  # (n, channels, height, width), float32 in [0, 1]
    train_y: Tensor  # (n,), int64
    test_x: Tensor
    test_y: Tensor
    classes: tuple[str, ...]
    mean: tuple[float, ...]  # per channel; 0 and 1 where normalisation is off
    std: tuple[float, ...]
    origin: str

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.train_x.shape[1:])


@dataclass(frozen=True, eq=False)
class Facts:
    """What a forecast needs of a data set: no picture among it."""

    shape: tuple[int, ...]
    classes: tuple[str, ...]
    train_y: Tensor  # (n,), int64
    test_y: Tensor


class Dataset(Part):
    """A set of labelled pictures, bundled in part and whole where this machine has it."""

    shape: ClassVar[tuple[int, ...]]
    classes: ClassVar[tuple[str, ...]]
    centre: ClassVar[tuple[float, ...]]  # mean and deviation of a pixel per channel, over the full training split
    spread: ClassVar[tuple[float, ...]]
    bundle: ClassVar[str]  # file name in assets/
    torch_name: ClassVar[str]  # what torchvision calls the set
    obtain: ClassVar[str]  # how to get the full set

    full: bool = Field(
        False, title="full set", description="The whole set instead of the bundled part; it must be on this machine."
    )
    normalise: bool = Field(
        True, title="normalise", description="Shift and scale every channel to mean 0 and deviation 1."
    )

    def layouts(self, places: Places) -> tuple[Layout, ...]:
        """Where the full set may lie, best first."""
        raise NotImplementedError

    def load(self, places: Places | None = None) -> Data:
        """Everything, with pixels in [0, 1]; read once per process."""
        layout = self._layout(places or Places.here())
        train_x, train_y, test_x, test_y = _pictures(layout, self.shape, len(self.classes))
        mean = self.centre if self.normalise else (0.0,) * len(self.centre)
        std = self.spread if self.normalise else (1.0,) * len(self.spread)
        part = "full set" if self.full else "bundled part"
        origin = f"{self.title}, {part}: {len(train_y):,} training and {len(test_y):,} test pictures"
        return Data(train_x, train_y, test_x, test_y, self.classes, mean, std, origin)

    def facts(self, places: Places | None = None) -> Facts:
        """Shape, classes and labels; no picture is decoded, and the files are read once per process."""
        train_y, test_y = _labels(self._layout(places or Places.here()), len(self.classes))
        return Facts(self.shape, self.classes, train_y, test_y)

    def places(self, places: Places | None = None) -> list[tuple[str, bool]]:
        """Every place that is looked at, and whether this set is there: what `doctor` shows."""
        return [(str(layout.place), layout.found()) for layout in self._candidates(places or Places.here())]

    def problems(self, spec: Any) -> tuple[Problem, ...]:
        del spec
        places = Places.here()
        if places.download and self.full:
            return ()
        try:
            self._layout(places)
        except MissingData as missing:
            return (Problem(missing.message, missing.remedy),)
        return ()

    def _candidates(self, places: Places) -> tuple[Layout, ...]:
        return self.layouts(places) if self.full else (Bundle(places.assets / self.bundle),)

    def _layout(self, places: Places) -> Layout:
        """The first place that holds the set; a download is the last resort and must be allowed."""
        candidates = self._candidates(places)
        here = next((layout for layout in candidates if layout.found()), None)
        if here is None and self.full and places.download:
            self._fetch(places.folders[-1])
            here = next((layout for layout in candidates if layout.found()), None)
        if here is not None:
            return here
        if not self.full:
            raise MissingData(
                f"{self.name}: assets/{self.bundle} is not there", "Restore this file from the repository"
            )
        folders = dict.fromkeys((*places.folders, places.system))
        looked = ", ".join(str(root) for root in folders if any(one.place.is_relative_to(root) for one in candidates))
        raise MissingData(
            f"{self.name}: the full set is not on this machine (looked in {looked})",
            f"{self.obtain}; or set LEAKLENS_DOWNLOAD=1; or leave `full` off",
        )

    def _fetch(self, folder: Path) -> None:
        fetch = getattr(torchvision().datasets, self.torch_name)
        try:
            for train in (True, False):
                fetch(folder, train=train, download=True)
        except (OSError, RuntimeError) as error:
            raise MissingData(f"{self.name}: the download failed: {error}", self.obtain) from error


@lru_cache(maxsize=2)
def _pictures(layout: Layout, shape: tuple[int, ...], classes: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    train_x, train_y, test_x, test_y = (torch.tensor(np.ascontiguousarray(array)) for array in layout.read())
    for x, y in ((train_x, train_y), (test_x, test_y)):
        _check(y, classes, layout)
        if tuple(x.shape) != (len(y), *shape):
            law = f"must hold one label for each picture of shape {shape}"
            raise Damaged(f"{layout.place.name}: {law} ({layout.place})", REFETCH)
    return train_x.float().div_(255), train_y.long(), test_x.float().div_(255), test_y.long()


@lru_cache(maxsize=8)
def _labels(layout: Layout, classes: int) -> tuple[Tensor, Tensor]:
    train_y, test_y = (torch.tensor(array).long() for array in layout.labels())
    for y in (train_y, test_y):
        _check(y, classes, layout)
    return train_y, test_y


def _check(labels: Tensor, classes: int, layout: Layout) -> None:
    if labels.dim() != 1 or not len(labels) or int(labels.max()) >= classes:
        raise Damaged(
            f"{layout.place.name}: labels must be a row of whole numbers below {classes} ({layout.place})", REFETCH
        )


DATASETS: Shelf[Dataset] = Shelf("engine.datasets", "dataset")
