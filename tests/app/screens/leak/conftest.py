"""Settings that several tests of the Leak screen share."""

from __future__ import annotations

import pytest

from app.screens.leak.settings import LeakSettings
from engine.specs.attack_grid import NONE


@pytest.fixture
def small() -> LeakSettings:
    """Two short attacks against the baseline and one protection."""
    default = LeakSettings.default()
    return default.with_(
        against=(NONE, "udp-fedavg:0.1"), attacks=("map", "inverting-gradients"), iterations=3, each=True
    )
