"""The file of the store: an older one is migrated, a newer or damaged one is refused, and none is overwritten."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import doctor
from engine.environment import ROOT
from engine.errors import Damaged, HomeFull, HomeUnwritable, NewerVersion
from engine.events import Finished, Kept, Started
from engine.jobs import database, migrations, payloads
from engine.jobs.migrations import MIGRATIONS
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store


def open_raw(home: Path) -> sqlite3.Connection:
    return sqlite3.connect(home / "leaklens.db", isolation_level=None)


def version(home: Path) -> int:
    return int(open_raw(home).execute("PRAGMA user_version").fetchone()[0])


def test_a_new_store_has_the_newest_version_and_a_log(store: Store, home: Path) -> None:
    assert version(home) == len(MIGRATIONS)
    assert open_raw(home).execute("PRAGMA journal_mode").fetchone()[0] == "wal"


def test_an_empty_file_is_migrated(home: Path) -> None:
    home.mkdir()
    (home / "leaklens.db").touch()
    assert Store().runs() == []
    assert version(home) == len(MIGRATIONS)


def test_an_older_store_is_migrated_and_keeps_everything(
    store: Store, submit_run: Callable[..., str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit_run("one")
    store.append(store.take(ProcessId.me(), 1), [Started("one", {}, {})])  # type: ignore[arg-type]
    run = store.run("one")
    events = store.events("one")
    store.close()
    migration = (
        "ALTER TABLE runs ADD COLUMN label TEXT NOT NULL DEFAULT 'none'",
        "CREATE INDEX labels ON runs (label)",
    )
    monkeypatch.setattr(migrations, "MIGRATIONS", [*MIGRATIONS, migration])
    newer = Store()
    assert version(home) == len(MIGRATIONS) + 1
    assert open_raw(home).execute("SELECT id, label FROM runs").fetchall() == [("one", "none")]
    assert newer.run("one") == run
    assert newer.events("one") == events


def test_a_migration_that_fails_changes_nothing(store: Store, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.close()
    migration = ("ALTER TABLE runs ADD COLUMN label TEXT", "ALTER TABLE nowhere ADD COLUMN label TEXT")
    monkeypatch.setattr(migrations, "MIGRATIONS", [*MIGRATIONS, migration])
    with pytest.raises(Damaged):
        Store()
    assert version(home) == len(MIGRATIONS)
    assert "label" not in open_raw(home).execute("SELECT sql FROM sqlite_master WHERE name = 'runs'").fetchone()[0]


def test_a_newer_store_is_refused_and_not_changed(store: Store, home: Path) -> None:
    store.close()
    open_raw(home).execute("PRAGMA user_version = 7")
    before = (home / "leaklens.db").read_bytes()
    with pytest.raises(NewerVersion, match=r"has version 7, this LeakLens knows up to 2\. Update LeakLens"):
        Store()
    assert (home / "leaklens.db").read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_not_changed(home: Path) -> None:
    home.mkdir()
    (home / "leaklens.db").write_text("a shopping list, long enough to be taken for a header\n" * 40)
    before = (home / "leaklens.db").read_bytes()
    with pytest.raises(Damaged, match=r"leaklens\.db: cannot be read.*Move leaklens\.db.*payloads.*stay"):
        Store()
    assert (home / "leaklens.db").read_bytes() == before


def test_c07_a_store_of_a_negative_version_is_refused_by_all(home: Path) -> None:
    Store().close()
    open_raw(home).execute("PRAGMA user_version = -1")
    with pytest.raises(Damaged, match="holds tables of another program"):
        Store()
    with pytest.raises(Damaged, match="holds tables of another program"):
        doctor.store()


def test_the_database_of_another_program_is_refused(home: Path) -> None:
    home.mkdir()
    open_raw(home).execute("CREATE TABLE recipes (name TEXT)")
    with pytest.raises(Damaged, match="holds tables of another program"):
        Store()
    assert open_raw(home).execute("SELECT name FROM sqlite_master").fetchall() == [("recipes",)]


def test_a_malformed_store_is_reported_and_its_remedy_works(
    store: Store, submit_run: Callable[..., str], home: Path
) -> None:
    for number in range(60):
        submit_run(f"run-{number}")
    store.close()
    open_raw(home).execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path = home / "leaklens.db"
    body = path.read_bytes()
    path.write_bytes(body[:4096] + b"\xa5" * (len(body) - 4096))
    with pytest.raises(Damaged, match=r"leaklens\.db"):
        Store().runs()
    path.rename(home / "aside.db")
    assert Store().runs() == []


def test_an_open_store_uses_a_new_file_when_its_own_is_moved_away(
    store: Store, submit_run: Callable[..., str], home: Path
) -> None:
    submit_run("one")
    for path in home.glob("leaklens.db*"):
        path.rename(home / f"old-{path.name}")
    assert store.runs() == []
    submit_run("two")
    assert [run.id for run in Store().runs()] == ["two"]


def test_a_full_disk_is_reported_and_stored_runs_stay(
    store: Store, submit_run: Callable[..., str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit_run("one")
    connect = database.connect

    def connect_full(home: Any) -> sqlite3.Connection:
        connection = connect(home)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    store.close()
    monkeypatch.setattr(database, "connect", connect_full)
    with pytest.raises(HomeFull, match=r"no space is left\. Delete runs"):
        store.submit("two", {"long": "x" * 100_000})
    assert [run.id for run in store.runs()] == ["one"]


def test_a_store_that_cannot_be_opened_is_refused(home: Path) -> None:
    (home / "leaklens.db").mkdir(parents=True)
    with pytest.raises(HomeUnwritable, match=r"leaklens\.db: cannot be written"):
        Store()


def test_a_store_locked_too_long_by_another_program_is_reported(
    store: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.close()
    monkeypatch.setattr(database, "BUSY_S", 0.05)
    program = open_raw(home)
    program.execute("BEGIN IMMEDIATE")
    with pytest.raises(HomeUnwritable, match="another program has locked it"):
        store.submit("one", {})
    assert store.runs() == []
    program.execute("ROLLBACK")
    assert store.submit("one", {}) == "queued"


@pytest.mark.slow
def test_many_processes_may_open_a_new_store_at_once(home: Path) -> None:
    code = "import sys; from engine.jobs.store import Store; print(Store().submit(sys.argv[1], {}))"
    command = [sys.executable, "-c", code]
    openers = []
    for number in range(6):
        openers.append(subprocess.Popen([*command, f"run-{number}"], cwd=ROOT, stdout=subprocess.PIPE))
    assert [opener.communicate()[0] for opener in openers] == [b"queued\n"] * 6
    assert sorted(Store().queue()) == [f"run-{number}" for number in range(6)]


# --- where nothing can be written --------------------------------------------------------------------------


def add_finished_run(store: Store) -> None:
    store.submit("one", {"seed": 1})
    lease = store.take(ProcessId.me(), 1)
    assert lease
    payloads.write(store.home, "one", "t", {"x": np.arange(3)})
    store.append(lease, [Kept("truth", "t", 1), Finished(1, 0.1)])


def block_writing(home: Path) -> Path:
    """Keep SQLite from creating the file it needs for writing, even for root."""
    path = home / "leaklens.db-shm"
    path.unlink(missing_ok=True)
    path.symlink_to("nowhere/at-all")
    return path


def test_a_read_only_store_can_still_be_read(store: Store, home: Path) -> None:
    add_finished_run(store)
    store.close()
    block = block_writing(home)
    reopened = Store()
    assert [(run.id, run.status) for run in reopened.runs()] == [("one", "finished")]
    assert [event for _, event in reopened.events("one")] == [Kept("truth", "t", 1), Finished(1, 0.1)]
    assert reopened.payload("one", "t")["x"].tolist() == [0, 1, 2]
    with pytest.raises(HomeUnwritable, match=r"cannot be written.*permissions"):
        reopened.submit("two", {})
    with pytest.raises(HomeUnwritable, match=r"cannot be written.*permissions"):
        reopened.delete("one")
    assert [run.id for run in reopened.runs()] == ["one"]
    block.unlink()
    assert reopened.submit("two", {}) == "queued"
    assert {run.id for run in reopened.runs()} == {"one", "two"}


def test_a_read_only_store_with_unread_log_is_refused(store: Store, home: Path, tmp_path: Path) -> None:
    add_finished_run(store)
    shutil.copytree(home, tmp_path / "copy")  # with a log whose content is not yet in the file
    block = block_writing(tmp_path / "copy")
    with pytest.raises(HomeUnwritable, match=r"leaklens\.db"):
        Store(tmp_path / "copy")
    block.unlink()
    assert [run.id for run in Store(tmp_path / "copy").runs()] == ["one"]
