"""c07: with too few open files, every command names the limit and how to raise it."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from engine import open_files
from engine.environment import ROOT
from engine.errors import HomeError, RunFailed
from engine.jobs.backends import local
from engine.jobs.backends.worker import failure
from engine.jobs.home import Home
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from engine.open_files import limit_error
from tests.engine.makers import SMALL, tiny_spec

LIMIT = "the limit of open files is reached"


def full() -> OSError:
    return OSError(errno.EMFILE, "Too many open files")


def test_c07_the_limit_is_found_behind_other_errors(home: Path) -> None:
    with pytest.raises(HomeError, match=LIMIT), Home(home).explained():
        raise full()
    try:
        try:
            raise full()
        except OSError:
            raise RunFailed("the data cannot be read") from None
    except RunFailed as error:
        assert LIMIT in str(limit_error(error))
        assert failure(error).reason.startswith(LIMIT)
    assert limit_error(RunFailed("another reason")) is None
    assert limit_error(FileNotFoundError(errno.ENOENT, "No usable temporary directory")) is None


def test_c07_an_error_that_hides_the_limit_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a free descriptor `tempfile` finds no directory that it can use, and gives no other reason."""
    monkeypatch.setattr(open_files, "at_limit", lambda: True)
    assert LIMIT in str(limit_error(FileNotFoundError(errno.ENOENT, "No usable temporary directory")))


def test_c07_a_worker_that_cannot_start_leaves_no_lease(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*arguments: object) -> None:
        raise full()

    monkeypatch.setattr(local, "WorkerHandle", start)
    store = Store()
    spec = tiny_spec()
    store.submit(spec.id, spec.canonical())
    supervising = Supervisor(store, workers=1)
    with pytest.raises(OSError, match="Too many"):
        supervising._claim_runs()
    assert store.status(spec.id) == "interrupted"
    assert LIMIT in str(limit_error(supervising.trouble))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize("files", [11])
def test_c07_a_run_with_few_open_files_names_the_limit(files: int, home: Path) -> None:
    command = f"ulimit -n {files}; exec {sys.executable} -m engine run {SMALL}"
    answer = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 2
    sentence = f"{LIMIT}: this process may have {files}. Raise the limit with `ulimit -n 256`"
    assert sentence in answer.stderr
    assert "should not happen" not in answer.stderr
