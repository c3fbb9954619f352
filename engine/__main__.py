"""`python3 -m engine`: makes the environment where it is missing, does what is asked, and explains what went wrong."""

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


def main(arguments: Sequence[str]) -> int:
    from engine.cli.main import option, parser  # here: a bare Python has none of what they need

    words = [option(word) for word in arguments]
    debug, as_json = "--debug" in words, "--json" in words
    _usable_streams()
    try:
        asked = parser(words).parse_args(words, Namespace(page=_page))
        code = int(asked.does(asked))
        sys.stdout.flush()  # here, where a full disk can still be told
        return code
    except LeakLensError as error:
        return _refused(error, error.exit_code, debug, as_json)
    except BrokenPipeError:
        _leave_stdout()
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            _leave_stdout()
            trouble = LeakLensError("the answer could not be written: no space is left", "Ask again: nothing is lost")
        else:
            trouble = LeakLensError(f"{type(error).__name__}: {error}", "This should not happen: --debug shows where")
        return _refused(trouble, 1, debug, as_json)


def _page(store: Any, run: str) -> str:
    """The dashboard makes the page that `export` writes; the rest of the engine knows no page."""
    from app.export import page

    return page(store, run)


def _usable_streams() -> None:
    """A closed stream swallows; an old terminal shows \\u03b5 for ε: better than losing the answer."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115  (for as long as the process lives)
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _leave_stdout() -> None:
    """Nobody can read it: what is still buffered must not raise again at the end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refused(error: LeakLensError, code: int, debug: bool, as_json: bool) -> int:
    if debug:
        traceback.print_exc()
    if as_json:
        with contextlib.suppress(OSError):
            print(json.dumps({"error": error.message, "remedy": error.remedy}, ensure_ascii=False), flush=True)
    print(error, file=sys.stderr)
    return code


def start() -> int:
    """`python3 -m engine`, and the command `leaklens` of an installed project."""
    try:
        return main(enter("engine", ROOT / "requirements.txt", sys.argv[1:]))
    except KeyboardInterrupt:  # while the environment was being prepared
        return 130


if __name__ == "__main__":
    sys.exit(start())
