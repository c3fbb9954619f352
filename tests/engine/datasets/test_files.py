"""The readers of public file formats, with tiny files, intact and damaged."""

from __future__ import annotations

import gzip
import hashlib
import pickle
import random
from itertools import chain

import numpy as np
import pytest

from engine.datasets.files import CifarBinary, CifarPython, Idx, NpzFile, idx
from engine.errors import Damaged
from engine.vision import torchvision
from tests.engine.datasets.makers import cifar_batches, idx_bytes, write_bundle, write_cifar_binary, write_idx


@pytest.mark.parametrize("packed", [False, True])
def test_idx_files_plain_and_gzipped(tmp_path, packed):
    arrays = write_idx(tmp_path, packed=packed)
    layout = Idx(tmp_path)
    assert layout.exists()
    for array, expected in zip(layout.read(), arrays, strict=True):
        assert np.array_equal(array, expected) and array.dtype == np.uint8
    assert layout.read()[0].shape == (12, 1, 28, 28)
    assert [list(labels) for labels in layout.labels()] == [list(arrays[1]), list(arrays[3])]


def test_a_set_with_a_missing_idx_file_does_not_exist(tmp_path):
    write_idx(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    assert not Idx(tmp_path).exists()


def test_another_set_with_the_same_file_names_does_not_count(tmp_path):
    labels = write_idx(tmp_path)[1]
    first_labels = tuple(labels[:10].tolist())
    assert not Idx(tmp_path, other_sets=(first_labels,)).exists()
    assert Idx(tmp_path, other_sets=(tuple(reversed(first_labels)),)).exists()


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"", "must begin as an idx file of bytes with 1 axes"),
        (b"\0\0\x08\x01", "must hold"),
        (b"\0\0\x08\x01\0\0\0\x05abc", "must hold 5 values, got 3"),
        (b"\0\0\x08\x01\0\0\0\x02abc", "must hold 2 values, got 3"),
        (b"\0\0\x0d\x01\0\0\0\x01abcd", "must begin as an idx file of bytes"),
        (b"\0\0\x08\x01\xff\xff\xff\xffab", "must hold 4294967295 values, got 2"),
    ],
)
def test_a_damaged_idx_file_gives_an_error(tmp_path, body, rule):
    for file, content in ((tmp_path / "labels", body), (tmp_path / "labels.gz", gzip.compress(body))):
        file.write_bytes(content)
        with pytest.raises(Damaged, match=rule) as caught:
            idx(file, axes=1)
        assert str(file) in str(caught.value) and caught.value.remedy


@pytest.mark.parametrize("keep", [0, 3, 20, -4])
def test_a_truncated_gzip_file_gives_an_error(tmp_path, keep):
    whole = gzip.compress(idx_bytes(np.arange(50, dtype=np.uint8)))
    (tmp_path / "x.gz").write_bytes(whole[:keep])
    with pytest.raises(Damaged):
        idx(tmp_path / "x.gz", axes=1)


def test_a_damaged_label_file_exists_and_gives_an_error(tmp_path):
    write_idx(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(b"no idx")
    layout = Idx(tmp_path, other_sets=((1, 2),))
    assert layout.exists()
    with pytest.raises(Damaged, match=r"^train-labels-idx1-ubyte: it must begin as an idx file"):
        layout.labels()


def test_cifar_binary_batches(tmp_path):
    arrays = write_cifar_binary(tmp_path)
    layout = CifarBinary(tmp_path)
    assert layout.exists()
    for array, expected in zip(layout.read(), arrays, strict=True):
        assert np.array_equal(array, expected)
    assert [list(labels) for labels in layout.labels()] == [list(arrays[1]), list(arrays[3])]


@pytest.mark.parametrize("size", [0, 3072, 3074])
def test_a_truncated_cifar_batch_gives_an_error(tmp_path, size):
    write_cifar_binary(tmp_path)
    (tmp_path / "data_batch_3.bin").write_bytes(bytes(size))
    with pytest.raises(Damaged, match=rf"^data_batch_3.bin: it must hold records of 3073 bytes, got {size} bytes"):
        CifarBinary(tmp_path).labels()


def test_a_set_with_a_missing_cifar_batch_does_not_exist(tmp_path):
    write_cifar_binary(tmp_path)
    (tmp_path / "test_batch.bin").unlink()
    assert not CifarBinary(tmp_path).exists()


def test_torchvision_opens_cifar_pickles_with_the_published_checksums(tmp_path, monkeypatch):
    folder = tmp_path / "cifar-10-batches-py"
    batches = cifar_batches()
    folder.mkdir()
    sums = {}
    for name, (pictures, labels) in {**batches, "batches.meta": (None, None)}.items():
        content = {"data": pictures, "labels": labels} if labels else {"label_names": ["a", "b"]}
        body = pickle.dumps(content, protocol=2)
        (folder / name).write_bytes(body)
        sums[name] = hashlib.md5(body).hexdigest()
    cifar10 = torchvision().datasets.CIFAR10
    monkeypatch.setattr(cifar10, "train_list", [[name, sums[name]] for name in batches if name != "test_batch"])
    monkeypatch.setattr(cifar10, "test_list", [["test_batch", sums["test_batch"]]])
    monkeypatch.setattr(cifar10, "meta", {**cifar10.meta, "md5": sums["batches.meta"]})
    layout = CifarPython(folder)
    train_x, train_y, test_x, test_y = layout.read()
    assert layout.exists() and train_x.shape == (10, 3, 32, 32) and len(test_x) == len(test_y) == 2
    assert np.array_equal(train_x[0].ravel(), batches["data_batch_1"][0][0])
    train_labels = [labels for name, (_, labels) in batches.items() if name != "test_batch"]
    assert list(train_y) == list(chain.from_iterable(train_labels))
    assert list(layout.labels()[1]) == list(test_y) == batches["test_batch"][1]


def test_a_pickle_with_another_checksum_is_never_opened(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "went-off"), "w"))

    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for name in (*cifar_batches(), "batches.meta"):
        (folder / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(Damaged, match="not the published one"):
        CifarPython(folder).read()
    assert not (tmp_path / "went-off").exists()


def test_a_bundled_file(tmp_path):
    arrays = write_bundle(tmp_path / "set.npz")
    layout = NpzFile(tmp_path / "set.npz")
    for array, expected in zip(layout.read(), arrays, strict=True):
        assert np.array_equal(array, expected)


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_bundled_file_gives_an_error_or_the_right_arrays(tmp_path, seed):
    file = tmp_path / "set.npz"
    rng = random.Random(seed)
    arrays = write_bundle(file)
    body = bytearray(file.read_bytes())
    if seed % 2:
        body = body[: rng.randrange(len(body))]
    else:
        body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
    file.write_bytes(body)
    try:
        read = NpzFile(file).read()
    except Damaged as error:
        assert error.message.startswith("set.npz: ") and error.remedy
    else:
        assert all(np.array_equal(array, expected) for array, expected in zip(read, arrays, strict=True))


def test_a_bundled_file_of_objects_or_floats_gives_an_error(tmp_path):
    file = tmp_path / "set.npz"
    for labels in (np.array([{}], dtype=object), np.zeros(3)):
        np.savez(file, y_train=labels, y_test=labels)
        with pytest.raises(Damaged, match=r"set\.npz: y_train"):
            NpzFile(file).labels()
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(Damaged):
        NpzFile(tmp_path / "one.npy").labels()
