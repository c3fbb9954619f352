"""The places of full data sets, the download, and the errors for missing or damaged files."""

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
WITH_FULL_SET = [name for name in NAMES if DATASETS.make(name).whole()]  # not, or not fully, bundled


def whole(name):
    return DATASETS.make(name).whole()


def places(tmp_path, download=False):
    return DataFolders(tmp_path / "assets", (tmp_path / "own", tmp_path / "home"), tmp_path / "system", download)


def same(data, arrays):
    """Whether a loaded set holds the pictures and labels that were written."""
    tensors = (data.train_x, data.train_y, data.test_x, data.test_y)
    for tensor, array in zip(tensors, arrays, strict=True):
        values = (tensor * 255).round().byte() if tensor.is_floating_point() else tensor
        if not np.array_equal(values, array):
            return False
    return True


def test_the_folders_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("LEAKLENS_DATA", os.pathsep.join([str(tmp_path / "a"), " ", str(tmp_path / "b")]))
    monkeypatch.setenv("LEAKLENS_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LEAKLENS_DOWNLOAD", raising=False)
    locations = DataFolders.here()
    assert locations.folders == (tmp_path / "a", tmp_path / "b", tmp_path / "home" / "data")
    assert not locations.download and (locations.assets / "mnist.npz").is_file()
    monkeypatch.setenv("LEAKLENS_DOWNLOAD", "1")
    assert DataFolders.here().download
    assert DataFolders.here({}).folders == (ROOT / ".leaklens" / "data",)
    unknown_user = {"LEAKLENS_DATA": "~no-such-user/a", "LEAKLENS_HOME": "~no-such-user/b"}
    folders = [str(folder) for folder in DataFolders.here(unknown_user).folders]
    assert folders == ["~no-such-user/a", "~no-such-user/b/data"]


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
    arrays = write_idx(tmp_path / folder, packed=packed)
    part = whole(name)
    locations = places(tmp_path)
    assert same(part.load(locations), arrays)
    assert torch.equal(part.facts(locations).train_y, torch.tensor(arrays[1]).long())
    assert [place for place, exists in part.places(locations) if exists] == [str(tmp_path / folder)]
    assert part.load(locations).origin == f"{part.title}, full set: 12 training and 5 test pictures"


@pytest.mark.parametrize("folder", ["own/cifar-10-batches-bin", "home/cifar-10-batches-bin", "own"])
def test_cifar_is_found(tmp_path, folder):
    arrays = write_cifar_binary(tmp_path / folder)
    assert same(whole("cifar10").load(places(tmp_path)), arrays)


def test_the_users_own_folder_comes_first(tmp_path):
    write_idx(tmp_path / "home/MNIST/raw")
    (tmp_path / "home/MNIST/raw/train-labels-idx1-ubyte").write_bytes(b"broken")
    arrays = write_idx(tmp_path / "own")
    assert same(whole("mnist").load(places(tmp_path)), arrays)


def test_mnist_is_not_mistaken_for_fashion_mnist(tmp_path):
    write_idx(tmp_path / "own")
    labels = [5, 0, 4, 1, 9, 2, 1, 3, 1, 4, 3, 5]
    (tmp_path / "own/train-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\x0c" + bytes(labels))
    assert whole("mnist").facts(places(tmp_path)).train_y.tolist() == labels
    with pytest.raises(MissingData):
        whole("fashion-mnist").facts(places(tmp_path))


@pytest.mark.parametrize("name", WITH_FULL_SET)
def test_a_missing_set_gives_an_error_with_its_name_the_places_and_the_remedy(name, tmp_path, monkeypatch):
    part = whole(name)
    folders = ["own", "home", "system"] if name in ("mnist", "fashion-mnist") else ["own", "home"]
    searched = ", ".join(str(tmp_path / folder) for folder in folders)
    for read in (part.load, part.facts):
        with pytest.raises(MissingData, match=f"^{name}: the full set is not on this machine") as caught:
            read(places(tmp_path))
        assert caught.value.message.endswith(f"(looked in {searched})")
        assert "LEAKLENS_DATA" in caught.value.remedy
        assert ("LEAKLENS_DOWNLOAD=1" in caught.value.remedy) is (
            name != "sentiment140"
        )  # torchvision has no download of it
        assert ("leave `full` off" in caught.value.remedy) is (name in BUNDLED)
    assert all(not exists for _, exists in part.places(places(tmp_path)))
    monkeypatch.setattr(DataFolders, "here", lambda: places(tmp_path))
    [problem] = part.problems(None)
    assert problem.fatal and problem.reason == caught.value.message
    monkeypatch.setattr(DataFolders, "here", lambda: places(tmp_path, download=True))
    assert part.problems(None) == (() if part.torchvision_name else (problem,))


@pytest.mark.parametrize("name", BUNDLED)
def test_a_missing_bundled_file_gives_an_error(name, tmp_path):
    with pytest.raises(MissingData, match=rf"^{name}: assets/\w+(\.npz|\.tsv\.gz) is not there\. Restore this file"):
        DATASETS.make(name).load(places(tmp_path))


@pytest.mark.parametrize("name", BUNDLED)
def test_a_damaged_bundled_file_gives_an_error(name, tmp_path):
    locations = places(tmp_path)
    file = DATASETS.make(name).bundle
    locations.assets.mkdir()
    body = (ROOT / "assets" / file).read_bytes()
    (locations.assets / file).write_bytes(body[: len(body) // 2])
    for read in (DATASETS.make(name).load, DATASETS.make(name).facts):
        with pytest.raises(Damaged, match=rf"^{file}: .* cannot be read .*Restore this file from the repository"):
            read(locations)


def test_labels_beyond_the_classes_and_missing_pictures_are_damage(tmp_path):
    part = whole("mnist")
    locations = places(tmp_path)
    write_idx(tmp_path / "own")
    shutil.copy(tmp_path / "own/train-images-idx3-ubyte", tmp_path / "own/t10k-images-idx3-ubyte")
    with pytest.raises(Damaged, match="must hold one label for each picture"):
        part.load(locations)
    (tmp_path / "own/t10k-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\x01" + bytes([10]))
    for read in (part.load, part.facts):
        with pytest.raises(Damaged, match="labels must be a row of whole numbers below 10"):
            read(locations)


def test_a_download_happens_only_when_allowed_and_once(tmp_path, monkeypatch):
    calls = []

    def download_set(folder, train, download):
        calls.append((folder, train, download))
        write_idx(folder / "FashionMNIST" / "raw")

    fake = SimpleNamespace(datasets=SimpleNamespace(FashionMNIST=download_set))
    monkeypatch.setattr(base, "torchvision", lambda: fake)
    part = whole("fashion-mnist")
    with pytest.raises(MissingData):
        part.load(places(tmp_path))
    assert not calls
    allowed = places(tmp_path, download=True)
    assert len(part.load(allowed).train_y) == 12
    assert len(part.facts(allowed).train_y) == 12
    assert calls == [(tmp_path / "home", True, True), (tmp_path / "home", False, True)]


def test_a_failed_download_gives_an_error(tmp_path, monkeypatch):
    def failing_download(folder, train, download):
        raise RuntimeError("Error downloading train-images")

    monkeypatch.setattr(base, "torchvision", lambda: SimpleNamespace(datasets=SimpleNamespace(MNIST=failing_download)))
    with pytest.raises(MissingData, match=r"^mnist: the download failed: Error downloading train-images") as caught:
        whole("mnist").load(places(tmp_path, download=True))
    assert "LEAKLENS_DATA" in caught.value.remedy
