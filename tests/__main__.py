"""`python3 -m tests`: makes `.venv` where needed and runs the tests in it; needs no network once that is done."""

from __future__ import annotations

import sys
from pathlib import Path

from engine.environment import ROOT, enter

USAGE = """usage: python3 -m tests [--quick | --long] [--index URL] [pytest arguments]

Makes .venv, installs tests/requirements.txt into it and runs the tests.

  --quick       leave out the tests marked slow or long: under a minute
  --long        run everything, the tests marked long too
  --index URL   a further package index, for example the one with the CPU build of torch

Without a path, the tests run side by side: one process for each core, at most four.
Everything else goes to pytest: python3 -m tests tests/engine -k ledger -x
"""


def main(argv: list[str]) -> int:
    if {"-h", "--help"} & set(argv):
        sys.stdout.write(USAGE)
        return 0
    rest = enter("tests", ROOT / "tests" / "requirements.txt", argv)
    import pytest  # here: it is there only after `enter`

    others = [word for word in rest if word not in ("--quick", "--long")]
    return int(pytest.main([*selection(rest), *side_by_side(others), "--durations=5", "--durations-min=5", *others]))


def selection(words: list[str]) -> list[str]:
    """Which marks pytest leaves out."""
    if "--long" in words:
        return []
    return ["-m", "not slow and not long" if "--quick" in words else "not long"]


def side_by_side(words: list[str]) -> list[str]:
    """Options for several processes. A few chosen tests run in this one: each process needs seconds to start."""
    chosen = any(Path(word.partition("::")[0]).exists() for word in words)
    return [] if chosen else ["--numprocesses=auto", "--maxprocesses=4", "--dist=loadscope", "--no-loadscope-reorder"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
