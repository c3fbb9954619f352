"""The device of a job whose request names none: `LEAKLENS_DEVICE`, else the processor.

The owner of the machine sets it, once for all visitors. A result says on which device it was computed, because the last
digits differ between devices. The id of a run does not depend on it.
"""

from __future__ import annotations

import os

DEVICE = "LEAKLENS_DEVICE"
ON_DEVICE = "training, testing and attacks"
ON_PROCESSOR = "random numbers, ε, scores and stored files"  # also where a card does the rest


def default_device() -> str:
    """The device of jobs whose request names none."""
    return os.environ.get(DEVICE) or "cpu"


def placement() -> str:
    """What runs on this device and what on the processor. A device that is missing is refused."""
    refuse_missing_default()
    name = "the processor" if default_device() == "cpu" else default_device()
    return f"{name} for {ON_DEVICE}; the processor for {ON_PROCESSOR}"


def refuse_missing_default() -> None:
    """Refuse a value of `LEAKLENS_DEVICE` that this machine does not have. Only another device loads torch."""
    if default_device() != "cpu":
        from engine.compute.devices import refuse_missing

        refuse_missing(default_device(), DEVICE, DEVICE)
