"""What a worker loads before its first job, so that a run starts at once: imports, shelves, the default data set."""

from __future__ import annotations

import opacus.accountants  # noqa: F401  (takes a second, which the first ε would otherwise wait for)

from engine.errors import LeakLensError
from engine.specs.run import RunSpec
from engine.training import loop  # noqa: F401


def warm_up() -> None:
    spec = RunSpec()  # loads the parts of four shelves
    try:
        spec.dataset.load()
    except LeakLensError:
        return  # a run that needs these data reports the error


warm_up()
