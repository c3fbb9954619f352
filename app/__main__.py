"""`python3 -m app`: makes `.venv` where needed and opens the dashboard."""

from __future__ import annotations

import sys

from engine.environment import ROOT, enter

USAGE = """usage: python3 -m app [--index URL]

Makes .venv, installs requirements.txt into it and opens the dashboard.

  --index URL   a further package index, for example the one with the CPU build of torch
"""
SOON = """The dashboard comes next. The engine works already:

  python3 -m engine --help
  python3 -m engine list methods
  python3 -m engine run --method fedavg --dataset fashion-mnist --model mlp --rounds 20
"""


def main(argv: list[str]) -> int:
    if {"-h", "--help"} & set(argv):
        sys.stdout.write(USAGE)
        return 0
    enter("app", ROOT / "requirements.txt", argv)
    sys.stderr.write(SOON)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
