"""A process that serves another: started with two pipes, which it keeps to itself whatever a library prints."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import IO, Any, BinaryIO

from engine.environment import ROOT


def serving(module: str, *arguments: str, stderr: IO[Any] | None = None) -> subprocess.Popen[bytes]:
    """A process that runs a module of ours, wherever it was started from."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**os.environ, "PYTHONPATH": path},
    )


def private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """What comes in and what goes out; from now on a library reads nothing and prints to stderr."""
    orders = os.fdopen(os.dup(0), "rb")
    out = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return orders, out
