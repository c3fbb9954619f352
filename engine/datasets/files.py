"""The file formats public picture sets come in, read without ever running code from a file."""

from __future__ import annotations

import gzip
import math
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.errors import Damaged
from engine.vision import torchvision

Bytes = NDArray[np.uint8]
Labels = tuple[Bytes, Bytes]  # train and test, (n,) each
Inputs = Bytes | NDArray[np.int64]  # pictures (n, channels, height, width), or rows of words (n, length)
Four = tuple[Inputs, Bytes, Inputs, Bytes]  # inputs and labels of train, then of test

CIFAR = (3, 32, 32)
# what numpy and zipfile raise on damaged archives; RuntimeError for a compression they do not know
UNREADABLE = (OSError, ValueError, KeyError, TypeError, EOFError, RuntimeError, OverflowError, MemoryError)
RESTORE = "Restore this file from the repository"


class FileLayout(Protocol):
    """One place where a set may lie, and the form it would have there."""

    def __hash__(self) -> int: ...

    @property
    def place(self) -> Path: ...

    def found(self) -> bool: ...

    def labels(self) -> Labels:
        """The labels alone, without decoding an input."""

    def read(self) -> Four:
        """Everything."""


@dataclass(frozen=True)
class NpzFile:
    """One npz file: x_train, y_train, x_test and y_test, pictures with channels last."""

    place: Path

    def found(self) -> bool:
        return self.place.is_file()

    def labels(self) -> Labels:
        return self._read("y_train"), self._read("y_test")

    def read(self) -> Four:
        train, test = self.labels()
        return channels_first(self._read("x_train")), train, channels_first(self._read("x_test")), test

    def _read(self, name: str) -> Bytes:
        try:
            with np.load(self.place, allow_pickle=False) as file:
                array = file[name]
        except (*UNREADABLE, zipfile.BadZipFile, zlib.error) as error:
            raise damaged(self.place, f"{name} cannot be read", RESTORE) from error
        if array.dtype != np.uint8:
            raise damaged(self.place, f"{name} must hold bytes, got {array.dtype}", RESTORE)
        return array  # type: ignore[no-any-return]


IDX = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


@dataclass(frozen=True)
class Idx:
    """The four idx files of the MNIST family in one folder, plain or gzipped."""

    place: Path
    strangers: tuple[tuple[int, ...], ...] = ()  # how the labels of other sets with the same file names begin
    names: tuple[str, str, str, str] = IDX

    def found(self) -> bool:
        if any(self._file(name) is None for name in self.names):
            return False
        try:
            return tuple(self._read(self.names[1])[:10].tolist()) not in self.strangers
        except Damaged:
            return True  # found, and reading it will say what is wrong

    def labels(self) -> Labels:
        return self._read(self.names[1]), self._read(self.names[3])

    def read(self) -> Four:
        train, test = self.labels()
        return channels_first(self._read(self.names[0])), train, channels_first(self._read(self.names[2])), test

    def _file(self, name: str) -> Path | None:
        return next((file for file in (self.place / name, self.place / f"{name}.gz") if file.is_file()), None)

    def _read(self, name: str) -> Bytes:
        file = self._file(name)
        if file is None:
            raise damaged(self.place / name, "the file is gone")
        return idx(file, axes=3 if "idx3" in name else 1)


@dataclass(frozen=True)
class TransposedIdx(Idx):
    """EMNIST's idx files: every picture lies on its side, rows for columns, and labels may begin at 1."""

    first: int = 0  # the smallest label

    def labels(self) -> Labels:
        train, test = super().labels()
        return train - np.uint8(self.first), test - np.uint8(self.first)  # what is too small becomes far too large

    def read(self) -> Four:
        train_x, train_y, test_x, test_y = super().read()
        return np.swapaxes(train_x, -1, -2), train_y, np.swapaxes(test_x, -1, -2), test_y


def idx(file: Path, axes: int) -> Bytes:
    """One idx file of bytes: two zeros, the type, the number of axes, the sizes, the values."""
    try:
        body = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(file, "it cannot be read") from error
    if body[:4] != bytes((0, 0, 8, axes)):
        raise damaged(file, f"it must begin as an idx file of bytes with {axes} axes")
    start = 4 + 4 * axes
    sizes = tuple(int.from_bytes(body[at : at + 4], "big") for at in range(4, start, 4))
    if len(body) - start != math.prod(sizes):
        raise damaged(file, f"it must hold {' x '.join(map(str, sizes))} values, got {max(0, len(body) - start)}")
    return np.frombuffer(body, np.uint8, offset=start).reshape(sizes)


@dataclass(frozen=True)
class CifarBinary:
    """CIFAR-10's binary batches in one folder: a label and 3,072 bytes for every picture."""

    place: Path
    train: tuple[str, ...] = tuple(f"data_batch_{batch}.bin" for batch in range(1, 6))
    test: tuple[str, ...] = ("test_batch.bin",)

    def found(self) -> bool:
        return all((self.place / name).is_file() for name in (*self.train, *self.test))

    def labels(self) -> Labels:
        train, test = self._read(self.train), self._read(self.test)
        return train[:, 0].copy(), test[:, 0].copy()

    def read(self) -> Four:
        train, test = self._read(self.train), self._read(self.test)
        return train[:, 1:].reshape(-1, *CIFAR), train[:, 0], test[:, 1:].reshape(-1, *CIFAR), test[:, 0]

    def _read(self, names: tuple[str, ...]) -> Bytes:
        size = 1 + math.prod(CIFAR)
        parts = []
        for name in names:
            try:
                body = np.fromfile(self.place / name, np.uint8)
            except OSError as error:
                raise damaged(self.place / name, "it cannot be read") from error
            if not len(body) or len(body) % size:
                raise damaged(self.place / name, f"it must hold records of {size} bytes, got {len(body)} bytes")
            parts.append(body.reshape(-1, size))
        return np.concatenate(parts)


@dataclass(frozen=True)
class CifarPython:
    """CIFAR-10's pickled batches: left to torchvision, which opens only files whose checksum is the published one."""

    place: Path  # the folder cifar-10-batches-py

    def found(self) -> bool:
        return (self.place / "data_batch_1").is_file()

    def labels(self) -> Labels:
        _, train, _, test = self.read()
        return train, test

    def read(self) -> Four:
        cifar10 = torchvision().datasets.CIFAR10
        try:
            train, test = cifar10(self.place.parent, train=True), cifar10(self.place.parent, train=False)
        except RuntimeError as error:
            raise damaged(self.place, "a file is missing or is not the published one") from error
        labels = np.array(train.targets, np.uint8), np.array(test.targets, np.uint8)
        return channels_first(train.data), labels[0], channels_first(test.data), labels[1]


def channels_first(pictures: Bytes) -> Bytes:
    """(n, h, w) or (n, h, w, channels) -> (n, channels, h, w); anything else is left for its reader to refuse."""
    if pictures.ndim == 3:
        return pictures[:, None]
    return np.moveaxis(pictures, -1, 1) if pictures.ndim == 4 else pictures


def damaged(file: Path, why: str, remedy: str = "Delete this file and fetch it again") -> Damaged:
    return Damaged(f"{file.name}: {why} ({file})", remedy)
