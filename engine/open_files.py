"""The limit of open files (`ulimit -n`): whether it is the reason for an error, and the error that names it."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from engine.errors import HomeError

AT_LIMIT = (errno.EMFILE, errno.ENFILE)
SPARE = 4  # SQLite opens a database, its log and its index at once
ENOUGH = 256  # more than any command opens
REMEDY = f"Raise the limit with `ulimit -n {ENOUGH}`, then run the same command again: no finished work is lost"


class TooManyFiles(HomeError):
    """This process, or the whole machine, may open no more files."""


def limit_error(error: BaseException | None) -> TooManyFiles | None:
    """The error that names the limit, if this error or one that it follows from is about open files."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, TooManyFiles):
            return error
        if isinstance(error, OSError) and (error.errno in AT_LIMIT or at_limit()):  # tempfile hides the reason
            return too_many_files()
        error = error.__cause__ or error.__context__
    return None


def at_limit() -> bool:
    """Whether a few more files cannot be opened. SQLite does not say why it could open none."""
    opened: list[int] = []
    try:
        for _ in range(SPARE):
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in AT_LIMIT
    finally:
        for file in opened:
            os.close(file)
    return False


def too_many_files() -> TooManyFiles:
    """The error with the limit of this process."""
    limit = ""
    with suppress(ImportError, OSError):  # Windows has no such module
        import resource

        limit = f": this process may have {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}"
    return TooManyFiles(f"the limit of open files is reached{limit}", REMEDY)
