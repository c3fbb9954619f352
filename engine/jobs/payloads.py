"""Arrays beside the events: written whole or not at all, read back or refused by name."""

from __future__ import annotations

import os
import secrets
import shutil
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import Damaged, LeakLensError
from engine.jobs.home import Home

if TYPE_CHECKING:
    import numpy

    from engine.events import Payload

TRASH = ".trash-"


def write(home: Home, run: str, name: str, payload: Payload) -> None:
    """Temporary file, fsync, rename: whoever hears the name afterwards finds the whole file."""
    path = home.payload(run, name)
    home.room(sum(array.nbytes for array in payload.values()))
    rough = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    with home.explained():
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _save(rough, payload)
            rough.replace(path)
        finally:
            rough.unlink(missing_ok=True)
        _settle(path.parent)


def read(home: Home, run: str, name: str) -> dict[str, numpy.ndarray[Any, Any]]:
    """Every array of a payload, or the name of the file that cannot be read."""
    from numpy.lib import format

    path, found = home.payload(run, name), {}
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            for entry in archive.namelist():
                with archive.open(entry) as member:
                    found[entry.removesuffix(".npy")] = format.read_array(member, allow_pickle=False)
        return found
    except FileNotFoundError:
        reason = "is missing"
    except (OSError, ValueError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile):  # Runtime: as if encrypted
        reason = "cannot be read"
    raise Damaged(f"{path}: {reason}", "Ask the run again: it goes on from an older checkpoint, or from the start")


def whole(home: Home, run: str, name: str) -> bool:
    """Can this payload be read to its end, and is anything in it?"""
    try:
        return bool(read(home, run, name))
    except LeakLensError:
        return False


def keep_only(home: Home, run: str, names: Collection[str]) -> None:
    """Remove what no event names: left by an end between file and event, or told by events taken back."""
    keep = {home.payload(run, name).name for name in names}
    with home.explained():
        for path in _files(home, run):
            if path.name not in keep:
                path.unlink(missing_ok=True)


def remove(home: Home, run: str, names: Collection[str]) -> None:
    present = {path.name for path in _files(home, run)}
    with home.explained():
        for name in names:
            path = home.payload(run, name)
            if path.name in present:
                path.unlink(missing_ok=True)


def bury(home: Home, run: str) -> None:
    """Take all payloads of a run out of sight in one step; `empty_trash` frees the space."""
    folder = home.folder(run)
    with home.explained():
        if folder.exists():
            folder.rename(home.payloads / f"{TRASH}{secrets.token_hex(8)}")


def empty_trash(home: Home) -> None:
    with home.explained():
        for folder in home.payloads.glob(f"{TRASH}*"):
            shutil.rmtree(folder, ignore_errors=True)


def _save(path: Path, payload: Payload) -> None:
    # Not numpy.savez: its arguments forbid the keys `file` and `allow_pickle`, and the time goes into its file.
    from numpy.lib import format

    with path.open("wb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for key, array in payload.items():
                with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=True) as member:
                    format.write_array(member, array, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())


def _settle(folder: Path) -> None:
    """Make a rename outlive a power cut, where folders can be opened for that."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _files(home: Home, run: str) -> list[Path]:
    folder = home.folder(run)
    return [path for path in folder.iterdir() if path.suffix in (".npz", ".tmp")] if folder.is_dir() else []
