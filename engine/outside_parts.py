"""Parts from other installed packages, found by the entry point group `leaklens.parts`.

An entry point names a module. Importing the module registers its parts, as with the modules of this project. In class
mode no such module is imported: visitors share the machine, and only parts of this project are known to be safe.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from engine import registry
from engine.environment import class_mode

GROUP = "leaklens.parts"


@dataclass(frozen=True)
class BrokenPackage:
    """A package whose parts could not be imported, and why."""

    name: str
    reason: str


@cache
def import_all() -> tuple[BrokenPackage, ...]:
    """Import the parts of all other packages, once. A package that is broken never hides the other parts.

    All parts of this project come first, so no other package can take one of their names.
    """
    entries = () if class_mode() else entry_points(group=GROUP)
    if not entries:  # importing every shelf takes time that most processes do not need to spend
        return ()
    registry.import_own_parts()
    broken: list[BrokenPackage] = []
    for entry in sorted(entries, key=lambda entry: (entry.name, entry.value)):
        before = registry.snapshot()
        try:
            with contextlib.redirect_stdout(sys.stderr):  # the standard output of a command is its answer
                importlib.import_module(entry.module)
        except (Exception, SystemExit) as error:  # whatever a foreign module raises must not break the shelves
            registry.restore(before)
            broken.append(BrokenPackage(_package(entry), f"{type(error).__name__}: {error}"))
    return tuple(broken)


def packages() -> tuple[str, ...]:
    """The names of all installed packages that have parts."""
    return tuple(sorted({_package(entry) for entry in entry_points(group=GROUP)}))


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.name
