"""The pictures that visitors upload. Each is stored in the home alone, under a hash of its content, until removed."""

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
from engine.images import clean_upload
from engine.jobs.home import Home

NAME = re.compile(r"[0-9a-f]{16}")
STALE_S = 600.0  # a temporary file as old as this belongs to a process that ended before it finished
UPLOAD_AGAIN = "Upload the picture again"


@dataclass(frozen=True)
class UploadedPictures:
    """The uploaded pictures of one home."""

    home: Home

    def add(self, data: bytes) -> str:
        """Clean a picture, store it and return its name."""
        return self.keep(clean_upload(data))

    def keep(self, picture: bytes) -> str:
        """Store a clean picture and return its name. A picture that is already stored becomes the newest."""
        name = content_name(picture)
        path = self._file(name)
        if _content(path) == picture:
            with suppress(OSError):  # in a read-only home the picture is still there
                _set_time(path)
        else:
            self._write(path, picture)
        return name

    def names(self) -> tuple[str, ...]:
        """The names of all stored pictures, the newest first."""
        dated = []
        with self.home.explained(), suppress(FileNotFoundError), os.scandir(self.home.pictures) as entries:
            for entry in entries:
                name = entry.name.removesuffix(".png")
                if name != entry.name and NAME.fullmatch(name):
                    with suppress(FileNotFoundError):  # removed meanwhile
                        dated.append((entry.stat().st_mtime_ns, name))
        return tuple(name for _, name in sorted(dated, reverse=True))

    def read(self, name: str) -> bytes:
        """The PNG with this name. The error tells a missing picture from a damaged one."""
        path = self._file(name)
        content = _content(path)
        if content is None:
            raise UnknownName(f"picture: must be one that was uploaded here and not removed, got {name}", UPLOAD_AGAIN)
        if content_name(content) != name:
            raise Damaged(f"{path}: cannot be read, or its content has changed", UPLOAD_AGAIN)
        return content

    def remove(self, name: str) -> None:
        """Delete a picture. Deleting it twice is not an error."""
        with self.home.explained():
            self._file(name).unlink(missing_ok=True)

    def remove_stale_files(self) -> None:
        """Remove the temporary files of processes that ended while they wrote. They hold pictures."""
        for temporary in self.home.pictures.glob(".*.tmp"):
            with suppress(OSError):
                if time.time() - temporary.stat().st_mtime > STALE_S:
                    temporary.unlink()

    def _file(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise refusal("picture", "a name must be 16 digits from 0 to 9 and a to f", name, UPLOAD_AGAIN)
        return self.home.pictures / f"{name}.png"

    def _write(self, path: Path, picture: bytes) -> None:
        """Temporary file, fsync, rename: a reader never finds an incomplete picture."""
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        with self.home.explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self.home.require_room(len(picture))
            try:
                with temporary.open("xb") as file:
                    file.write(picture)
                    file.flush()
                    os.fsync(file.fileno())
                _set_time(temporary)
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
            self.remove_stale_files()


def content_name(picture: bytes) -> str:
    """The name of a clean picture: a hash of its content."""
    return sha256(picture).hexdigest()[:16]


def _content(path: Path) -> bytes | None:
    """The content of a file; None if the file is missing, empty if it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError:
        return b""


def _set_time(path: Path) -> None:
    """Set the time in nanoseconds. The clock of a file system is too coarse to order two pictures."""
    now = time.time_ns()
    os.utime(path, ns=(now, now))
