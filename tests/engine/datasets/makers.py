"""Tiny data sets for tests, in the file formats of the public ones."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.uint8]
SEED = 0


def drawn(count: int, *shape: int, below: int = 256) -> Array:
    """Random bytes (count, ...)."""
    return np.random.default_rng(SEED + count).integers(0, below, (count, *shape), dtype=np.uint8)


def idx_bytes(array: Array) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes((0, 0, 8, array.ndim)) + sizes + array.tobytes()


def write_idx(folder: Path, packed: bool = False) -> tuple[Array, Array, Array, Array]:
    """Write twelve training and five test pictures of 28 x 28. Returns the arrays that a reader must return."""
    folder.mkdir(parents=True, exist_ok=True)
    train_x, train_y, test_x, test_y = drawn(12, 28, 28), drawn(12, below=10), drawn(5, 28, 28), drawn(5, below=10)
    kinds = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    for kind, array in zip(kinds, (train_x, train_y, test_x, test_y), strict=True):
        write_packed(folder / f"{kind}-ubyte", idx_bytes(array), packed)
    return train_x[:, None], train_y, test_x[:, None], test_y


def write_packed(file: Path, body: bytes, packed: bool) -> None:
    if packed:
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(body))
    else:
        file.write_bytes(body)


def write_emnist(folder: Path, split: str, packed: bool = False) -> tuple[Array, Array, Array, Array]:
    """The same in the format of EMNIST: transposed pictures, and the labels of the split."""
    folder.mkdir(parents=True, exist_ok=True)
    first_label, classes = (1, 26) if split == "letters" else (0, 47)
    train_x, test_x = drawn(12, 28, 28), drawn(5, 28, 28)
    train_y, test_y = drawn(12, below=classes), drawn(5, below=classes)
    kinds = ("train-images-idx3", "train-labels-idx1", "test-images-idx3", "test-labels-idx1")
    for kind, array in zip(kinds, (train_x, train_y, test_x, test_y), strict=True):
        stored = array.swapaxes(1, 2).copy() if array.ndim == 3 else array + np.uint8(first_label)
        write_packed(folder / f"emnist-{split}-{kind}-ubyte", idx_bytes(stored), packed)
    return train_x[:, None], train_y, test_x[:, None], test_y


def cifar_batches() -> dict[str, tuple[Array, list[int]]]:
    """Two pictures in each of six batches."""
    names = [*(f"data_batch_{batch}" for batch in range(1, 6)), "test_batch"]
    pictures = drawn(12, 3072)
    labels = drawn(12, below=10).tolist()
    batches = {}
    for number, name in enumerate(names):
        pair = slice(2 * number, 2 * number + 2)
        batches[name] = (pictures[pair], labels[pair])
    return batches


def write_cifar_binary(folder: Path) -> tuple[Array, Array, Array, Array]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, (rows, labels) in cifar_batches().items():
        records = np.concatenate([np.array(labels, np.uint8)[:, None], rows], axis=1)
        (folder / f"{name}.bin").write_bytes(records.tobytes())
    pictures = drawn(12, 3072).reshape(-1, 3, 32, 32)
    classes = drawn(12, below=10)
    return pictures[:10], classes[:10], pictures[10:], classes[10:]


def write_bundle(file: Path) -> tuple[Array, Array, Array, Array]:
    """Colour pictures: channels last in the file, and first in the arrays that a reader must return."""
    train, test = drawn(8, 6, 5, 3), drawn(3, 6, 5, 3)
    np.savez_compressed(file, x_train=train, y_train=drawn(8, below=4), x_test=test, y_test=drawn(3, below=4))
    return np.moveaxis(train, -1, 1), drawn(8, below=4), np.moveaxis(test, -1, 1), drawn(3, below=4)


TWEETS = "training.1600000.processed.noemoticon.csv"


def write_lines(file: Path, pairs: Sequence[tuple[int, str]]) -> Path:
    """A gzipped file with a label, a tab and a sentence on every line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{label}\t{text}\n" for label, text in pairs)
    file.write_bytes(gzip.compress(lines.encode("utf-8")))
    return file


def write_tweets(folder: Path, pairs: Sequence[tuple[int, str]]) -> Path:
    """The training file of Sentiment140: six quoted columns in Latin-1 without a header."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / TWEETS).open("w", encoding="latin-1", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        for number, (polarity, text) in enumerate(pairs):
            writer.writerow([polarity, number, "Mon Apr 06 22:19:45 PDT 2009", "NO_QUERY", f"user{number}", text])
    return folder / TWEETS
