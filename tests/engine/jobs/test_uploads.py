"""The album: what people bring is kept once, whole, in its home alone, and is gone when they say so."""

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
from engine.images import cleaned
from engine.jobs.home import Home
from engine.jobs.store import Store
from engine.jobs.uploads import STALE_S, UploadedPictures
from tests.engine.jobs.makers import photo, rgb, saved, seen

ABSENT = "0123456789abcdef"


@pytest.fixture
def album() -> UploadedPictures:
    return UploadedPictures(Home.find())


def files(album: UploadedPictures) -> list[str]:
    return sorted(path.name for path in album.home.pictures.iterdir()) if album.home.pictures.exists() else []


def other(side: int = 30) -> bytes:
    return saved(photo(side, side), "PNG")


def test_a_picture_is_kept_clean_under_what_it_shows(album: UploadedPictures) -> None:
    name = album.add(saved(photo(300, 500), "JPEG", comment="a secret place"))
    body = album.read(name)
    assert seen(body).shape == (256, 256, 3)
    assert name == sha256(body).hexdigest()[:16]
    assert files(album) == [f"{name}.png"] and (album.home.pictures / f"{name}.png").read_bytes() == body
    assert b"secret" not in body


def test_the_same_picture_twice_is_one(album: UploadedPictures) -> None:
    assert album.add(rgb()) == album.add(saved(photo(), "PNG", optimize=True)) == album.add(cleaned(rgb()))
    assert len(files(album)) == 1


def test_the_newest_comes_first_and_bringing_it_again_makes_it_new(album: UploadedPictures) -> None:
    names = [album.add(other(side)) for side in range(10, 22)]
    assert album.names() == tuple(reversed(names))
    album.add(other(10))
    assert album.names() == (names[0], *reversed(names[1:]))


def test_an_album_is_empty_before_the_first_picture(home: Path) -> None:
    album = UploadedPictures(Home.named())
    assert album.names() == ()
    album.remove(ABSENT)
    assert not home.exists()
    album.add(rgb())
    assert len(album.names()) == 1


def test_what_is_not_ours_is_not_shown(album: UploadedPictures) -> None:
    name = album.add(rgb())
    for stranger in ("notes.png", f"{ABSENT}.jpg", ABSENT, f".{ABSENT}.png.12.tmp", f"{ABSENT.upper()}.png"):
        (album.home.pictures / stranger).write_bytes(b"x")
    assert album.names() == (name,)


def test_what_is_no_picture_leaves_nothing_behind(album: UploadedPictures) -> None:
    with pytest.raises(BadInput, match="must be a PNG or JPEG"):
        album.add(b"MZ" + bytes(99))
    assert files(album) == []


@pytest.mark.parametrize(
    "name", ["", "..", "../../etc/passwd", ABSENT[:-1], ABSENT + "0", ABSENT.upper(), ABSENT + "\n"]
)
def test_a_name_that_is_none_never_becomes_a_path(
    album: UploadedPictures, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Home, "pictures", property(lambda _: pytest.fail("a path was made")))
    for act in (album.read, album.remove):
        with pytest.raises(BadInput, match="picture: a name must be 16 digits") as refused:
            act(name)
        assert refused.value.remedy


def test_a_picture_that_is_not_there_is_said(album: UploadedPictures) -> None:
    with pytest.raises(UnknownName, match=f"still kept, got {ABSENT}\\. Bring"):
        album.read(ABSENT)


def test_a_removed_picture_is_gone_and_the_others_stay(album: UploadedPictures) -> None:
    first, second = album.add(rgb()), album.add(other())
    album.remove(first)
    album.remove(first)
    assert album.names() == (second,) and files(album) == [f"{second}.png"]
    with pytest.raises(UnknownName):
        album.read(first)


@pytest.mark.parametrize("spoilt", [b"", b"half", cleaned(other())])
def test_a_damaged_picture_is_named_and_mended_by_bringing_it_again(album: UploadedPictures, spoilt: bytes) -> None:
    name = album.add(rgb())
    (album.home.pictures / f"{name}.png").write_bytes(spoilt)
    with pytest.raises(Damaged, match=rf"{name}\.png: cannot be read, .* Bring the picture again"):
        album.read(name)
    assert album.add(rgb()) == name
    assert album.read(name) == cleaned(rgb())


def test_a_folder_in_place_of_a_picture_is_said(album: UploadedPictures) -> None:
    name = album.add(rgb())
    album.remove(name)
    (album.home.pictures / f"{name}.png" / "deep").mkdir(parents=True)
    with pytest.raises(Damaged):
        album.read(name)
    for act in (lambda: album.add(rgb()), lambda: album.remove(name)):
        with pytest.raises(HomeUnwritable):
            act()
    assert files(album) == [f"{name}.png"]


# --- a home that is full, or cannot be written -------------------------------------------------------------


def test_over_the_quota_nothing_is_written(album: UploadedPictures, monkeypatch: pytest.MonkeyPatch) -> None:
    name = album.add(rgb())
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", str((album.home.used() + 20) / 1e9))
    with pytest.raises(HomeFull, match="allowed"):
        album.add(other())
    assert files(album) == [f"{name}.png"]
    assert album.add(rgb()) == name  # what is there needs no room


def test_a_nearly_full_disk_is_left_alone(album: UploadedPictures, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(HomeFull, match="are free"):
        album.add(rgb())
    assert files(album) == []


@pytest.mark.parametrize(("number", "wrong"), [(errno.ENOSPC, HomeFull), (errno.EIO, HomeUnwritable)])
def test_nothing_half_written_stays(
    album: UploadedPictures, monkeypatch: pytest.MonkeyPatch, number: int, wrong: type[Exception]
) -> None:
    def fails(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(wrong):
        album.add(rgb())
    assert files(album) == [] and album.names() == ()


@pytest.mark.parametrize("inside", ["", "pictures"])
def test_a_file_in_place_of_a_folder_is_said(home: Path, inside: str) -> None:
    (home / inside).parent.mkdir(exist_ok=True)
    (home / inside).write_text("precious")
    for act in (lambda: UploadedPictures(Home.named()).add(rgb()), UploadedPictures(Home.named()).names):
        with pytest.raises(HomeUnwritable, match="must be in a folder that can be written"):
            act()
    assert (home / inside).read_text() == "precious"


def test_the_rest_of_a_killed_writer_is_swept_up_later(album: UploadedPictures) -> None:
    album.home.pictures.mkdir()
    old, young = (album.home.pictures / f".{ABSENT}.png.{word}.tmp" for word in ("old", "young"))
    for rough in (old, young):
        rough.write_bytes(b"half")
    os.utime(old, (time.time() - STALE_S - 60,) * 2)
    name = album.add(rgb())
    assert files(album) == sorted([young.name, f"{name}.png"])


def test_many_may_bring_pictures_at_once(album: UploadedPictures) -> None:
    with ThreadPoolExecutor(8) as many:
        names = list(many.map(lambda at: album.add(other(10 + at % 4)), range(40)))
    assert sorted(album.names()) == sorted(set(names)) and len(set(names)) == 4
    assert files(album) == sorted(f"{name}.png" for name in set(names))
    assert all(album.read(name) for name in names)


# --- the neighbours ----------------------------------------------------------------------------------------


def test_pictures_count_towards_the_home_and_nobody_takes_them_for_strays() -> None:
    store = Store()
    album, before = UploadedPictures(store.home), store.used()
    name = album.add(rgb())
    assert store.used() >= before + len(album.read(name))
    store.tidy()
    store.close()
    assert album.names() == (name,)
    assert doctor.payloads().text == "0 files; 0 unreadable, 0 missing, 0 stray"
    assert doctor.home_folder().ok


def test_a_page_keeps_pictures_without_torch(home: Path) -> None:
    code = """if True:
        import sys
        from engine.jobs.uploads import UploadedPictures
        from engine.jobs.home import Home
        album = UploadedPictures(Home.find())
        album.read(album.add(sys.stdin.buffer.read()))
        print(*sys.modules)"""
    done = subprocess.run([sys.executable, "-c", code], input=rgb(), cwd=ROOT, capture_output=True, check=True)
    assert b"torch" not in done.stdout.split()
    assert len(UploadedPictures(Home.find()).names()) == 1
