"""Payloads: a read returns the same arrays, or an error that names the file."""

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
def payload_home(tmp_path: Path) -> Home:
    return Home.find(tmp_path / "h")


@pytest.mark.slow
@given(payload=st.dictionaries(KEYS, ARRAYS, max_size=4))
def test_every_array_is_read_bit_for_bit(payload: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    payload_home = Home.find(tmp_path_factory.getbasetemp() / "payloads")
    payloads.write(payload_home, "run", "name", payload)
    arrays = payloads.read(payload_home, "run", "name")
    assert list(arrays) == list(payload)
    for key, array in payload.items():
        assert arrays[key].dtype == array.dtype
        assert arrays[key].shape == array.shape
        assert arrays[key].tobytes() == array.tobytes()


def test_equal_arrays_make_equal_files(payload_home: Home) -> None:
    for name in ("a", "b"):
        payloads.write(payload_home, "run", name, {"x": np.arange(5)})
    assert payload_home.payload("run", "a").read_bytes() == payload_home.payload("run", "b").read_bytes()


def test_objects_are_never_written(payload_home: Home) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        payloads.write(payload_home, "run", "name", {"x": np.array([print], dtype=object)})
    assert list(payload_home.folder("run").iterdir()) == []


def test_numpy_can_read_a_payload(payload_home: Home) -> None:
    payloads.write(payload_home, "run", "name", {"x": np.arange(5), "server/bias": np.zeros(())})
    with np.load(payload_home.payload("run", "name"), allow_pickle=False) as archive:
        assert archive.files == ["x", "server/bias"]
        assert archive["x"].tolist() == [0, 1, 2, 3, 4]


def test_a_pickle_in_its_place_is_refused(payload_home: Home) -> None:
    payload_home.folder("run").mkdir()
    np.savez(payload_home.payload("run", "x"), x=np.array([{}], dtype=object))
    with pytest.raises(Damaged, match=r"x\.npz: cannot be read"):
        payloads.read(payload_home, "run", "x")


@pytest.mark.parametrize("cut", [0, 1, 50, 600])
def test_a_truncated_payload_is_reported_by_name(cut: int, payload_home: Home) -> None:
    payloads.write(payload_home, "run", "name", {"x": np.arange(100.0)})
    os.truncate(payload_home.payload("run", "name"), cut)
    with pytest.raises(Damaged, match=r"run.name\.npz: cannot be read\. Run it again"):
        payloads.read(payload_home, "run", "name")
    assert not payloads.readable(payload_home, "run", "name")


def test_one_flipped_bit_is_noticed_or_changes_nothing(payload_home: Home) -> None:
    payloads.write(payload_home, "run", "name", {"x": np.arange(10.0)})
    path = payload_home.payload("run", "name")
    noticed = 0
    body = path.read_bytes()
    for index in range(len(body)):
        path.write_bytes(body[:index] + bytes([body[index] ^ 1]) + body[index + 1 :])
        if payloads.readable(payload_home, "run", "name"):
            (array,) = payloads.read(payload_home, "run", "name").values()
            assert array.tolist() == list(range(10))
        else:
            noticed += 1
    assert noticed > len(body) / 2


def test_a_payload_without_arrays_counts_as_unreadable(payload_home: Home) -> None:
    payloads.write(payload_home, "run", "name", {})
    assert payloads.read(payload_home, "run", "name") == {}
    assert not payloads.readable(payload_home, "run", "name")


def test_a_missing_payload_is_reported_by_name(payload_home: Home) -> None:
    with pytest.raises(Damaged, match=r"name\.npz: is missing"):
        payloads.read(payload_home, "run", "name")


def test_a_full_disk_leaves_the_old_file_and_no_other(payload_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    payloads.write(payload_home, "run", "name", {"x": np.arange(3)})
    before = payload_home.payload("run", "name").read_bytes()

    def raise_full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", raise_full)
    with pytest.raises(HomeFull, match="no space is left"):
        payloads.write(payload_home, "run", "name", {"x": np.arange(9)})
    assert payload_home.payload("run", "name").read_bytes() == before
    assert [path.name for path in payload_home.folder("run").iterdir()] == ["name.npz"]


def test_over_the_quota_nothing_is_written(payload_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "0.0001")
    payloads.write(payload_home, "run", "small", {"x": np.zeros(1000)})
    with pytest.raises(HomeFull):
        payloads.write(payload_home, "run", "large", {"x": np.zeros(100_000)})
    assert not payload_home.payload("run", "large").exists()


def test_a_name_that_leads_out_of_the_home_is_refused(payload_home: Home) -> None:
    with pytest.raises(BadInput):
        payloads.write(payload_home, "run", "../../out", {"x": np.zeros(1)})


def test_keep_only_removes_files_that_no_event_names(payload_home: Home) -> None:
    for name in ("a", "b", "c"):
        payloads.write(payload_home, "run", name, {"x": np.zeros(1)})
    (payload_home.folder("run") / ".c.npz.1234.tmp").write_bytes(b"half")
    (payload_home.folder("run") / "notes.txt").write_text("not ours")
    payloads.keep_only(payload_home, "run", {"a"})
    assert sorted(path.name for path in payload_home.folder("run").iterdir()) == ["a.npz", "notes.txt"]
    payloads.keep_only(payload_home, "never-seen", {"a"})


def test_payloads_in_the_trash_are_hidden_at_once(payload_home: Home) -> None:
    payloads.write(payload_home, "run", "a", {"x": np.zeros(1)})
    payloads.move_to_trash(payload_home, "run")
    assert not payload_home.folder("run").exists()
    assert len(list(payload_home.payloads.iterdir())) == 1
    payloads.empty_trash(payload_home)
    assert list(payload_home.payloads.iterdir()) == []
    payloads.move_to_trash(payload_home, "run")
