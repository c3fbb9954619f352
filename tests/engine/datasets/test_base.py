"""Where full sets are looked for, found, fetched and missed."""

from __future__ import annotations

import os
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from engine.datasets import DATASETS, DataFolders, base
from engine.environment import ROOT
from engine.errors import Damaged, MissingData
from tests.engine.datasets.makers import write_cifar_binary, write_idx

NAMES = DATASETS.names()
BUNDLED = [name for name in NAMES if DATASETS.make(name).ships]
FETCHED = [name for name in NAMES if DATASETS.make(name).whole()]  # in whole or in part


def whole(name):
    return DATASETS.make(name).whole()


def places(tmp_path, download=False):
    return DataFolders(tmp_path / "assets", (tmp_path / "own", tmp_path / "home"), tmp_path / "system", download)


def same(data, four):
    """Whether a loaded set holds the pictures and labels that were written."""
    return all(
        np.array_equal((tensor * 255).round().byte() if tensor.is_floating_point() else tensor, array)
        for tensor, array in zip((data.train_x, data.train_y, data.test_x, data.test_y), four, strict=True)
    )


def test_the_environment_says_where(tmp_path, monkeypatch):
    monkeypatch.setenv("LEAKLENS_DATA", os.pathsep.join([str(tmp_path / "a"), " ", str(tmp_path / "b")]))
    monkeypatch.setenv("LEAKLENS_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LEAKLENS_DOWNLOAD", raising=False)
    here = DataFolders.here()
    assert here.folders == (tmp_path / "a", tmp_path / "b", tmp_path / "home" / "data")
    assert not here.download and (here.assets / "mnist.npz").is_file()
    monkeypatch.setenv("LEAKLENS_DOWNLOAD", "1")
    assert DataFolders.here().download
    assert DataFolders.here({}).folders == (ROOT / ".leaklens" / "data",)
    nobody = {"LEAKLENS_DATA": "~nobody-of-this-name/a", "LEAKLENS_HOME": "~nobody-of-this-name/b"}
    assert [str(folder) for folder in DataFolders.here(nobody).folders] == [
        "~nobody-of-this-name/a",
        "~nobody-of-this-name/b/data",
    ]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("fashion-mnist", "own/FashionMNIST/raw"),
        ("fashion-mnist", "own/fashion-mnist"),
        ("fashion-mnist", "own"),
        ("fashion-mnist", "home/FashionMNIST/raw"),
        ("fashion-mnist", "system/fashion-mnist"),
        ("mnist", "own/MNIST/raw"),
        ("mnist", "home"),
    ],
)
def test_idx_sets_are_found(tmp_path, name, folder, packed):
    four = write_idx(tmp_path / folder, packed=packed)
    part, where = whole(name), places(tmp_path)
    assert same(part.load(where), four)
    assert torch.equal(part.facts(where).train_y, torch.tensor(four[1]).long())
    assert [place for place, found in part.places(where) if found] == [str(tmp_path / folder)]
    assert part.load(where).origin == f"{part.title}, full set: 12 training and 5 test pictures"


@pytest.mark.parametrize("folder", ["own/cifar-10-batches-bin", "home/cifar-10-batches-bin", "own"])
def test_cifar_is_found(tmp_path, folder):
    four = write_cifar_binary(tmp_path / folder)
    assert same(whole("cifar10").load(places(tmp_path)), four)


def test_the_users_own_folder_comes_first(tmp_path):
    write_idx(tmp_path / "home/MNIST/raw")
    (tmp_path / "home/MNIST/raw/train-labels-idx1-ubyte").write_bytes(b"broken")
    four = write_idx(tmp_path / "own")
    assert same(whole("mnist").load(places(tmp_path)), four)


def test_mnist_is_not_taken_for_fashion_mnist(tmp_path):
    write_idx(tmp_path / "own")
    labels = [5, 0, 4, 1, 9, 2, 1, 3, 1, 4, 3, 5]
    (tmp_path / "own/train-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\x0c" + bytes(labels))
    assert whole("mnist").facts(places(tmp_path)).train_y.tolist() == labels
    with pytest.raises(MissingData):
        whole("fashion-mnist").facts(places(tmp_path))


@pytest.mark.parametrize("name", FETCHED)
def test_a_missing_set_names_itself_the_places_and_the_remedy(name, tmp_path, monkeypatch):
    part = whole(name)
    for ask in (part.load, part.facts):
        with pytest.raises(MissingData, match=f"^{name}: the full set is not on this machine") as caught:
            ask(places(tmp_path))
        looked = ("own", "home", "system") if "mnist" in (name, name.removeprefix("fashion-")) else ("own", "home")
        assert caught.value.message.endswith(f"(looked in {', '.join(str(tmp_path / folder) for folder in looked)})")
        assert "LEAKLENS_DATA" in caught.value.remedy
        assert ("LEAKLENS_DOWNLOAD=1" in caught.value.remedy) is (name != "sentiment140")  # nobody fetches that
        assert ("leave `full` off" in caught.value.remedy) is (name in BUNDLED)
    assert all(not found for _, found in part.places(places(tmp_path)))
    monkeypatch.setattr(DataFolders, "here", lambda: places(tmp_path))
    [problem] = part.problems(None)
    assert problem.fatal and problem.reason == caught.value.message
    monkeypatch.setattr(DataFolders, "here", lambda: places(tmp_path, download=True))
    assert part.problems(None) == (() if part.torch_name else (problem,))


@pytest.mark.parametrize("name", BUNDLED)
def test_a_missing_bundle_says_so(name, tmp_path):
    with pytest.raises(MissingData, match=rf"^{name}: assets/\w+(\.npz|\.tsv\.gz) is not there\. Restore this file"):
        DATASETS.make(name).load(places(tmp_path))


@pytest.mark.parametrize("name", BUNDLED)
def test_a_damaged_bundle_says_so(name, tmp_path):
    where, file = places(tmp_path), DATASETS.make(name).bundle
    where.assets.mkdir()
    body = (ROOT / "assets" / file).read_bytes()
    (where.assets / file).write_bytes(body[: len(body) // 2])
    for ask in (DATASETS.make(name).load, DATASETS.make(name).facts):
        with pytest.raises(Damaged, match=rf"^{file}: .* cannot be read .*Restore this file from the repository"):
            ask(where)


def test_labels_beyond_the_classes_and_lost_pictures_are_damage(tmp_path):
    part, where = whole("mnist"), places(tmp_path)
    write_idx(tmp_path / "own")
    shutil.copy(tmp_path / "own/train-images-idx3-ubyte", tmp_path / "own/t10k-images-idx3-ubyte")
    with pytest.raises(Damaged, match="must hold one label for each picture"):
        part.load(where)
    (tmp_path / "own/t10k-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\x01" + bytes([10]))
    for ask in (part.load, part.facts):
        with pytest.raises(Damaged, match="labels must be a row of whole numbers below 10"):
            ask(where)


def test_a_download_happens_only_when_allowed_and_once(tmp_path, monkeypatch):
    calls = []

    def fetch(folder, train, download):
        calls.append((folder, train, download))
        write_idx(folder / "FashionMNIST" / "raw")

    fake = SimpleNamespace(datasets=SimpleNamespace(FashionMNIST=fetch))
    monkeypatch.setattr(base, "torchvision", lambda: fake)
    part = whole("fashion-mnist")
    with pytest.raises(MissingData):
        part.load(places(tmp_path))
    assert not calls
    allowed = places(tmp_path, download=True)
    assert len(part.load(allowed).train_y) == 12
    assert len(part.facts(allowed).train_y) == 12
    assert calls == [(tmp_path / "home", True, True), (tmp_path / "home", False, True)]


def test_a_failed_download_says_so(tmp_path, monkeypatch):
    def fetch(folder, train, download):
        raise RuntimeError("Error downloading train-images")

    monkeypatch.setattr(base, "torchvision", lambda: SimpleNamespace(datasets=SimpleNamespace(MNIST=fetch)))
    with pytest.raises(MissingData, match=r"^mnist: the download failed: Error downloading train-images") as caught:
        whole("mnist").load(places(tmp_path, download=True))
    assert "LEAKLENS_DATA" in caught.value.remedy
