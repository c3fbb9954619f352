"""The portrait: a photo that ships, so that every visitor may attack it. assets/README.md has its origin.

An attack spec names it portrait-LABEL, such as portrait-0. It belongs to no visitor, and no one can delete it.
"""

from __future__ import annotations

from engine.environment import ROOT
from engine.errors import Damaged

NAME = "portrait"
FILE = ROOT / "assets" / "start" / "portrait.png"


def read() -> bytes:
    """The photo as PNG."""
    try:
        return FILE.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Damaged(f"{FILE.name}: cannot be read: {reason}", "Restore this file from the repository") from None
