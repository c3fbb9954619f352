"""The home of all state: where it lies, how full it may be, and what is wrong with it in plain words."""

from __future__ import annotations

import errno
import math
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.environment import ROOT
from engine.errors import HomeError, HomeFull, HomeUnwritable, refusal, shown

QUOTA_GB = 20.0
PRIORS = "priors"  # beside the folders of runs: what attacks learnt from public pictures
RESERVE = 8_000_000  # bytes of the disk that runs leave free: the store must always be able to write its rows
COUNT_S = 1.0  # so long a count of the bytes holds: others write, too
COUNT_SHARE = 20  # or so many times what the count took, while there is room
COUNT_MOST_S = 5.0
ROOMY = 0.8  # of the quota
SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
UNITS = {"TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1.0}
_COUNTED: dict[Path, tuple[float, int]] = {}  # of each home: until when its count holds, and the bytes
MAKE_ROOM = "Delete runs that are no longer needed, or raise LEAKLENS_QUOTA_GB where the disk has room"


@dataclass(frozen=True)
class Home:
    """One folder that holds the store, every payload, and the pictures people bring."""

    path: Path

    @classmethod
    def find(cls, path: Path | None = None) -> Home:
        """The named home, made where it is not there yet."""
        home = cls.named(path)
        with home.explained():
            home.payloads.mkdir(parents=True, exist_ok=True)
        return home

    @classmethod
    def named(cls, path: Path | None = None) -> Home:
        """The folder given, else `$LEAKLENS_HOME`, else `.leaklens` in the project."""
        chosen = str(path or os.environ.get("LEAKLENS_HOME") or ROOT / ".leaklens")
        try:
            if "\0" in chosen:
                raise ValueError
            chosen.encode()  # a name that is no text could be neither shown nor told to a worker
            return cls(Path(chosen).expanduser().absolute())
        except (RuntimeError, ValueError, OSError) as error:  # nobody's `~name`, no text, no current folder
            got = chosen.encode(errors="backslashreplace").decode().replace("\0", "\\0")
            law = "must be a folder that can be named in full"
            raise HomeUnwritable(f"LEAKLENS_HOME: {law}, got {shown(got)}", "Choose another folder") from error

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
        return self.payloads / safe("run", run)

    def payload(self, run: str, name: str) -> Path:
        return self.folder(run) / f"{safe('payload', name)}.npz"

    def used(self) -> int:
        """Bytes of everything under the home."""
        return size(self.path)

    def room(self, need: int = 0) -> None:
        """Refuse before writing what would break the quota or fill the disk."""
        limit = quota()
        if self._about(need, limit) > limit and (used := self.used()) + need > limit:
            raise HomeFull(f"{self.path}: holds {gigabytes(used)} of {gigabytes(limit)} allowed", MAKE_ROOM)
        with self.explained():
            free = shutil.disk_usage(self.path).free
        if need + RESERVE > free:
            wanted = f"{gigabytes(need)} are to be written and {gigabytes(RESERVE)} left"
            raise HomeFull(f"{self.path}: {wanted}, {gigabytes(free)} are free", MAKE_ROOM)

    def _about(self, need: int, limit: float) -> int:
        """Bytes under the home with what is to be written; counted anew every second or so, for counting takes long."""
        began = time.monotonic()
        until, used = _COUNTED.get(self.path, (0.0, 0))
        if began >= until:
            used = self.used()
            now = time.monotonic()
            roomy = used + need < ROOMY * limit
            until = now + max(COUNT_S, min(COUNT_MOST_S, COUNT_SHARE * (now - began)) if roomy else 0.0)
        _COUNTED[self.path] = (until, used + need)
        return used + need

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what the operating system says into what the owner of this folder can do."""
        try:
            yield
        except OSError as error:
            raise self.trouble(error) from error

    def trouble(self, error: OSError) -> HomeError:
        if error.errno in NO_ROOM:
            return HomeFull(f"{self.path}: no space is left", MAKE_ROOM)
        reason = error.strerror or str(error)
        where = error.filename or self.path
        return HomeUnwritable(
            f"{where}: must be in a folder that can be written: {reason.lower()}",
            "Choose another folder with LEAKLENS_HOME, or correct its permissions",
        )


def safe(noun: str, name: str) -> str:
    """A name that is one plain file name on every system, and never a way out of the home."""
    if not SAFE.fullmatch(name):
        raise refusal(noun, "a name must be letters, digits, dots, dashes and underscores, at most 100", name)
    return name


def quota() -> float:
    """Bytes the home may hold."""
    said = os.environ.get("LEAKLENS_QUOTA_GB") or str(QUOTA_GB)
    try:
        allowed = float(said)
    except ValueError:
        allowed = math.nan
    if not allowed > 0:
        raise refusal("LEAKLENS_QUOTA_GB", "must be a number above 0", said)
    return allowed * 1e9


def size(folder: Path) -> int:
    """Bytes of all files below a folder; what vanishes while we look does not count."""
    total, folders = 0, [str(folder)]
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


def gigabytes(count: float) -> str:
    """Bytes as a person says them: 512 B, 73.7 kB, 20 GB."""
    unit = next((unit for unit, of in UNITS.items() if count >= of), "B")
    many = count / UNITS[unit]
    return f"{many:.3g} {unit}" if many < 999.5 else f"{many:,.0f} {unit}"
