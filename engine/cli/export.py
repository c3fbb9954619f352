"""The command `export`: one page of a run or an attack, written whole or not at all."""

from __future__ import annotations

import argparse
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path

from engine.errors import BadInput, refusal

OURS = b'<meta name="generator" content="leaklens-page">'  # in the head of every page that this command wrote
HEAD = 4096  # bytes of a file in which it stands


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="a run with every attack on it, or one attack")
    parser.add_argument("--out", required=True, metavar="FILE.html", help="the file to write")
    parser.add_argument("--force", action="store_true", help="overwrite a file that is no page of LeakLens")


def run(asked: argparse.Namespace) -> int:
    from engine.jobs.store import Store

    path = Path(asked.out)
    refuse(path, asked.force)
    text = asked.page(Store(), asked.id)  # the command line hands the maker of pages over: the engine knows none
    write(path, text.encode("utf-8"))
    body = {"id": asked.id, "file": str(path), "bytes": path.stat().st_size}
    if asked.json:
        print(json.dumps(body, ensure_ascii=False))
    else:
        print(f"{asked.id}: {path}, {body['bytes'] / 1000:,.0f} kB. It opens in any browser, without a network.")
    return 0


def refuse(path: Path, force: bool = False) -> None:
    """What must not be overwritten, said before anything is read."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise refusal("export: out", "must end in .html", str(path), "Name the file that the page is to become")
    try:
        if law := misplaced(path):
            raise refusal("export: out", law, str(path), "Name another file")
        taken = path.exists() and not force and not ours(path)
    except (OSError, UnicodeError) as error:
        raise trouble(path, error) from None
    if taken:
        law = "must be a new file or a page of LeakLens, and something else is there"
        raise refusal("export: out", law, str(path), "Name another file, or overwrite this one with --force")


def misplaced(path: Path) -> str:
    """Why no page can lie there; empty if one can."""
    if path.is_dir():
        return "must be a file, and this is a folder"
    if not path.parent.is_dir():
        return "must be in a folder that is there"
    return "must be an ordinary file" if path.exists() and not path.is_file() else ""


def ours(path: Path) -> bool:
    """Did this command write it?"""
    with path.open("rb") as file:
        return OURS in file.read(HEAD)


def write(path: Path, body: bytes) -> None:
    """Temporary file beside it, fsync, rename: nobody ever finds half a page."""
    rough = path.with_name(f".{path.name[:60]}.{secrets.token_hex(4)}.tmp")
    try:
        with rough.open("xb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        rough.replace(path)
    except (OSError, ValueError) as error:  # a name may hold what no file system takes
        raise trouble(path, error) from None
    finally:
        with suppress(OSError, ValueError):
            rough.unlink(missing_ok=True)


def trouble(path: Path, error: Exception) -> BadInput:
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    return refusal("export: out", f"must be a place that can be written ({reason})", str(path), "Name another place")
