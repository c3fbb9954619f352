"""The pictures people bring: kept in their home alone, each named by what it shows, and gone when they say so."""

from __future__ import annotations

import os
import re
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from engine.errors import Damaged, UnknownName, refusal
from engine.images import cleaned
from engine.jobs.home import Home

NAME = re.compile(r"[0-9a-f]{16}")
STALE_S = 600.0  # whoever wrote a temporary file as old as this did not live to finish it
BRING = "Bring the picture again"


@dataclass(frozen=True)
class UploadedPictures:
    """The clean pictures of one home."""

    home: Home

    def add(self, data: bytes) -> str:
        """Clean what was brought and keep it: the same picture twice is one, and now the newest."""
        picture = cleaned(data)
        name = _named(picture)
        path = self._file(name)
        if _body(path) == picture:
            with suppress(OSError):  # a home that can only be read still has it
                _date(path)
        else:
            self._write(path, picture)
        return name

    def names(self) -> tuple[str, ...]:
        """Every picture that is kept, the newest first."""
        dated = []
        with self.home.explained(), suppress(FileNotFoundError), os.scandir(self.home.pictures) as entries:
            for entry in entries:
                name = entry.name.removesuffix(".png")
                if name != entry.name and NAME.fullmatch(name):
                    with suppress(FileNotFoundError):  # removed while we look
                        dated.append((entry.stat().st_mtime_ns, name))
        return tuple(name for _, name in sorted(dated, reverse=True))

    def read(self, name: str) -> bytes:
        """The PNG of this name, or why there is none."""
        path = self._file(name)
        body = _body(path)
        if body is None:
            raise UnknownName(f"picture: must be one that was brought here and is still kept, got {name}", BRING)
        if _named(body) != name:
            raise Damaged(f"{path}: cannot be read, or is not what was written", BRING)
        return body

    def remove(self, name: str) -> None:
        """Delete a picture; one that is gone already is gone."""
        with self.home.explained():
            self._file(name).unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise refusal("picture", "a name must be 16 digits from 0 to 9 and a to f", name, BRING)
        return self.home.pictures / f"{name}.png"

    def _write(self, path: Path, picture: bytes) -> None:
        """Temporary file, fsync, rename: nobody ever finds half a picture."""
        rough = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        with self.home.explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self.home.room(len(picture))
            try:
                with rough.open("xb") as file:
                    file.write(picture)
                    file.flush()
                    os.fsync(file.fileno())
                _date(rough)
                rough.replace(path)
            finally:
                rough.unlink(missing_ok=True)
            _sweep(path.parent)


def _named(picture: bytes) -> str:
    return sha256(picture).hexdigest()[:16]


def _body(path: Path) -> bytes | None:
    """What lies there: nothing, or something that may be no picture at all."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError:
        return b""


def _date(path: Path) -> None:
    """Now, to the nanosecond: the clock of a file system is too coarse to tell which of two came last."""
    now = time.time_ns()
    os.utime(path, ns=(now, now))


def _sweep(folder: Path) -> None:
    """Remove what an end in the middle of writing left behind."""
    for rough in folder.glob(".*.tmp"):
        with suppress(FileNotFoundError):
            if time.time() - rough.stat().st_mtime > STALE_S:
                rough.unlink()
