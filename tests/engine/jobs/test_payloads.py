"""Payloads: the same arrays back, whole or refused by name."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, floating_dtypes, integer_dtypes

from engine.errors import BadInput, Damaged, HomeFull
from engine.jobs import payloads
from engine.jobs.home import Home

ARRAYS = arrays(st.one_of(floating_dtypes(), integer_dtypes(), st.just(np.dtype(bool))), array_shapes(min_dims=0))
KEYS = st.one_of(st.sampled_from(["file", "allow_pickle", "self", "server/fc.weight"]), st.text("abc./-", min_size=1))


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return Home.find(tmp_path / "h")


@given(payload=st.dictionaries(KEYS, ARRAYS, max_size=4))
def test_every_array_comes_back_bit_for_bit(payload: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    home = Home.find(tmp_path_factory.getbasetemp() / "payloads")
    payloads.write(home, "run", "name", payload)
    found = payloads.read(home, "run", "name")
    assert list(found) == list(payload)
    for key, array in payload.items():
        assert found[key].dtype == array.dtype
        assert found[key].shape == array.shape
        assert found[key].tobytes() == array.tobytes()


def test_the_same_arrays_make_the_same_file(place: Home) -> None:
    for name in ("a", "b"):
        payloads.write(place, "run", name, {"x": np.arange(5)})
    assert place.payload("run", "a").read_bytes() == place.payload("run", "b").read_bytes()


def test_objects_are_never_written(place: Home) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        payloads.write(place, "run", "name", {"x": np.array([print], dtype=object)})
    assert list(place.folder("run").iterdir()) == []


def test_any_reader_of_npz_can_read_them(place: Home) -> None:
    payloads.write(place, "run", "name", {"x": np.arange(5), "server/bias": np.zeros(())})
    with np.load(place.payload("run", "name"), allow_pickle=False) as found:
        assert found.files == ["x", "server/bias"]
        assert found["x"].tolist() == [0, 1, 2, 3, 4]


def test_a_pickle_in_its_place_is_refused(place: Home) -> None:
    place.folder("run").mkdir()
    np.savez(place.payload("run", "x"), x=np.array([{}], dtype=object))
    with pytest.raises(Damaged, match=r"x\.npz: cannot be read"):
        payloads.read(place, "run", "x")


@pytest.mark.parametrize("cut", [0, 1, 50, 600])
def test_a_cut_payload_is_named(cut: int, place: Home) -> None:
    payloads.write(place, "run", "name", {"x": np.arange(100.0)})
    os.truncate(place.payload("run", "name"), cut)
    with pytest.raises(Damaged, match=r"run.name\.npz: cannot be read\. Ask the run again"):
        payloads.read(place, "run", "name")
    assert not payloads.whole(place, "run", "name")


def test_one_flipped_bit_is_noticed_or_changes_nothing(place: Home) -> None:
    payloads.write(place, "run", "name", {"x": np.arange(10.0)})
    path, noticed = place.payload("run", "name"), 0
    body = path.read_bytes()
    for at in range(len(body)):
        path.write_bytes(body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :])
        if payloads.whole(place, "run", "name"):
            (array,) = payloads.read(place, "run", "name").values()
            assert array.tolist() == list(range(10))
        else:
            noticed += 1
    assert noticed > len(body) / 2


def test_nothing_at_all_is_not_whole(place: Home) -> None:
    payloads.write(place, "run", "name", {})
    assert payloads.read(place, "run", "name") == {}
    assert not payloads.whole(place, "run", "name")


def test_a_missing_payload_is_named(place: Home) -> None:
    with pytest.raises(Damaged, match=r"name\.npz: is missing"):
        payloads.read(place, "run", "name")


def test_a_full_disk_leaves_the_old_file_and_no_rest(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    payloads.write(place, "run", "name", {"x": np.arange(3)})
    before = place.payload("run", "name").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HomeFull, match="no space is left"):
        payloads.write(place, "run", "name", {"x": np.arange(9)})
    assert place.payload("run", "name").read_bytes() == before
    assert [path.name for path in place.folder("run").iterdir()] == ["name.npz"]


def test_over_the_quota_nothing_is_written(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "0.0001")
    payloads.write(place, "run", "small", {"x": np.zeros(1000)})
    with pytest.raises(HomeFull):
        payloads.write(place, "run", "large", {"x": np.zeros(100_000)})
    assert not place.payload("run", "large").exists()


def test_a_name_that_leads_out_is_refused(place: Home) -> None:
    with pytest.raises(BadInput):
        payloads.write(place, "run", "../../out", {"x": np.zeros(1)})


def test_keep_only_removes_what_nobody_names(place: Home) -> None:
    for name in ("a", "b", "c"):
        payloads.write(place, "run", name, {"x": np.zeros(1)})
    (place.folder("run") / ".c.npz.1234.tmp").write_bytes(b"half")
    (place.folder("run") / "notes.txt").write_text("not ours")
    payloads.keep_only(place, "run", {"a"})
    assert sorted(path.name for path in place.folder("run").iterdir()) == ["a.npz", "notes.txt"]
    payloads.keep_only(place, "never-seen", {"a"})


def test_buried_payloads_are_out_of_sight_at_once(place: Home) -> None:
    payloads.write(place, "run", "a", {"x": np.zeros(1)})
    payloads.bury(place, "run")
    assert not place.folder("run").exists()
    assert len(list(place.payloads.iterdir())) == 1
    payloads.empty_trash(place)
    assert list(place.payloads.iterdir()) == []
    payloads.bury(place, "run")
