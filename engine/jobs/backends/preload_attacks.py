"""What a worker of a dashboard loads as well, so that a first picture appears at once: the judge and its networks."""

from __future__ import annotations

from engine.datasets import DATASETS
from engine.errors import LeakLensError
from engine.leakage import pictures  # noqa: F401
from engine.metrics.pictures import networks

DATASET = "cifar10"  # of the pictures on the first page


def warm_up() -> None:
    try:
        DATASETS.make(DATASET).load()
        networks.lpips_alex()
        networks.squeezenet()
    except LeakLensError:
        return  # an attack that needs them reports the error


warm_up()
