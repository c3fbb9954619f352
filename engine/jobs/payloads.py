"""Payloads: the arrays of a run, stored in files next to its events. A file is written completely or not at all."""

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
    """Temporary file, fsync, rename: a reader that receives the name later finds the complete file."""
    path = home.payload(run, name)
    home.require_room(sum(array.nbytes for array in payload.values()))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    with home.explained():
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _save(temporary, payload)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(path.parent)


def read(home: Home, run: str, name: str) -> dict[str, numpy.ndarray[Any, Any]]:
    """Every array of a payload. The error names the file if it is missing or damaged."""
    from numpy.lib import format

    path = home.payload(run, name)
    arrays = {}
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            for entry in archive.namelist():
                with archive.open(entry) as member:
                    arrays[entry.removesuffix(".npy")] = format.read_array(member, allow_pickle=False)
        return arrays
    except FileNotFoundError:
        reason = "is missing"
    # zipfile raises RuntimeError when a flipped bit marks the file as encrypted
    except (OSError, ValueError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile):
        reason = "cannot be read"
    raise Damaged(f"{path}: {reason}", "Run it again: it resumes from an older checkpoint, or from the start")


def readable(home: Home, run: str, name: str) -> bool:
    """True if this payload can be read completely and holds at least one array."""
    try:
        return bool(read(home, run, name))
    except LeakLensError:
        return False


def keep_only(home: Home, run: str, names: Collection[str]) -> None:
    """Remove files that no event names. A crash between file and event leaves them, and so do removed events."""
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


def move_to_trash(home: Home, run: str) -> None:
    """Hide all payloads of a run in one step. `empty_trash` frees the space."""
    folder = home.folder(run)
    with home.explained():
        if folder.exists():
            folder.rename(home.payloads / f"{TRASH}{secrets.token_hex(8)}")


def empty_trash(home: Home) -> None:
    with home.explained():
        for folder in home.payloads.glob(f"{TRASH}*"):
            shutil.rmtree(folder, ignore_errors=True)


def _save(path: Path, payload: Payload) -> None:
    # Not numpy.savez: it forbids the keys `file` and `allow_pickle`, and it writes the time into the file.
    from numpy.lib import format

    with path.open("wb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for key, array in payload.items():
                with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=True) as member:
                    format.write_array(member, array, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut, on systems that can open a folder for this."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _files(home: Home, run: str) -> list[Path]:
    folder = home.folder(run)
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if path.suffix in (".npz", ".tmp")]
