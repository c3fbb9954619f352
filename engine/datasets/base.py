"""The base classes of data sets: their names and constants, and where their files are looked for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
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

REFETCH = "Restore these files, or download them again"


@dataclass(frozen=True)
class DataFolders:
    """The folders of this machine in which LeakLens looks for data sets."""

    assets: Path  # the bundled subsets
    folders: tuple[Path, ...]  # full sets: the user's own folders, then that of the home, which takes downloads
    system: Path = Path("/usr/share/datasets")  # full sets from packages of the operating system
    download: bool = False

    @classmethod
    def here(cls, environ: Mapping[str, str] | None = None) -> DataFolders:
        """The folders of the environment: LEAKLENS_DATA, LEAKLENS_HOME and LEAKLENS_DOWNLOAD."""
        environ = os.environ if environ is None else environ
        # expanduser keeps the ~ of an unknown user: then no set is found, and the doctor shows the folder as written.
        named = [folder for folder in environ.get("LEAKLENS_DATA", "").split(os.pathsep) if folder.strip()]
        own = [Path(os.path.expanduser(folder)) for folder in named]
        home = Path(os.path.expanduser(environ.get("LEAKLENS_HOME") or ROOT / ".leaklens"))
        return cls(ROOT / "assets", (*own, home / "data"), download=environ.get("LEAKLENS_DOWNLOAD") == "1")


@dataclass(frozen=True, eq=False)
class LoadedData:
    """A data set in memory, with the values of its files."""

    train_x: Tensor  # (n, channels, height, width), float32 in [0, 1]; or rows of words (n, length), int64
    train_y: Tensor  # (n,), int64
    test_x: Tensor
    test_y: Tensor
    classes: tuple[str, ...]
    mean: tuple[float, ...]  # per channel; 0 and 1 without normalisation, empty for text
    std: tuple[float, ...]
    origin: str

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.train_x.shape[1:])

    def normal_(self, x: Tensor) -> Tensor:
        """Normalise each channel of the inputs in place, as models read them. Words stay unchanged."""
        if self.mean:
            mean = torch.tensor(self.mean).view(-1, 1, 1)
            std = torch.tensor(self.std).view(-1, 1, 1)
            x.sub_(mean).div_(std)
        return x


@dataclass(frozen=True, eq=False)
class DatasetFacts:
    """Shape, classes and labels of a data set, without its inputs: enough for a forecast."""

    shape: tuple[int, ...]
    classes: tuple[str, ...]
    train_y: Tensor  # (n,), int64
    test_y: Tensor
    mean: tuple[float, ...]
    std: tuple[float, ...]


class Dataset(Part):
    """A set of labelled inputs that LeakLens bundles or looks for on this machine."""

    noun: ClassVar[str] = "pictures"
    bundle: ClassVar[str] = ""  # file name in assets/; empty if LeakLens bundles nothing
    torchvision_name: ClassVar[str] = ""  # name of the set in torchvision; empty if torchvision cannot download it
    obtain: ClassVar[str] = ""  # how to get what LeakLens does not bundle

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        raise NotImplementedError

    @property
    def classes(self) -> tuple[str, ...]:
        raise NotImplementedError

    @property
    def moments(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation of each channel for the normalisation; empty for text."""
        return (), ()

    @property
    def ships(self) -> bool:
        """Whether LeakLens bundles the requested set."""
        return bool(self.bundle)

    @property
    def part(self) -> str:
        """The part of the published set, in words."""
        return "bundled part" if self.ships else "full set"

    def whole(self) -> Dataset | None:
        """The full set, which must be on this machine; None if LeakLens bundles all of it."""
        return None if self.ships else self

    def bundled(self, path: Path) -> FileLayout:
        """The layout of the file in assets/."""
        return NpzFile(path)

    def layouts(self, locations: DataFolders) -> tuple[FileLayout, ...]:
        """The possible places of a set that is not bundled, best first."""
        raise NotImplementedError

    def load(self, locations: DataFolders | None = None) -> LoadedData:
        """The whole data set. Its files are read once per process."""
        layout = self._layout(locations or DataFolders.here())
        train_x, train_y, test_x, test_y = _inputs(layout, self.shape, len(self.classes))
        origin = f"{self.title}, {self.part}: {len(train_y):,} training and {len(test_y):,} test {self.noun}"
        return LoadedData(train_x, train_y, test_x, test_y, self.classes, *self.moments, origin)

    def facts(self, locations: DataFolders | None = None) -> DatasetFacts:
        """Shape, classes and labels, without decoding an input. The files are read once per process."""
        layout = self._layout(locations or DataFolders.here())
        train_y, test_y = _labels(layout, len(self.classes))
        return DatasetFacts(self.shape, self.classes, train_y, test_y, *self.moments)

    def places(self, locations: DataFolders | None = None) -> list[tuple[str, bool]]:
        """Every possible place of this set, and whether the set is there. The command `doctor` shows them."""
        candidates = self._candidates(locations or DataFolders.here())
        return [(str(layout.path), layout.exists()) for layout in candidates]

    def problems(self, spec: Any) -> tuple[Problem, ...]:
        del spec
        locations = DataFolders.here()
        if self._can_download(locations):
            return ()
        try:
            self._layout(locations)
        except MissingData as error:
            return (Problem(error.message, error.remedy),)
        return ()

    def _candidates(self, locations: DataFolders) -> tuple[FileLayout, ...]:
        if self.ships:
            return (self.bundled(locations.assets / self.bundle),)
        return self.layouts(locations)

    def _layout(self, locations: DataFolders) -> FileLayout:
        """The first place that holds the set. If no place does, the set is downloaded where that is allowed."""
        candidates = self._candidates(locations)
        layout = _first_existing(candidates)
        if layout is None and self._can_download(locations):
            self._download(locations.folders[-1])
            layout = _first_existing(candidates)
        if layout is None:
            raise self._missing(candidates, locations)
        return layout

    def _missing(self, candidates: Sequence[FileLayout], locations: DataFolders) -> MissingData:
        """The error for a set that is in none of the candidate places."""
        if self.ships:
            reason = f"{self.name}: assets/{self.bundle} is not there"
            return MissingData(reason, "Restore this file from the repository")
        searched = []
        for folder in dict.fromkeys((*locations.folders, locations.system)):
            if any(layout.path.is_relative_to(folder) for layout in candidates):
                searched.append(str(folder))
        remedies = [self.obtain]
        if self.torchvision_name:
            remedies.append("set LEAKLENS_DOWNLOAD=1")
        if self.bundle:
            remedies.append("leave `full` off")
        reason = f"{self.name}: the full set is not on this machine (looked in {', '.join(searched)})"
        return MissingData(reason, "; or ".join(remedies))

    def _can_download(self, locations: DataFolders) -> bool:
        return locations.download and bool(self.torchvision_name) and not self.ships

    def _download(self, folder: Path) -> None:
        dataset = getattr(torchvision().datasets, self.torchvision_name)
        try:
            for train in (True, False):
                dataset(folder, train=train, download=True, **self._download_options())
        except (OSError, RuntimeError) as error:
            raise MissingData(f"{self.name}: the download failed: {error}", self.obtain) from error

    def _download_options(self) -> Mapping[str, Any]:
        """Options for torchvision apart from the folder."""
        return {}


class PartlyBundled(Dataset):
    """A data set with a bundled part; the full set may be on this machine."""

    full: bool = Field(
        False, title="full set", description="Use the full set instead of the bundled part; it must be on this machine."
    )

    @property
    def ships(self) -> bool:
        return not self.full

    def whole(self) -> Dataset:
        return self.with_(full=True)


class PictureDataset(Dataset):
    """A set of labelled pictures."""

    # mean and standard deviation of the pixels of each channel, over the full training split
    channel_mean: ClassVar[tuple[float, ...]]
    channel_std: ClassVar[tuple[float, ...]]

    normalise: bool = Field(
        True, title="normalise", description="Shift and scale each channel to mean 0 and deviation 1."
    )

    @property
    def moments(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        if self.normalise:
            return self.channel_mean, self.channel_std
        channels = len(self.channel_mean)
        return (0.0,) * channels, (1.0,) * channels


class TextDataset(Dataset):
    """A set of labelled sentences. Each sentence is a row of word numbers; the most frequent word has the smallest."""

    noun: ClassVar[str] = "sentences"

    length: int = Field(
        40, ge=4, le=256, title="words read", description="Words and signs read of each sentence, from its start."
    )

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.length,)

    def bundled(self, path: Path) -> FileLayout:
        return LabelledLines(path, self.length)

    def problems(self, spec: Any) -> tuple[Problem, ...]:
        problems = super().problems(spec)
        if spec is None or spec.method.unit() is None:
            return problems
        reason = f"{self.name}: which words are frequent is counted over the training sentences of all clients"
        return (*problems, Problem(reason, "Read every ε as if that list of words were public", fatal=False))


def _first_existing(candidates: Sequence[FileLayout]) -> FileLayout | None:
    return next((layout for layout in candidates if layout.exists()), None)


@lru_cache(maxsize=2)
def _inputs(layout: FileLayout, shape: tuple[int, ...], classes: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    train_x, train_y, test_x, test_y = (torch.tensor(np.ascontiguousarray(array)) for array in layout.read())
    for x, y in ((train_x, train_y), (test_x, test_y)):
        _check(y, classes, layout)
        if tuple(x.shape) != (len(y), *shape):
            rule = f"must hold one label for each picture of shape {shape}"
            raise Damaged(f"{layout.path.name}: {rule} ({layout.path})", REFETCH)
    return _scaled(train_x), train_y.long(), _scaled(test_x), test_y.long()


def _scaled(x: Tensor) -> Tensor:
    """Bytes are pixels and become numbers from 0 to 1; other numbers are words and stay."""
    return x.float().div_(255) if x.dtype == torch.uint8 else x


@lru_cache(maxsize=8)
def _labels(layout: FileLayout, classes: int) -> tuple[Tensor, Tensor]:
    train_y, test_y = (torch.tensor(array).long() for array in layout.labels())
    for y in (train_y, test_y):
        _check(y, classes, layout)
    return train_y, test_y


def _check(labels: Tensor, classes: int, layout: FileLayout) -> None:
    if labels.dim() != 1 or not len(labels) or int(labels.max()) >= classes:
        rule = f"labels must be a row of whole numbers below {classes}"
        raise Damaged(f"{layout.path.name}: {rule} ({layout.path})", REFETCH)


DATASETS: Shelf[Dataset] = Shelf("engine.datasets", "dataset")
