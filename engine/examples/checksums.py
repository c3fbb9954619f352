"""The checksums of the files that ship in assets/. A damaged example is not shown, and `doctor` names every such file.

`python3 -m engine.examples.checksums` writes them again after a file was changed on purpose.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from engine.environment import ROOT
from engine.errors import Damaged, HomeUnwritable

ASSETS = ROOT / "assets"
NAME = "checksums.json"
PATTERNS = (
    "*.npz", "*.gz", "*.safetensors", "gallery/*.json", "leaks/*.json", "leaks/*.xz", "frontiers/*.json", "start/*",
)  # fmt: skip
RESTORE = "Restore this file from the repository"


def require_published(assets: Path, name: str, remedy: str = RESTORE) -> None:
    """Damaged if the file differs from the one that was published. A file without a checksum is not compared."""
    try:
        expected = read(assets).get(name)
    except Damaged:
        return  # `doctor` reports it
    if expected is not None and (assets / name).is_file() and checksum(assets / name) != expected:
        raise Damaged(f"{name}: differs from the file that was published", remedy)


def differences(assets: Path) -> Iterator[str]:
    """The names of the files that are missing or differ from the published ones."""
    for name, expected in read(assets).items():
        file = assets / name
        if not file.is_file() or checksum(file) != expected:
            yield name


def state(assets: Path) -> tuple[bool, str, str]:
    """Whether all files are as published and the presets and tables can be read; the result in words; the remedy."""
    from engine.specs import paper_tables, presets

    wrong = ", ".join(differences(assets) if read(assets) else [NAME])
    if wrong:
        return False, f"missing or not as published: {wrong}", f"Restore in assets/ from the repository: {wrong}"
    paper_tables.tables()
    for file in sorted(presets.FOLDER.glob("*.json")):
        presets.read_checked(file)
    return True, "as published", ""


def read(assets: Path) -> dict[str, str]:
    """The published checksum of each file, by its name below `assets`. Empty without a list."""
    path = assets / NAME
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): str(value) for name, value in body.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, RecursionError):
        raise Damaged(f"{NAME}: cannot be read", RESTORE) from None


def checksum(file: Path) -> str:
    """SHA-256. Line ends of text are those of the repository, also where git changes them."""
    body = file.read_bytes()
    if file.suffix == ".json":
        body = body.replace(b"\r\n", b"\n")
    return hashlib.sha256(body).hexdigest()


def write(assets: Path = ASSETS) -> None:
    """Write the checksums of all files as they are now."""
    files = sorted(file for pattern in PATTERNS for file in assets.glob(pattern))
    body = {file.relative_to(assets).as_posix(): checksum(file) for file in files}
    try:
        (assets / NAME).write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise HomeUnwritable(f"{NAME}: cannot be written: {error}", "Correct its permissions") from None


if __name__ == "__main__":
    write()
