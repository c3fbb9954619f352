"""The command line, `python3 -m engine`: prepares the environment, runs the command and reports errors."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import sys
import traceback
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from engine.environment import ROOT, enter
from engine.errors import LeakLensError
from engine.memory import lacks_memory
from engine.open_files import limit_error


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    from engine.cli.main import option, parser  # not at the top: Python without the environment lacks their packages

    words = [option(word) for word in arguments]
    debug = "--debug" in words
    as_json = "--json" in words
    _make_streams_usable()
    try:
        parsed = parser(words).parse_args(words, Namespace(page=_page, main=main))
        code = int(parsed.does(parsed))
        sys.stdout.flush()  # inside `try`, so that a full disk is reported
        return code
    except LeakLensError as error:
        reported = limit_error(error) or error
        return _report(reported, reported.exit_code, debug, as_json)
    except BrokenPipeError:
        _discard_stdout()
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        limit = limit_error(error)
        if limit:
            return _report(limit, limit.exit_code, debug, as_json)
        if lacks_memory(error):
            reported = LeakLensError("this command gets too little memory", "Raise its limit, or end other programs")
        elif isinstance(error, OSError) and error.errno == errno.ENOSPC:
            _discard_stdout()
            reported = LeakLensError(
                "the output could not be written: the disk is full",
                "Free some space and run the command again: no result is lost",
            )
        else:
            reported = LeakLensError(f"{type(error).__name__}: {error}", "This should not happen: --debug shows where")
        return _report(reported, 1, debug, as_json)


def _page(store: Any, run: str, style: str) -> str:
    """The page that `export` writes. Only this function imports the dashboard; the engine works without it."""
    from app.export import page

    return page(store, run, style=style)


def _make_streams_usable() -> None:
    """Discard output to a closed stream, and escape characters that a terminal lacks: no output ends in an error."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115  (open until the process ends)
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_stdout() -> None:
    """Discard buffered output, which would raise again when the process ends."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(error: LeakLensError, code: int, debug: bool, as_json: bool) -> int:
    if debug:
        traceback.print_exc()
    if as_json:
        with contextlib.suppress(OSError):
            print(json.dumps({"error": error.message, "remedy": error.remedy}, ensure_ascii=False), flush=True)
    print(error, file=sys.stderr)
    return code


def start() -> int:
    """The entry point of `python3 -m engine` and of the installed command `leaklens`."""
    try:
        return main(enter("engine", ROOT / "requirements.txt", sys.argv[1:]))
    except KeyboardInterrupt:  # while the environment was prepared
        return 130


if __name__ == "__main__":
    sys.exit(start())
