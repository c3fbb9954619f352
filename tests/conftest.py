"""What every test starts from: an empty home of its own, and the same examples every time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: its own threads only get in each other's way

settings.register_profile("house", derandomize=True, deadline=None)
settings.load_profile("house")

HOMES = count()


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that does not exist yet, named to the engine as the home of all state."""
    folder = tmp_path_factory.getbasetemp() / f"home-{next(HOMES)}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKLENS_HOME", str(folder))
        yield folder
