"""What every test has: a home of its own, the same hypothesis examples in every run, and its place in a process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: its own threads slow each other down

settings.register_profile("leaklens", derandomize=True, deadline=None)
settings.load_profile("leaklens")

HOMES = count()
BROWSER = "tests/app/browser/"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Several processes share the tests by file. One process has all tests in a browser, and starts with them."""
    return FilesAndBrowser(config, log)


class FilesAndBrowser(LoadScopeScheduling):
    """Keeps a file in one process, and all tests in a browser: they share a server."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return BROWSER if file.startswith(BROWSER) else file


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that does not exist yet, set as the home of all state."""
    folder = tmp_path_factory.getbasetemp() / f"home-{next(HOMES)}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKLENS_HOME", str(folder))
        yield folder
