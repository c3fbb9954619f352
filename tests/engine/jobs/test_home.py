"""The home: where it is, its size limit, and its errors."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.environment import ROOT
from engine.errors import BadInput, HomeFull, HomeUnwritable
from engine.jobs.home import RESERVE, Home, folder_size, quota, readable_size, safe_name


def test_the_environment_names_the_home_and_it_is_created_on_demand(home: Path) -> None:
    assert not home.exists()
    assert Home.find().path == home
    assert (home / "payloads").is_dir()


def test_the_default_home_is_in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    created = []
    monkeypatch.delenv("LEAKLENS_HOME")
    monkeypatch.setattr(Path, "mkdir", lambda path, **_: created.append(path))
    assert Home.find().path == ROOT / ".leaklens"
    assert created == [ROOT / ".leaklens" / "payloads"]
    assert (ROOT / "engine" / "jobs" / "home.py").exists()


def test_an_argument_outranks_the_environment(tmp_path: Path) -> None:
    assert Home.find(tmp_path / "mine").path == tmp_path / "mine"


def test_a_file_in_its_place_is_refused_and_not_changed(home: Path) -> None:
    home.write_text("precious")
    with pytest.raises(HomeUnwritable, match=r"home-\d+.*must be in a folder.*LEAKLENS_HOME"):
        Home.find()
    assert home.read_text() == "precious"


def test_a_folder_that_cannot_be_created_is_refused() -> None:
    with pytest.raises(HomeUnwritable, match="/proc/nowhere"):
        Home.find(Path("/proc/nowhere/home"))


def test_a_write_over_the_quota_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home.find(tmp_path / "h")
    (home.payloads / "big").write_bytes(bytes(3000))
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "0.000004")
    home.require_room(500)
    with pytest.raises(HomeFull, match=r"3 kB of 4 kB allowed.*Delete runs"):
        home.require_room(1500)


def test_a_write_larger_than_the_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "1e12")
    with pytest.raises(HomeFull, match="are free"):
        Home.find(tmp_path / "h").require_room(10**18)


def test_a_reserve_of_the_disk_is_left_for_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home.find(tmp_path / "h")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=RESERVE + 1000))
    home.require_room(1000)
    with pytest.raises(HomeFull, match=r"are free\. Delete runs"):
        home.require_room(1001)


@pytest.mark.parametrize("name", ["~no-such-user-here/x", "/tmp/\udcff", "/tmp/\ud800", "/tmp/a\0b"])
def test_an_invalid_home_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"LEAKLENS_HOME": name})
    with pytest.raises(HomeUnwritable, match=r"^LEAKLENS_HOME: must be .*Choose another folder") as refused:
        Home.find()
    str(refused.value).encode()  # it can be printed


def test_a_home_is_named_without_being_created(home: Path) -> None:
    assert Home.named() == Home(home)
    assert not home.exists()


@pytest.mark.parametrize("setting", ["0", "-1", "much", "nan"])
def test_a_quota_must_be_a_number_above_0(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", setting)
    with pytest.raises(BadInput, match=f"must be a number above 0, got {setting}"):
        quota()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_has_its_own_error_and_remedy(number: int, tmp_path: Path) -> None:
    home = Home.find(tmp_path / "h")
    with pytest.raises(HomeFull, match=r"no space is left\. Delete runs"), home.explained():
        raise OSError(number, "No space left on device")


@pytest.mark.parametrize("name", ["", "..", "../out", "a/b", ".hidden", "a\\b", "a b", "x" * 101, "a\n"])
def test_no_name_leads_out_of_the_home(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a name must be"):
        safe_name("run", name)
    with pytest.raises(BadInput):
        Home(tmp_path).payload("run", name)
    with pytest.raises(BadInput):
        Home(tmp_path).folder(name)


def test_the_folder_size_counts_every_file_and_a_missing_folder_is_empty(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "one").write_bytes(bytes(10))
    (tmp_path / "a" / "b" / "two").write_bytes(bytes(32))
    assert folder_size(tmp_path) == 42
    assert folder_size(tmp_path / "nowhere") == 0


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"), (1, "1 B"), (999, "999 B"), (1000, "1 kB"), (73_728, "73.7 kB"), (999_999, "1,000 kB"),
        (5e8, "500 MB"), (20e9, "20 GB"), (12_345e9, "12.3 TB"), (1e21, "1,000,000,000 TB"),
    ],
)  # fmt: skip
def test_a_number_of_bytes_is_formatted_for_people(count: float, text: str) -> None:
    assert readable_size(count) == text
