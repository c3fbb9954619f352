"""The home: found, made, bounded, and refused in words."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.environment import ROOT
from engine.errors import BadInput, HomeFull, HomeUnwritable
from engine.jobs.home import RESERVE, Home, quota, safe, size


def test_the_home_is_named_by_the_environment_and_made_on_demand(home: Path) -> None:
    assert not home.exists()
    assert Home.find().path == home
    assert (home / "payloads").is_dir()


def test_without_a_name_it_lies_in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.delenv("LEAKLENS_HOME")
    monkeypatch.setattr(Path, "mkdir", lambda path, **_: made.append(path))
    assert Home.find().path == ROOT / ".leaklens"
    assert made == [ROOT / ".leaklens" / "payloads"]
    assert (ROOT / "engine" / "jobs" / "home.py").exists()


def test_a_folder_given_wins(tmp_path: Path) -> None:
    assert Home.find(tmp_path / "mine").path == tmp_path / "mine"


def test_a_file_in_its_place_is_refused_and_left_alone(home: Path) -> None:
    home.write_text("precious")
    with pytest.raises(HomeUnwritable, match=r"home-\d+.*must be in a folder.*LEAKLENS_HOME"):
        Home.find()
    assert home.read_text() == "precious"


def test_a_place_where_nothing_can_be_made_is_refused() -> None:
    with pytest.raises(HomeUnwritable, match="/proc/nowhere"):
        Home.find(Path("/proc/nowhere/home"))


def test_over_the_quota_nothing_more_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home.find(tmp_path / "h")
    (home.payloads / "big").write_bytes(bytes(3000))
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "0.000004")
    home.room(500)
    with pytest.raises(HomeFull, match=r"3 kB of 4 kB allowed.*Delete runs"):
        home.room(1500)


def test_more_than_the_disk_holds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "1e12")
    with pytest.raises(HomeFull, match="are free"):
        Home.find(tmp_path / "h").room(10**18)


def test_a_little_of_the_disk_is_left_to_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home.find(tmp_path / "h")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=RESERVE + 1000))
    home.room(1000)
    with pytest.raises(HomeFull, match=r"are free\. Delete runs"):
        home.room(1001)


@pytest.mark.parametrize("name", ["~nobody-of-this-name/x", "/tmp/\udcff", "/tmp/\ud800", "/tmp/a\0b"])
def test_a_name_that_is_none_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"LEAKLENS_HOME": name})
    with pytest.raises(HomeUnwritable, match=r"^LEAKLENS_HOME: must be .*Choose another folder") as refused:
        Home.find()
    str(refused.value).encode()  # it can be printed


def test_a_place_is_named_without_being_made(home: Path) -> None:
    assert Home.named() == Home(home)
    assert not home.exists()


@pytest.mark.parametrize("said", ["0", "-1", "much", "nan"])
def test_a_quota_must_be_a_number_above_0(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", said)
    with pytest.raises(BadInput, match=f"must be a number above 0, got {said}"):
        quota()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_has_its_own_name_and_remedy(number: int, tmp_path: Path) -> None:
    home = Home.find(tmp_path / "h")
    with pytest.raises(HomeFull, match=r"no space is left\. Delete runs"), home.explained():
        raise OSError(number, "No space left on device")


@pytest.mark.parametrize("name", ["", "..", "../out", "a/b", ".hidden", "a\\b", "a b", "x" * 101, "a\n"])
def test_no_name_leads_out_of_the_home(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a name must be"):
        safe("run", name)
    with pytest.raises(BadInput):
        Home(tmp_path).payload("run", name)
    with pytest.raises(BadInput):
        Home(tmp_path).folder(name)


def test_size_counts_every_file_and_no_folder_is_none(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "one").write_bytes(bytes(10))
    (tmp_path / "a" / "b" / "two").write_bytes(bytes(32))
    assert size(tmp_path) == 42
    assert size(tmp_path / "nowhere") == 0


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"), (1, "1 B"), (999, "999 B"), (1000, "1 kB"), (73_728, "73.7 kB"), (999_999, "1,000 kB"),
        (5e8, "500 MB"), (20e9, "20 GB"), (12_345e9, "12.3 TB"), (1e21, "1,000,000,000 TB"),
    ],
)  # fmt: skip
def test_bytes_are_told_as_people_tell_them(count: float, words: str) -> None:
    from engine.jobs.home import gigabytes

    assert gigabytes(count) == words
