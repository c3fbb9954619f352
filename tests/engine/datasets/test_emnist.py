"""EMNIST's own files: transposed pictures, and labels that may start at 1."""

from __future__ import annotations

import string
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from engine.datasets import DATASETS, DataFolders, base
from engine.errors import Damaged
from tests.engine.datasets.makers import idx_bytes, write_emnist


def emnist(split):
    return DATASETS.make({"name": "emnist", "split": split})


def places(tmp_path, download=False):
    return DataFolders(tmp_path / "assets", (tmp_path / "own", tmp_path / "home"), tmp_path / "system", download)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("folder", ["own/EMNIST/raw", "own/gzip", "own", "home/emnist"])
@pytest.mark.parametrize("split", ["letters", "balanced"])
def test_its_files_are_found_and_its_pictures_are_upright(tmp_path, split, folder, packed):
    train_x, train_y, test_x, test_y = write_emnist(tmp_path / folder, split, packed)
    part = emnist(split)
    locations = places(tmp_path)
    data = part.load(locations)
    facts = part.facts(locations)
    for x, expected in ((data.train_x, train_x), (data.test_x, test_x)):
        assert np.array_equal((x * 255).round().byte(), expected) and x.is_contiguous()
    for y, expected in ((facts.train_y, train_y), (facts.test_y, test_y), (data.train_y, train_y)):
        assert y.tolist() == expected.tolist()
    assert data.origin == "EMNIST, full set: 12 training and 5 test pictures"
    assert [place for place, exists in part.places(locations) if exists] == [str(tmp_path / folder)]


def test_both_splits_may_be_in_one_folder(tmp_path):
    arrays = {split: write_emnist(tmp_path / "own", split) for split in ("letters", "balanced")}
    for split, (_, train_y, _, _) in arrays.items():
        assert emnist(split).facts(places(tmp_path)).train_y.tolist() == train_y.tolist()


def test_the_classes_follow_the_labels():
    assert emnist("letters").classes == tuple(string.ascii_uppercase)
    balanced = emnist("balanced").classes
    assert len(balanced) == 47 and balanced == tuple(sorted(balanced))  # the order of the published mapping
    assert balanced[36:] == tuple("abdefghnqrt")


@pytest.mark.parametrize("label", [0, 27])
def test_a_label_that_is_no_letter_is_damage(tmp_path, label):
    write_emnist(tmp_path / "own", "letters")
    body = idx_bytes(np.array([label] * 5, np.uint8))
    (tmp_path / "own/emnist-letters-test-labels-idx1-ubyte").write_bytes(body)
    for read in (emnist("letters").load, emnist("letters").facts):
        with pytest.raises(Damaged, match="labels must be a row of whole numbers below 26"):
            read(places(tmp_path))


def test_it_is_normalised_like_mnist():
    assert emnist("letters").moments == DATASETS.make("mnist").moments
    assert DATASETS.make({"name": "emnist", "normalise": False}).moments == ((0.0,), (1.0,))


def test_torchvision_receives_the_split(tmp_path, monkeypatch):
    calls = []

    def download_set(folder, train, download, split):
        calls.append((folder, train, download, split))
        write_emnist(folder / "EMNIST" / "raw", split)

    fake = SimpleNamespace(datasets=SimpleNamespace(EMNIST=download_set))
    monkeypatch.setattr(base, "torchvision", lambda: fake)
    data = emnist("balanced").load(places(tmp_path, download=True))
    assert torch.equal(torch.tensor(data.train_x.shape), torch.tensor((12, 1, 28, 28)))
    assert calls == [(tmp_path / "home", True, True, "balanced"), (tmp_path / "home", False, True, "balanced")]
