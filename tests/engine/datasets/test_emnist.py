"""EMNIST's own files: pictures that lie on their side, and labels that may begin at 1."""

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
def test_its_files_are_found_and_its_pictures_stand_upright(tmp_path, split, folder, packed):
    four = write_emnist(tmp_path / folder, split, packed)
    part, where = emnist(split), places(tmp_path)
    data, facts = part.load(where), part.facts(where)
    for x, truth in ((data.train_x, four[0]), (data.test_x, four[2])):
        assert np.array_equal((x * 255).round().byte(), truth) and x.is_contiguous()
    for y, truth in ((facts.train_y, four[1]), (facts.test_y, four[3]), (data.train_y, four[1])):
        assert y.tolist() == truth.tolist()
    assert data.origin == "EMNIST, full set: 12 training and 5 test pictures"
    assert [place for place, found in part.places(where) if found] == [str(tmp_path / folder)]


def test_the_splits_lie_in_one_folder_and_are_not_mixed_up(tmp_path):
    letters, balanced = (write_emnist(tmp_path / "own", split) for split in ("letters", "balanced"))
    for split, four in (("letters", letters), ("balanced", balanced)):
        assert emnist(split).facts(places(tmp_path)).train_y.tolist() == four[1].tolist()


def test_a_class_is_what_its_label_says():
    assert emnist("letters").classes == tuple(string.ascii_uppercase)
    balanced = emnist("balanced").classes
    assert len(balanced) == 47 and balanced == tuple(sorted(balanced))  # the order of the published mapping
    assert balanced[36:] == tuple("abdefghnqrt")


@pytest.mark.parametrize("label", [0, 27])
def test_a_label_that_is_no_letter_is_damage(tmp_path, label):
    write_emnist(tmp_path / "own", "letters")
    body = idx_bytes(np.array([label] * 5, np.uint8))
    (tmp_path / "own/emnist-letters-test-labels-idx1-ubyte").write_bytes(body)
    for ask in (emnist("letters").load, emnist("letters").facts):
        with pytest.raises(Damaged, match="labels must be a row of whole numbers below 26"):
            ask(places(tmp_path))


def test_it_is_normalised_like_mnist():
    assert emnist("letters").law == DATASETS.make("mnist").law
    assert DATASETS.make({"name": "emnist", "normalise": False}).law == ((0.0,), (1.0,))


def test_torchvision_is_told_the_split(tmp_path, monkeypatch):
    calls = []

    def fetch(folder, train, download, split):
        calls.append((folder, train, download, split))
        write_emnist(folder / "EMNIST" / "raw", split)

    monkeypatch.setattr(base, "torchvision", lambda: SimpleNamespace(datasets=SimpleNamespace(EMNIST=fetch)))
    data = emnist("balanced").load(places(tmp_path, download=True))
    assert torch.equal(torch.tensor(data.train_x.shape), torch.tensor((12, 1, 28, 28)))
    assert calls == [(tmp_path / "home", True, True, "balanced"), (tmp_path / "home", False, True, "balanced")]
