"""Child processes that talk to their parent over two pipes, which no output of a library can disturb."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import IO, Any, BinaryIO

from engine.environment import ROOT


def start_child(module: str, *arguments: str, stderr: IO[Any] | None = None) -> subprocess.Popen[bytes]:
    """Start a module of this project as a child process, in any working directory."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**os.environ, "PYTHONPATH": path},
    )


def take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The two pipes of this child process. Afterwards stdin is empty, and stdout prints to stderr."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return requests, replies
