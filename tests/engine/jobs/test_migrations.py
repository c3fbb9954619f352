"""From version 1 of the store: everything stays, an older program at work is named, and then nothing changes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from engine.errors import HomeUnwritable, NewerVersion
from engine.jobs import migrations
from engine.jobs.migrations import MIGRATIONS
from engine.jobs.process_id import machine, start_time
from engine.jobs.requests import MACHINE
from engine.jobs.store import Store
from tests.engine.jobs.test_database import open_raw, version

LOCKER = """
import fcntl, sys, time
file = open(sys.argv[1], "ab")
fcntl.flock(file, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(60)
"""


@pytest.fixture
def old(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of version 1 with three runs: of a visitor, of the command line, and one with damaged options."""
    monkeypatch.setattr(migrations, "MIGRATIONS", MIGRATIONS[:1])
    Store().close()
    monkeypatch.undo()
    monkeypatch.setenv("LEAKLENS_HOME", str(home))
    with closing(open_raw(home)) as raw:
        rows = (("ann-1", '{"visitor": "ann"}'), ("cli-1", '{"threads": 2}'), ("odd", "no json"))
        for number, (run, options) in enumerate(rows, start=1):
            raw.execute("INSERT INTO requests (run, kind, at) VALUES (?, 'submit', 5)", (run,))
            raw.execute(
                "INSERT INTO runs (id, spec, options, attempt, edition) VALUES (?, '{}', ?, ?, 'e')",
                (run, options, number),
            )
    assert version(home) == 1
    return home


def test_runs_of_version_1_keep_who_requested_them(old: Path) -> None:
    store = Store()
    assert version(old) == len(MIGRATIONS) == 2
    assert store.statuses(["ann-1", "cli-1", "odd"]) == {"ann-1": "queued", "cli-1": "queued", "odd": "damaged"}
    assert store.requesters(["ann-1", "cli-1", "odd"]) == {"ann-1": ["ann"], "cli-1": [MACHINE], "odd": [MACHINE]}
    assert store.batches.listed() == []


def test_a_lease_of_an_older_program_is_named_and_nothing_changes(old: Path) -> None:
    with closing(open_raw(old)) as raw:
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        values = ("ann-1", "token", 1, machine(), process.pid, start_time(process.pid), time.time())
        raw.execute("INSERT INTO leases VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        before = (old / "leaklens.db").read_bytes()
        try:
            with pytest.raises(
                HomeUnwritable, match=f"process {process.pid} of an earlier LeakLens works on it; nothing"
            ):
                Store()
            assert version(old) == 1
        finally:
            process.kill()
            process.wait()
    assert (old / "leaklens.db").read_bytes() == before
    Store().close()  # the older program has ended
    assert version(old) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="the list of locks is that of Linux")
def test_an_older_program_that_waits_for_runs_is_named_too(old: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", LOCKER, str(old / ".spare-0")], stdout=subprocess.PIPE)
    try:
        assert process.stdout and process.stdout.readline()
        with pytest.raises(HomeUnwritable, match=f"process {process.pid} of an earlier LeakLens works on it"):
            Store()
        assert version(old) == 1
    finally:
        process.kill()
        process.wait()


def test_the_version_before_refuses_a_migrated_store(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store().close()
    monkeypatch.setattr(migrations, "MIGRATIONS", MIGRATIONS[:1])
    with pytest.raises(NewerVersion, match=r"has version 2, this LeakLens knows up to 1\. Update LeakLens"):
        Store()


def test_processes_that_open_an_old_store_at_once_migrate_it_once(old: Path, run_at_once: Callable[..., None]) -> None:
    run_at_once(8, lambda: Store().close())
    assert version(old) == 2


@pytest.fixture
def run_at_once() -> Callable[..., None]:
    from concurrent.futures import ThreadPoolExecutor

    def run(count: int, action: Callable[[], None]) -> None:
        with ThreadPoolExecutor(count) as pool:
            for future in [pool.submit(action) for _ in range(count)]:
                future.result()

    return run
