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

from engine.datasets.files import FileLayout, NpzFile
from engine.datasets.text_files import LabelledLines
from engine.environment import ROOT
from engine.errors import Damaged, MissingData
from engine.part import Part, Problem
from engine.registry import Shelf
from engine.vision import torchvision

REFETCH = "Restore these files, or fetch them again"


@dataclass(frozen=True)
class DataFolders:
    """Where data sets are looked for on this machine."""

    assets: Path  # the bundled subsets
    folders: tuple[Path, ...]  # full sets: the user's own folders, then the home's, which takes downloads
    system: Path = Path("/usr/share/datasets")  # full sets that came as a package of the operating system
    download: bool = False

    @classmethod
    def here(cls, environ: Mapping[str, str] | None = None) -> DataFolders:
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
class LoadedData:
    """A data set in memory, as its files have it."""

    train_x: Tensor  # (n, channels, height, width), float32 in [0, 1]; or rows of words (n, length), int64
    train_y: Tensor  # (n,), int64
    test_x: Tensor
    test_y: Tensor
    classes: tuple[str, ...]
    mean: tuple[float, ...]  # per channel; 0 and 1 where normalisation is off, nothing where there are no channels
    std: tuple[float, ...]
    origin: str

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.train_x.shape[1:])

    def normal_(self, x: Tensor) -> Tensor:
        """Inputs as a model reads them, in place: each channel shifted and scaled; words stay what they are."""
        if self.mean:
            mean, std = (torch.tensor(side).view(-1, 1, 1) for side in (self.mean, self.std))
            x.sub_(mean).div_(std)
        return x


@dataclass(frozen=True, eq=False)
class DatasetFacts:
    """What a forecast needs of a data set: no input among it."""

    shape: tuple[int, ...]
    classes: tuple[str, ...]
    train_y: Tensor  # (n,), int64
    test_y: Tensor
    mean: tuple[float, ...]
    std: tuple[float, ...]


class Dataset(Part):
    """A set of labelled inputs, bundled with LeakLens or looked for on this machine."""

    noun: ClassVar[str] = "pictures"
    bundle: ClassVar[str] = ""  # file name in assets/; empty where nothing ships
    torch_name: ClassVar[str] = ""  # what torchvision calls the set, where it can fetch it
    obtain: ClassVar[str] = ""  # how to get what does not ship

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one input."""
        raise NotImplementedError

    @property
    def classes(self) -> tuple[str, ...]:
        raise NotImplementedError

    @property
    def law(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and deviation by which each channel is shifted and scaled; nothing where there are no channels."""
        return (), ()

    @property
    def ships(self) -> bool:
        """Whether what is asked for came with LeakLens."""
        return bool(self.bundle)

    @property
    def part(self) -> str:
        """How much of the published set this is."""
        return "bundled part" if self.ships else "full set"

    def whole(self) -> Dataset | None:
        """The same set as it must be fetched; None where all of it ships."""
        return None if self.ships else self

    def bundled(self, place: Path) -> FileLayout:
        """How the file in assets/ is laid out."""
        return NpzFile(place)

    def layouts(self, places: DataFolders) -> tuple[FileLayout, ...]:
        """Where the set may lie that does not ship, best first."""
        raise NotImplementedError

    def load(self, places: DataFolders | None = None) -> LoadedData:
        """Everything; read once per process."""
        layout = self._layout(places or DataFolders.here())
        train_x, train_y, test_x, test_y = _inputs(layout, self.shape, len(self.classes))
        origin = f"{self.title}, {self.part}: {len(train_y):,} training and {len(test_y):,} test {self.noun}"
        return LoadedData(train_x, train_y, test_x, test_y, self.classes, *self.law, origin)

    def facts(self, places: DataFolders | None = None) -> DatasetFacts:
        """Shape, classes and labels; no input is decoded, and the files are read once per process."""
        train_y, test_y = _labels(self._layout(places or DataFolders.here()), len(self.classes))
        return DatasetFacts(self.shape, self.classes, train_y, test_y, *self.law)

    def places(self, places: DataFolders | None = None) -> list[tuple[str, bool]]:
        """Every place that is looked at, and whether this set is there: what `doctor` shows."""
        return [(str(layout.place), layout.found()) for layout in self._candidates(places or DataFolders.here())]

    def problems(self, spec: Any) -> tuple[Problem, ...]:
        del spec
        places = DataFolders.here()
        if places.download and self.torch_name and not self.ships:
            return ()
        try:
            self._layout(places)
        except MissingData as missing:
            return (Problem(missing.message, missing.remedy),)
        return ()

    def _candidates(self, places: DataFolders) -> tuple[FileLayout, ...]:
        return (self.bundled(places.assets / self.bundle),) if self.ships else self.layouts(places)

    def _layout(self, places: DataFolders) -> FileLayout:
        """The first place that holds the set; a download is the last resort and must be allowed."""
        candidates = self._candidates(places)
        here = next((layout for layout in candidates if layout.found()), None)
        if here is None and self.torch_name and places.download and not self.ships:
            self._fetch(places.folders[-1])
            here = next((layout for layout in candidates if layout.found()), None)
        if here is not None:
            return here
        if self.ships:
            raise MissingData(
                f"{self.name}: assets/{self.bundle} is not there", "Restore this file from the repository"
            )
        folders = dict.fromkeys((*places.folders, places.system))
        looked = ", ".join(str(root) for root in folders if any(one.place.is_relative_to(root) for one in candidates))
        remedies = [self.obtain, "set LEAKLENS_DOWNLOAD=1"] if self.torch_name else [self.obtain]
        if self.bundle:
            remedies.append("leave `full` off")
        raise MissingData(
            f"{self.name}: the full set is not on this machine (looked in {looked})", "; or ".join(remedies)
        )

    def _fetch(self, folder: Path) -> None:
        fetch = getattr(torchvision().datasets, self.torch_name)
        try:
            for train in (True, False):
                fetch(folder, train=train, download=True, **self._wanted())
        except (OSError, RuntimeError) as error:
            raise MissingData(f"{self.name}: the download failed: {error}", self.obtain) from error

    def _wanted(self) -> Mapping[str, Any]:
        """What torchvision must be told beside the folder."""
        return {}


class PartlyBundled(Dataset):
    """A set of which a part ships and the whole may be on this machine."""

    full: bool = Field(
        False, title="full set", description="The whole set instead of the bundled part; it must be on this machine."
    )

    @property
    def ships(self) -> bool:
        return not self.full

    def whole(self) -> Dataset:
        return self.with_(full=True)


class PictureDataset(Dataset):
    """A set of labelled pictures."""

    centre: ClassVar[tuple[float, ...]]  # mean and deviation of a pixel per channel, over the full training split
    spread: ClassVar[tuple[float, ...]]

    normalise: bool = Field(
        True, title="normalise", description="Shift and scale every channel to mean 0 and deviation 1."
    )

    @property
    def law(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return (self.centre, self.spread) if self.normalise else ((0.0,) * len(self.centre), (1.0,) * len(self.spread))


class TextDataset(Dataset):
    """A set of labelled sentences: each is a row of words, told as numbers, the most frequent word first."""

    noun: ClassVar[str] = "sentences"

    length: int = Field(
        40, ge=4, le=256, title="words read", description="Words and signs of a sentence that are read, from its begin."
    )

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.length,)

    def bundled(self, place: Path) -> FileLayout:
        return LabelledLines(place, self.length)

    def problems(self, spec: Any) -> tuple[Problem, ...]:
        found = super().problems(spec)
        if spec is None or spec.method.unit() is None:
            return found
        reason = f"{self.name}: which words are frequent is counted over the training sentences of all clients"
        return (*found, Problem(reason, "Read every ε as if that list of words were public", fatal=False))


@lru_cache(maxsize=2)
def _inputs(layout: FileLayout, shape: tuple[int, ...], classes: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    train_x, train_y, test_x, test_y = (torch.tensor(np.ascontiguousarray(array)) for array in layout.read())
    for x, y in ((train_x, train_y), (test_x, test_y)):
        _check(y, classes, layout)
        if tuple(x.shape) != (len(y), *shape):
            law = f"must hold one label for each picture of shape {shape}"
            raise Damaged(f"{layout.place.name}: {law} ({layout.place})", REFETCH)
    return _read(train_x), train_y.long(), _read(test_x), test_y.long()


def _read(x: Tensor) -> Tensor:
    """Bytes are pixels, from 0 to 1; other numbers are words."""
    return x.float().div_(255) if x.dtype == torch.uint8 else x


@lru_cache(maxsize=8)
def _labels(layout: FileLayout, classes: int) -> tuple[Tensor, Tensor]:
    train_y, test_y = (torch.tensor(array).long() for array in layout.labels())
    for y in (train_y, test_y):
        _check(y, classes, layout)
    return train_y, test_y


def _check(labels: Tensor, classes: int, layout: FileLayout) -> None:
    if labels.dim() != 1 or not len(labels) or int(labels.max()) >= classes:
        raise Damaged(
            f"{layout.place.name}: labels must be a row of whole numbers below {classes} ({layout.place})", REFETCH
        )


DATASETS: Shelf[Dataset] = Shelf("engine.datasets", "dataset")
