"""The file of the store: led up from older versions, refused when newer or damaged, never overwritten."""

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

from engine.environment import ROOT
from engine.errors import Damaged, HomeFull, HomeUnwritable, NewerVersion
from engine.events import Finished, Kept, Started
from engine.jobs import database, payloads
from engine.jobs.database import MIGRATIONS
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store


def raw(home: Path) -> sqlite3.Connection:
    return sqlite3.connect(home / "leaklens.db", isolation_level=None)


def version(home: Path) -> int:
    return int(raw(home).execute("PRAGMA user_version").fetchone()[0])


def test_a_new_store_has_the_newest_version_and_a_log(store: Store, home: Path) -> None:
    assert version(home) == len(MIGRATIONS)
    assert raw(home).execute("PRAGMA journal_mode").fetchone()[0] == "wal"


def test_an_empty_file_is_led_up(home: Path) -> None:
    home.mkdir()
    (home / "leaklens.db").touch()
    assert Store().runs() == []
    assert version(home) == 1


def test_an_older_store_is_led_up_and_keeps_everything(
    store: Store, ask: Callable[..., str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("one")
    store.append(store.take(ProcessId.me(), 1), [Started("one", {}, {})])  # type: ignore[arg-type]
    before = store.run("one"), store.events("one")
    store.close()
    step = ("ALTER TABLE runs ADD COLUMN label TEXT NOT NULL DEFAULT 'none'", "CREATE INDEX labels ON runs (label)")
    monkeypatch.setattr(database, "MIGRATIONS", [*MIGRATIONS, step])
    newer = Store()
    assert version(home) == 2
    assert raw(home).execute("SELECT id, label FROM runs").fetchall() == [("one", "none")]
    assert (newer.run("one"), newer.events("one")) == before


def test_a_migration_that_fails_changes_nothing(store: Store, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.close()
    step = ("ALTER TABLE runs ADD COLUMN label TEXT", "ALTER TABLE nowhere ADD COLUMN label TEXT")
    monkeypatch.setattr(database, "MIGRATIONS", [*MIGRATIONS, step])
    with pytest.raises(Damaged):
        Store()
    assert version(home) == 1
    assert "label" not in raw(home).execute("SELECT sql FROM sqlite_master WHERE name = 'runs'").fetchone()[0]


def test_a_newer_store_is_refused_and_left_alone(store: Store, home: Path) -> None:
    store.close()
    raw(home).execute("PRAGMA user_version = 7")
    before = (home / "leaklens.db").read_bytes()
    with pytest.raises(NewerVersion, match=r"has version 7, this LeakLens knows up to 1\. Update LeakLens"):
        Store()
    assert (home / "leaklens.db").read_bytes() == before


def test_what_is_no_database_is_refused_and_left_alone(home: Path) -> None:
    home.mkdir()
    (home / "leaklens.db").write_text("a shopping list, long enough to be taken for a header\n" * 40)
    before = (home / "leaklens.db").read_bytes()
    with pytest.raises(Damaged, match=r"leaklens\.db: cannot be read.*Move leaklens\.db.*payloads.*stay"):
        Store()
    assert (home / "leaklens.db").read_bytes() == before


def test_the_database_of_another_program_is_refused(home: Path) -> None:
    home.mkdir()
    raw(home).execute("CREATE TABLE recipes (name TEXT)")
    with pytest.raises(Damaged, match="holds tables of another program"):
        Store()
    assert raw(home).execute("SELECT name FROM sqlite_master").fetchall() == [("recipes",)]


def test_a_malformed_store_is_named_and_its_remedy_works(store: Store, ask: Callable[..., str], home: Path) -> None:
    for number in range(60):
        ask(f"run-{number}")
    store.close()
    raw(home).execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path = home / "leaklens.db"
    body = path.read_bytes()
    path.write_bytes(body[:4096] + b"\xa5" * (len(body) - 4096))
    with pytest.raises(Damaged, match=r"leaklens\.db"):
        Store().runs()
    path.rename(home / "aside.db")
    assert Store().runs() == []


def test_an_open_store_follows_when_its_file_is_moved_aside(store: Store, ask: Callable[..., str], home: Path) -> None:
    ask("one")
    for path in home.glob("leaklens.db*"):
        path.rename(home / f"old-{path.name}")
    assert store.runs() == []
    ask("two")
    assert [run.id for run in Store().runs()] == ["two"]


def test_a_full_disk_is_told_and_what_was_stored_stays(
    store: Store, ask: Callable[..., str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("one")
    connect = database.connect

    def narrow(where: Any) -> sqlite3.Connection:
        connection = connect(where)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    store.close()
    monkeypatch.setattr(database, "connect", narrow)
    with pytest.raises(HomeFull, match=r"no space is left\. Delete runs"):
        store.submit("two", {"long": "x" * 100_000})
    assert [run.id for run in store.runs()] == ["one"]


def test_a_store_that_cannot_be_opened_is_refused(home: Path) -> None:
    (home / "leaklens.db").mkdir(parents=True)
    with pytest.raises(HomeUnwritable, match=r"leaklens\.db: cannot be written"):
        Store()


def test_a_store_held_too_long_by_another_program_is_told(
    store: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.close()
    monkeypatch.setattr(database, "BUSY_S", 0.05)
    other = raw(home)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(HomeUnwritable, match="held by another program"):
        store.submit("one", {})
    assert store.runs() == []
    other.execute("ROLLBACK")
    assert store.submit("one", {}) == "queued"


def test_many_processes_may_open_a_new_store_at_once(home: Path) -> None:
    code = "import sys; from engine.jobs.store import Store; print(Store().submit(sys.argv[1], {}))"
    command = [sys.executable, "-c", code]
    openers = [subprocess.Popen([*command, f"run-{n}"], cwd=ROOT, stdout=subprocess.PIPE) for n in range(6)]
    assert [opener.communicate()[0] for opener in openers] == [b"queued\n"] * 6
    assert sorted(Store().queue()) == [f"run-{n}" for n in range(6)]


# --- where nothing can be written --------------------------------------------------------------------------


def told(store: Store) -> None:
    store.submit("one", {"seed": 1})
    lease = store.take(ProcessId.me(), 1)
    assert lease
    payloads.write(store.home, "one", "t", {"x": np.arange(3)})
    store.append(lease, [Kept("truth", "t", 1), Finished(1, 0.1)])


def sealed(home: Path) -> Path:
    """SQLite can no longer make the file it needs for writing, whoever we are."""
    path = home / "leaklens.db-shm"
    path.unlink(missing_ok=True)
    path.symlink_to("nowhere/at-all")
    return path


def test_where_nothing_can_be_written_one_can_still_read(store: Store, home: Path) -> None:
    told(store)
    store.close()
    seal = sealed(home)
    mine = Store()
    assert [(run.id, run.status) for run in mine.runs()] == [("one", "finished")]
    assert [event for _, event in mine.events("one")] == [Kept("truth", "t", 1), Finished(1, 0.1)]
    assert mine.payload("one", "t")["x"].tolist() == [0, 1, 2]
    for refused in (lambda: mine.submit("two", {}), lambda: mine.delete("one")):
        with pytest.raises(HomeUnwritable, match=r"cannot be written.*permissions"):
            refused()
    assert [run.id for run in mine.runs()] == ["one"]
    seal.unlink()
    assert mine.submit("two", {}) == "queued"
    assert {run.id for run in mine.runs()} == {"one", "two"}


def test_what_was_written_last_is_never_passed_over(store: Store, home: Path, tmp_path: Path) -> None:
    told(store)
    shutil.copytree(home, tmp_path / "copy")  # with the log that is not yet in the file
    seal = sealed(tmp_path / "copy")
    with pytest.raises(HomeUnwritable, match=r"leaklens\.db"):
        Store(tmp_path / "copy")
    seal.unlink()
    assert [run.id for run in Store(tmp_path / "copy").runs()] == ["one"]
