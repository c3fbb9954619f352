"""The two pipes of a process that serves another: kept to ourselves, whatever a library reads or prints."""

from __future__ import annotations

import os
from typing import BinaryIO


def private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """What comes in and what goes out; from now on a library reads nothing and prints to stderr."""
    orders = os.fdopen(os.dup(0), "rb")
    out = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return orders, out
