"""What a worker does before its first job, so that a click is answered at once: imports, shelves, the default data."""

from __future__ import annotations

import opacus.accountants  # noqa: F401  (a second of imports that the first ε would wait for)

from engine.errors import LeakLensError
from engine.specs.run import RunSpec
from engine.training import loop  # noqa: F401


def warm_up() -> None:
    spec = RunSpec()  # finds the parts of four shelves
    try:
        spec.dataset.load()
    except LeakLensError:
        return  # whoever asks for these data is told


warm_up()
