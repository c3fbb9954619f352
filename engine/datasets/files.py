"""Readers for the file formats of public picture sets. They never run code from a file."""

from __future__ import annotations

import gzip
import math
import zipfile
import zlib
from contextlib import suppress
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
Splits = tuple[Inputs, Bytes, Inputs, Bytes]  # inputs and labels of the training split, then of the test split

CIFAR = (3, 32, 32)
# The errors of numpy and zipfile for damaged archives. RuntimeError is the error for an unknown compression.
UNREADABLE = (OSError, ValueError, KeyError, TypeError, EOFError, RuntimeError, OverflowError, MemoryError)
RESTORE = "Restore this file from the repository"


class FileLayout(Protocol):
    """One possible place of a data set, and the format of its files there."""

    def __hash__(self) -> int: ...

    @property
    def path(self) -> Path: ...

    def exists(self) -> bool:
        """Whether the set is at this place."""

    def labels(self) -> Labels:
        """The labels alone, without decoding an input."""

    def read(self) -> Splits:
        """Inputs and labels of both splits."""


@dataclass(frozen=True)
class NpzFile:
    """One npz file with x_train, y_train, x_test and y_test; the pictures have their channels last."""

    path: Path

    def exists(self) -> bool:
        return self.path.is_file()

    def labels(self) -> Labels:
        return self._read("y_train"), self._read("y_test")

    def read(self) -> Splits:
        train_y, test_y = self.labels()
        train_x = channels_first(self._read("x_train"))
        test_x = channels_first(self._read("x_test"))
        return train_x, train_y, test_x, test_y

    def _read(self, name: str) -> Bytes:
        try:
            with np.load(self.path, allow_pickle=False) as file:
                array = file[name]
        except (*UNREADABLE, zipfile.BadZipFile, zlib.error) as error:
            if isinstance(error, MemoryError):
                self._require_memory(name)
            raise damaged(self.path, f"{name} cannot be read", RESTORE) from None
        if array.dtype != np.uint8:
            raise damaged(self.path, f"{name} must hold bytes, got {array.dtype}", RESTORE)
        return array  # type: ignore[no-any-return]

    def _require_memory(self, name: str) -> None:
        """MemoryError if the array is too large for this process. A damaged file may only declare such a size."""
        with suppress(OSError, KeyError, ValueError, zipfile.BadZipFile), zipfile.ZipFile(self.path) as archive:
            bytearray(archive.getinfo(f"{name}.npy").file_size)


IDX = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


@dataclass(frozen=True)
class Idx:
    """The four idx files of the MNIST family in one folder, plain or gzipped."""

    path: Path
    other_sets: tuple[tuple[int, ...], ...] = ()  # the first labels of other sets with the same file names
    names: tuple[str, str, str, str] = IDX

    def exists(self) -> bool:
        if any(self._file(name) is None for name in self.names):
            return False
        try:
            first_labels = tuple(self._read(self.names[1])[:10].tolist())
        except Damaged:
            return True  # the set is there, and reading it raises the error
        return first_labels not in self.other_sets

    def labels(self) -> Labels:
        return self._read(self.names[1]), self._read(self.names[3])

    def read(self) -> Splits:
        train_y, test_y = self.labels()
        train_x = channels_first(self._read(self.names[0]))
        test_x = channels_first(self._read(self.names[2]))
        return train_x, train_y, test_x, test_y

    def _file(self, name: str) -> Path | None:
        for file in (self.path / name, self.path / f"{name}.gz"):
            if file.is_file():
                return file
        return None

    def _read(self, name: str) -> Bytes:
        file = self._file(name)
        if file is None:
            raise damaged(self.path / name, "the file is missing")
        return idx(file, axes=3 if "idx3" in name else 1)


@dataclass(frozen=True)
class TransposedIdx(Idx):
    """EMNIST's idx files: rows and columns of the pictures are swapped, and labels may start at 1."""

    first_label: int = 0

    def labels(self) -> Labels:
        train, test = super().labels()
        # A label that is too small wraps to a large number, which the check of the labels refuses.
        return train - np.uint8(self.first_label), test - np.uint8(self.first_label)

    def read(self) -> Splits:
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
    sizes = tuple(int.from_bytes(body[offset : offset + 4], "big") for offset in range(4, start, 4))
    if len(body) - start != math.prod(sizes):
        shape = " x ".join(map(str, sizes))
        raise damaged(file, f"it must hold {shape} values, got {max(0, len(body) - start)}")
    return np.frombuffer(body, np.uint8, offset=start).reshape(sizes)


@dataclass(frozen=True)
class CifarBinary:
    """CIFAR-10's binary batches in one folder: a label and 3,072 bytes for each picture."""

    path: Path
    train: tuple[str, ...] = tuple(f"data_batch_{batch}.bin" for batch in range(1, 6))
    test: tuple[str, ...] = ("test_batch.bin",)

    def exists(self) -> bool:
        return all((self.path / name).is_file() for name in (*self.train, *self.test))

    def labels(self) -> Labels:
        train = self._read(self.train)
        test = self._read(self.test)
        return train[:, 0].copy(), test[:, 0].copy()

    def read(self) -> Splits:
        train = self._read(self.train)
        test = self._read(self.test)
        return train[:, 1:].reshape(-1, *CIFAR), train[:, 0], test[:, 1:].reshape(-1, *CIFAR), test[:, 0]

    def _read(self, names: tuple[str, ...]) -> Bytes:
        """The records (n, 3073) of several batches."""
        size = 1 + math.prod(CIFAR)
        batches = []
        for name in names:
            try:
                body = np.fromfile(self.path / name, np.uint8)
            except OSError as error:
                raise damaged(self.path / name, "it cannot be read") from error
            if not len(body) or len(body) % size:
                raise damaged(self.path / name, f"it must hold records of {size} bytes, got {len(body)} bytes")
            batches.append(body.reshape(-1, size))
        return np.concatenate(batches)


@dataclass(frozen=True)
class CifarPython:
    """CIFAR-10's pickled batches. torchvision reads them, because it opens only files with the published checksum."""

    path: Path  # the folder cifar-10-batches-py

    def exists(self) -> bool:
        return (self.path / "data_batch_1").is_file()

    def labels(self) -> Labels:
        _, train, _, test = self.read()
        return train, test

    def read(self) -> Splits:
        cifar10 = torchvision().datasets.CIFAR10
        try:
            train = cifar10(self.path.parent, train=True)
            test = cifar10(self.path.parent, train=False)
        except RuntimeError as error:
            raise damaged(self.path, "a file is missing or is not the published one") from error
        train_y = np.array(train.targets, np.uint8)
        test_y = np.array(test.targets, np.uint8)
        return channels_first(train.data), train_y, channels_first(test.data), test_y


def channels_first(pictures: Bytes) -> Bytes:
    """(n, h, w) or (n, h, w, channels) -> (n, channels, h, w). Other shapes stay; the check of shapes refuses them."""
    if pictures.ndim == 3:
        return pictures[:, None]
    return np.moveaxis(pictures, -1, 1) if pictures.ndim == 4 else pictures


def damaged(file: Path, reason: str, remedy: str = "Delete this file and download it again") -> Damaged:
    """The error for a file that cannot be used."""
    return Damaged(f"{file.name}: {reason} ({file})", remedy)
