"""The command `export`: writes one HTML page of a run, an attack, a batch or an example, completely or not at all."""

from __future__ import annotations

import argparse
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path

from engine.errors import BadInput, refusal

OURS = b'<meta name="generator" content="leaklens-page">'  # in the head of every exported page
STYLES = ("page", "slides")
HEAD = 4096  # bytes at the start of a file that are searched for it


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="a run with all its attacks, one attack, a batch, or the name of an example")
    parser.add_argument("--out", required=True, metavar="FILE.html", help="the file to write")
    parser.add_argument(
        "--style", default=STYLES[0], metavar="STYLE",
        help="how the file opens: page, which prints to A4, or slides, one thing on the whole screen "
        "(the arrow keys turn them); a button in the file switches",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="overwrite a file that LeakLens did not export")


def run(args: argparse.Namespace) -> int:
    from engine.jobs.store import Store

    path = Path(args.out)
    refuse_style(args.style)
    refuse(path, args.force)
    text = args.page(
        Store(), args.id, args.style
    )  # engine/__main__ supplies the function: the engine does not import app
    write(path, text.encode("utf-8"))
    body = {"id": args.id, "file": str(path), "bytes": path.stat().st_size}
    if args.json:
        print(json.dumps(body, ensure_ascii=False))
    else:
        print(f"{args.id}: {path}, {body['bytes'] / 1000:,.0f} kB. It opens in any browser, without a network.")
    return 0


def refuse_style(style: str) -> None:
    """Refuse an unknown style."""
    if style not in STYLES:
        raise refusal("export: style", f"must be {' or '.join(STYLES)}", style, f"Use --style {STYLES[1]}")


def refuse(path: Path, force: bool = False) -> None:
    """Refuse a path that must not be overwritten, before anything is read from the store."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise refusal("export: out", "must end in .html", str(path), "Name the HTML file to write")
    try:
        rule = misplaced(path)
        if rule:
            raise refusal("export: out", rule, str(path), "Name another file")
        taken = path.exists() and not force and not ours(path)
    except (OSError, UnicodeError) as error:
        raise unwritable(path, error) from None
    if taken:
        rule = "must be a new file or an exported page, and another file has this name"
        raise refusal("export: out", rule, str(path), "Name another file, or overwrite this one with --force")


def misplaced(path: Path) -> str:
    """Why no page can be written to this path; empty if one can."""
    if path.is_dir():
        return "must be a file, and this is a folder"
    if not path.parent.is_dir():
        return "must be in a folder that exists"
    return "must be an ordinary file" if path.exists() and not path.is_file() else ""


def ours(path: Path) -> bool:
    """Whether this command wrote the file."""
    with path.open("rb") as file:
        return OURS in file.read(HEAD)


def write(path: Path, body: bytes) -> None:
    """Write a temporary file next to the path, fsync it and rename it, so that no one ever reads half a page."""
    temporary = path.with_name(f".{path.name[:60]}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except (OSError, ValueError) as error:  # ValueError: the name has a character that no file system takes
        raise unwritable(path, error) from None
    finally:
        with suppress(OSError, ValueError):
            temporary.unlink(missing_ok=True)


def unwritable(path: Path, error: Exception) -> BadInput:
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    return refusal("export: out", f"must be a place that can be written ({reason})", str(path), "Name another place")
