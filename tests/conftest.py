"""Fixtures of every test: an empty home of its own, and the same hypothesis examples in every run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: its own threads slow each other down

settings.register_profile("leaklens", derandomize=True, deadline=None)
settings.load_profile("leaklens")

HOMES = count()


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that does not exist yet, set as the home of all state."""
    folder = tmp_path_factory.getbasetemp() / f"home-{next(HOMES)}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKLENS_HOME", str(folder))
        yield folder
