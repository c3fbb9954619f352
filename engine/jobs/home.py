"""The home: the folder that holds all state, its size limit, and its errors as sentences with a fix."""

from __future__ import annotations

import errno
import math
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from engine.environment import ROOT
from engine.errors import HomeError, HomeFull, HomeUnwritable, refusal, shown
from engine.open_files import limit_error

QUOTA_GB = 20.0
PRIORS = "priors"  # a folder next to those of the runs: what attacks learnt from public pictures
RESERVE = 8_000_000  # bytes of the disk that runs leave free, so that the store can always write its rows
COUNT_S = 1.0  # a count of the bytes is valid for this long, because other processes write, too
COUNT_SHARE = 20  # or for this many times the duration of the count, while the home is well below its quota
COUNT_MOST_S = 5.0
ROOMY = 0.8  # of the quota
SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
UNITS = {"TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1.0}
FREE_SPACE_REMEDY = "Delete runs that are no longer needed, or raise LEAKLENS_QUOTA_GB where the disk has room"

_counts: dict[Path, tuple[float, int]] = {}  # for each home: the time until which its count is valid, and the bytes


@dataclass(frozen=True)
class Home:
    """One folder that holds the store, every payload, and the uploaded pictures."""

    path: Path

    @classmethod
    def find(cls, path: Path | None = None) -> Home:
        """The named home. Its folders are created if they do not exist."""
        home = cls.named(path)
        with home.explained():
            home.payloads.mkdir(parents=True, exist_ok=True)
        return home

    @classmethod
    def named(cls, path: Path | None = None) -> Home:
        """The folder given, else `$LEAKLENS_HOME`, else `.leaklens` in the project. Nothing is created."""
        chosen = str(path or os.environ.get("LEAKLENS_HOME") or ROOT / ".leaklens")
        try:
            if "\0" in chosen:
                raise ValueError
            chosen.encode()  # a name that is no valid text could be neither shown nor sent to a worker
            return cls(Path(chosen).expanduser().absolute())
        except (RuntimeError, ValueError, OSError) as error:  # no user for `~name`, no text, no current folder
            printable = chosen.encode(errors="backslashreplace").decode().replace("\0", "\\0")
            rule = "must be a folder with a valid full path"
            raise HomeUnwritable(f"LEAKLENS_HOME: {rule}, got {shown(printable)}", "Choose another folder") from error

    @property
    def database(self) -> Path:
        return self.path / "leaklens.db"

    @property
    def payloads(self) -> Path:
        return self.path / "payloads"

    @property
    def pictures(self) -> Path:
        return self.path / "pictures"

    def folder(self, run: str) -> Path:
        return self.payloads / safe_name("run", run)

    def payload(self, run: str, name: str) -> Path:
        return self.folder(run) / f"{safe_name('payload', name)}.npz"

    def used(self) -> int:
        """Bytes of everything under the home."""
        return folder_size(self.path)

    def require_room(self, need: int = 0) -> None:
        """Raise HomeFull if writing this many bytes would exceed the quota or fill the disk."""
        limit = quota()
        if self._estimate(need, limit) > limit:
            used = self.used()
            if used + need > limit:
                raise HomeFull(
                    f"{self.path}: holds {readable_size(used)} of {readable_size(limit)} allowed", FREE_SPACE_REMEDY
                )
        with self.explained():
            free = shutil.disk_usage(self.path).free
        if need + RESERVE > free:
            wanted = f"needs {readable_size(need)}, and {readable_size(RESERVE)} must stay free"
            raise HomeFull(f"{self.path}: {wanted}; {readable_size(free)} are free", FREE_SPACE_REMEDY)

    def _estimate(self, need: int, limit: float) -> int:
        """Bytes under the home after the write. Counting is slow, so one count serves for a second or more."""
        began = time.monotonic()
        until, used = _counts.get(self.path, (0.0, 0))
        if began >= until:
            used = self.used()
            now = time.monotonic()
            validity = COUNT_S
            if used + need < ROOMY * limit:
                validity = max(COUNT_S, min(COUNT_MOST_S, COUNT_SHARE * (now - began)))
            until = now + validity
        _counts[self.path] = (until, used + need)
        return used + need

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn an error of the operating system into one that names the folder and the fix."""
        try:
            yield
        except OSError as error:
            raise self._explain(error) from error

    def _explain(self, error: OSError) -> HomeError:
        if error.errno in NO_ROOM:
            return HomeFull(f"{self.path}: no space is left", FREE_SPACE_REMEDY)
        limit = limit_error(error)
        if limit:
            return limit
        reason = error.strerror or str(error)
        path = error.filename or self.path
        return HomeUnwritable(
            f"{path}: must be in a folder that can be written: {reason.lower()}",
            "Choose another folder with LEAKLENS_HOME, or correct its permissions",
        )


def safe_name(noun: str, name: str) -> str:
    """The name, if it is a valid file name on every system and cannot lead out of the home."""
    if not SAFE.fullmatch(name):
        raise refusal(noun, "a name must be letters, digits, dots, dashes and underscores, at most 100", name)
    return name


def quota() -> float:
    """Bytes that the home may hold."""
    setting = os.environ.get("LEAKLENS_QUOTA_GB") or str(QUOTA_GB)
    try:
        allowed = float(setting)
    except ValueError:
        allowed = math.nan
    if not allowed > 0:
        raise refusal("LEAKLENS_QUOTA_GB", "must be a number above 0", setting)
    return allowed * 1e9


def folder_size(folder: Path) -> int:
    """Bytes of all files below a folder. Files that disappear during the count are not counted."""
    total = 0
    folders = [str(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return total


def readable_size(count: float) -> str:
    """A number of bytes as text for people: 512 B, 73.7 kB, 20 GB."""
    unit = next((unit for unit, size in UNITS.items() if count >= size), "B")
    amount = count / UNITS[unit]
    return f"{amount:.3g} {unit}" if amount < 999.5 else f"{amount:,.0f} {unit}"


def locked(file: IO[bytes]) -> bool:
    """Lock a file until it is closed. False if another process has locked it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a disk without locks
        return True
    return True
