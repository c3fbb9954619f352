"""Uploaded pictures: each is stored once and complete, in its home alone, until the visitor removes it."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine import doctor
from engine.environment import ROOT
from engine.errors import BadInput, Damaged, HomeFull, HomeUnwritable, UnknownName
from engine.images import clean_upload
from engine.jobs.home import Home
from engine.jobs.store import Store
from engine.jobs.uploads import STALE_S, UploadedPictures
from tests.engine.jobs.makers import photo, png_pixels, rgb, saved

ABSENT = "0123456789abcdef"


@pytest.fixture
def uploads() -> UploadedPictures:
    return UploadedPictures(Home.find())


def files(uploads: UploadedPictures) -> list[str]:
    folder = uploads.home.pictures
    if not folder.exists():
        return []
    return sorted(path.name for path in folder.iterdir())


def small_picture(side: int = 30) -> bytes:
    return saved(photo(side, side), "PNG")


def test_a_picture_is_cleaned_and_named_by_its_content(uploads: UploadedPictures) -> None:
    name = uploads.add(saved(photo(300, 500), "JPEG", comment="a secret place"))
    body = uploads.read(name)
    assert png_pixels(body).shape == (256, 256, 3)
    assert name == sha256(body).hexdigest()[:16]
    assert files(uploads) == [f"{name}.png"] and (uploads.home.pictures / f"{name}.png").read_bytes() == body
    assert b"secret" not in body


def test_a_picture_uploaded_twice_is_stored_once(uploads: UploadedPictures) -> None:
    assert uploads.add(rgb()) == uploads.add(saved(photo(), "PNG", optimize=True)) == uploads.add(clean_upload(rgb()))
    assert len(files(uploads)) == 1


def test_the_newest_picture_is_first_and_an_upload_makes_it_the_newest_again(uploads: UploadedPictures) -> None:
    names = [uploads.add(small_picture(side)) for side in range(10, 22)]
    assert uploads.names() == tuple(reversed(names))
    uploads.add(small_picture(10))
    assert uploads.names() == (names[0], *reversed(names[1:]))


def test_there_are_no_pictures_before_the_first_upload(home: Path) -> None:
    uploads = UploadedPictures(Home.named())
    assert uploads.names() == ()
    uploads.remove(ABSENT)
    assert not home.exists()
    uploads.add(rgb())
    assert len(uploads.names()) == 1


def test_files_with_other_names_are_not_listed(uploads: UploadedPictures) -> None:
    name = uploads.add(rgb())
    for file_name in ("notes.png", f"{ABSENT}.jpg", ABSENT, f".{ABSENT}.png.12.tmp", f"{ABSENT.upper()}.png"):
        (uploads.home.pictures / file_name).write_bytes(b"x")
    assert uploads.names() == (name,)


def test_a_refused_file_leaves_nothing_behind(uploads: UploadedPictures) -> None:
    with pytest.raises(BadInput, match="must be a PNG or JPEG"):
        uploads.add(b"MZ" + bytes(99))
    assert files(uploads) == []


@pytest.mark.parametrize(
    "name", ["", "..", "../../etc/passwd", ABSENT[:-1], ABSENT + "0", ABSENT.upper(), ABSENT + "\n"]
)
def test_an_invalid_name_never_becomes_a_path(
    uploads: UploadedPictures, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Home, "pictures", property(lambda _: pytest.fail("a path was made")))
    for access in (uploads.read, uploads.remove):
        with pytest.raises(BadInput, match="picture: a name must be 16 digits") as refused:
            access(name)
        assert refused.value.remedy


def test_a_missing_picture_is_reported(uploads: UploadedPictures) -> None:
    with pytest.raises(UnknownName, match=f"not removed, got {ABSENT}\\. Upload"):
        uploads.read(ABSENT)


def test_a_removed_picture_is_gone_and_the_others_stay(uploads: UploadedPictures) -> None:
    first = uploads.add(rgb())
    second = uploads.add(small_picture())
    uploads.remove(first)
    uploads.remove(first)
    assert uploads.names() == (second,) and files(uploads) == [f"{second}.png"]
    with pytest.raises(UnknownName):
        uploads.read(first)


@pytest.mark.parametrize("damage", [b"", b"half", clean_upload(small_picture())])
def test_a_damaged_picture_is_reported_and_a_new_upload_repairs_it(uploads: UploadedPictures, damage: bytes) -> None:
    name = uploads.add(rgb())
    (uploads.home.pictures / f"{name}.png").write_bytes(damage)
    with pytest.raises(Damaged, match=rf"{name}\.png: cannot be read, .* Upload the picture again"):
        uploads.read(name)
    assert uploads.add(rgb()) == name
    assert uploads.read(name) == clean_upload(rgb())


def test_a_folder_in_place_of_a_picture_is_reported(uploads: UploadedPictures) -> None:
    name = uploads.add(rgb())
    uploads.remove(name)
    (uploads.home.pictures / f"{name}.png" / "deep").mkdir(parents=True)
    with pytest.raises(Damaged):
        uploads.read(name)
    with pytest.raises(HomeUnwritable):
        uploads.add(rgb())
    with pytest.raises(HomeUnwritable):
        uploads.remove(name)
    assert files(uploads) == [f"{name}.png"]


# --- a home that is full, or cannot be written -------------------------------------------------------------


def test_over_the_quota_nothing_is_written(uploads: UploadedPictures, monkeypatch: pytest.MonkeyPatch) -> None:
    name = uploads.add(rgb())
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", str((uploads.home.used() + 20) / 1e9))
    with pytest.raises(HomeFull, match="allowed"):
        uploads.add(small_picture())
    assert files(uploads) == [f"{name}.png"]
    assert uploads.add(rgb()) == name  # a stored picture needs no room


def test_nothing_is_written_to_a_nearly_full_disk(uploads: UploadedPictures, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(HomeFull, match="are free"):
        uploads.add(rgb())
    assert files(uploads) == []


@pytest.mark.parametrize(("number", "error"), [(errno.ENOSPC, HomeFull), (errno.EIO, HomeUnwritable)])
def test_no_incomplete_file_stays(
    uploads: UploadedPictures, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    def raise_error(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", raise_error)
    with pytest.raises(error):
        uploads.add(rgb())
    assert files(uploads) == [] and uploads.names() == ()


@pytest.mark.parametrize("inside", ["", "pictures"])
def test_a_file_in_place_of_a_folder_is_reported(home: Path, inside: str) -> None:
    (home / inside).parent.mkdir(exist_ok=True)
    (home / inside).write_text("precious")
    uploads = UploadedPictures(Home.named())
    with pytest.raises(HomeUnwritable, match="must be in a folder that can be written"):
        uploads.add(rgb())
    with pytest.raises(HomeUnwritable, match="must be in a folder that can be written"):
        uploads.names()
    assert (home / inside).read_text() == "precious"


def test_temporary_files_of_a_killed_process_are_removed_later(uploads: UploadedPictures) -> None:
    uploads.home.pictures.mkdir()
    old = uploads.home.pictures / f".{ABSENT}.png.old.tmp"
    young = uploads.home.pictures / f".{ABSENT}.png.young.tmp"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - STALE_S - 60,) * 2)
    name = uploads.add(rgb())
    assert files(uploads) == sorted([young.name, f"{name}.png"])


def test_many_visitors_may_upload_pictures_at_once(uploads: UploadedPictures) -> None:
    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda number: uploads.add(small_picture(10 + number % 4)), range(40)))
    assert sorted(uploads.names()) == sorted(set(names)) and len(set(names)) == 4
    assert files(uploads) == sorted(f"{name}.png" for name in set(names))
    assert all(uploads.read(name) for name in names)


# --- the store and the doctor ----------------------------------------------------------------------------------------


def test_pictures_count_towards_the_quota_and_the_doctor_reports_no_stray() -> None:
    store = Store()
    uploads = UploadedPictures(store.home)
    before = store.used()
    name = uploads.add(rgb())
    assert store.used() >= before + len(uploads.read(name))
    store.complete_deletions()
    store.close()
    assert uploads.names() == (name,)
    assert doctor.payloads().text == "0 files; 0 unreadable, 0 missing, 0 stray"
    assert doctor.home_folder().ok


def test_a_page_stores_pictures_without_torch(home: Path) -> None:
    code = """if True:
        import sys
        from engine.jobs.uploads import UploadedPictures
        from engine.jobs.home import Home
        uploads = UploadedPictures(Home.find())
        uploads.read(uploads.add(sys.stdin.buffer.read()))
        print(*sys.modules)"""
    done = subprocess.run([sys.executable, "-c", code], input=rgb(), cwd=ROOT, capture_output=True, check=True)
    assert b"torch" not in done.stdout.split()
    assert len(UploadedPictures(Home.find()).names()) == 1
