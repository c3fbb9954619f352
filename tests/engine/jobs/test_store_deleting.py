"""Deleting: rows and files go together, on a full disk too, and nothing goes that someone may still need."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from engine.errors import BadInput, Damaged, HomeFull, UnknownName
from engine.events import Cancelled, Finished, Kept, Round, Warned
from engine.jobs import payloads
from engine.jobs.home import Home, folder_size
from engine.jobs.store import Store
from tests.engine.jobs.test_database import open_raw
from tests.engine.jobs.test_store import CURRENT, take_lease


class PowerCut(BaseException):
    pass


def cut_power(*_: object) -> None:
    raise PowerCut


def add_finished_run(store: Store, run: str = "one") -> None:
    """Add a finished run with a payload."""
    store.submit(run, {})
    lease = take_lease(store)
    payloads.write(store.home, run, "t", {"x": np.zeros(9)})
    store.append(lease, [Kept("truth", "t", 1), Finished(1, 0.1)])


def test_deleting_removes_rows_and_files(store: Store, home: Path) -> None:
    add_finished_run(store)
    store.delete("one")
    assert store.runs() == []
    assert list((home / "payloads").iterdir()) == []
    for table in ("runs", "events", "requests", "leases"):
        assert open_raw(home).execute(f"SELECT COUNT(*) FROM {table}").fetchone() == (0,)
    assert store.submit("one", {}) == "queued"


def test_a_running_run_is_not_deleted(store: Store) -> None:
    store.submit("one", {})
    lease = take_lease(store)
    with pytest.raises(BadInput, match=r"run one: is running\. Cancel it first"):
        store.delete("one")
    store.append(lease, [Round(1, 2, 3)])
    assert store.status("one") == "running"


def test_a_cancelled_run_is_deleted_after_its_worker_has_stopped(store: Store) -> None:
    store.submit("one", {})
    lease = take_lease(store)
    store.cancel("one")
    store.delete("one")
    assert store.runs() == []
    store.append(lease, [Round(1, 2, 3), Cancelled(1)])
    assert store.runs() == []
    store.complete_deletions()
    with pytest.raises(UnknownName):
        store.events("one")


def test_a_run_submitted_during_its_deletion_starts_from_the_beginning(store: Store) -> None:
    store.submit("one", {})
    lease = take_lease(store)
    store.append(lease, [Round(1, 2, 3)])
    store.cancel("one")
    store.delete("one")
    assert store.submit("one", {}) == "queued"
    assert store.take(CURRENT, 8) is None
    store.append(lease, [Cancelled(1)])
    store.complete_deletions()
    again = take_lease(store)
    assert (again.after, again.resume, store.events("one"), store.run("one").attempt) == (0, None, [], 1)


@pytest.mark.parametrize("moment", ["move_to_trash", "empty_trash"])
def test_an_unfinished_deletion_is_completed_later(
    moment: str, store: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_finished_run(store)
    with monkeypatch.context() as patch:
        patch.setattr(payloads, moment, cut_power)
        with pytest.raises(PowerCut):
            store.delete("one")
    assert list((home / "payloads").iterdir()) != []
    assert store.runs() == []
    assert Store().runs() == []
    assert list((home / "payloads").iterdir()) == []


def test_a_run_submitted_again_waits_until_the_old_files_are_removed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_finished_run(store)
    with monkeypatch.context() as patch:
        patch.setattr(payloads, "move_to_trash", cut_power)
        with pytest.raises(PowerCut):
            store.delete("one")
    assert store.submit("one", {}) == "queued"
    assert (store.take(CURRENT, 8), store.events("one")) == (None, [])
    store.complete_deletions()
    again = take_lease(store)
    payloads.write(store.home, "one", "t", {"x": np.zeros(5)})
    store.append(again, [Kept("truth", "t", 1)])
    store.complete_deletions()
    assert store.payload("one", "t")["x"].shape == (5,)


def test_a_failed_deletion_keeps_the_files_of_the_run(store: Store, home: Path) -> None:
    store.submit("one", {})
    lease = take_lease(store)
    payloads.write(store.home, "one", "t", {"x": np.zeros(9)})
    store.append(lease, [Warned("needle", ""), *(Round(number, 3000, 1) for number in range(3000)), Finished(1, 0.1)])
    store.close()
    open_raw(home).execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path = home / "leaklens.db"
    body = bytearray(path.read_bytes())
    page = body.index(b"needle") // 4096
    body[page * 4096 : (page + 1) * 4096] = b"\xa5" * 4096
    path.write_bytes(body)
    with pytest.raises(Damaged, match=r"leaklens\.db"):
        store.delete("one")
    assert store.payload("one", "t")["x"].shape == (9,)
    again = Store()  # other runs work, and only an access to the damage fails
    assert again.runs() == []
    assert again.submit("two", {}) == "queued"
    with pytest.raises(Damaged, match=r"leaklens\.db"):
        again.complete_deletions()


def test_files_of_an_unknown_run_stay(store: Store, home: Path) -> None:
    payloads.write(store.home, "stray", "t", {"x": np.zeros(9)})  # its database may have been moved away
    store.complete_deletions()
    assert Store().payload("stray", "t")["x"].shape == (9,)


# --- on a full disk ----------------------------------------------------------------------------------------


def fill_disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep SQLite from creating the files it needs for writing, until the trash is emptied."""
    store.close()
    blocked = store.home.database.with_name("leaklens.db-shm")
    original = payloads.empty_trash
    blocked.symlink_to("nowhere/at-all")

    def empty_trash(home: Home) -> None:
        before = folder_size(home.payloads)
        original(home)
        if blocked.is_symlink() and folder_size(home.payloads) < before:
            blocked.unlink()

    monkeypatch.setattr(payloads, "empty_trash", empty_trash)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0 if blocked.is_symlink() else 10**9))


def test_deleting_makes_room_on_a_full_disk(store: Store, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_finished_run(store, "one")
    add_finished_run(store, "two")
    fill_disk(store, monkeypatch)
    with pytest.raises(HomeFull, match="Delete runs"):
        store.submit("three", {})
    store.delete("one")
    assert [run.id for run in store.runs()] == ["two"]
    assert [path.name for path in (home / "payloads").iterdir()] == ["two"]
    assert store.submit("three", {}) == "queued"


def test_a_full_disk_is_no_reason_to_delete_a_running_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.submit("one", {})
    lease = take_lease(store)
    payloads.write(store.home, "one", "t", {"x": np.zeros(9)})
    fill_disk(store, monkeypatch)
    with pytest.raises(BadInput, match="is running"):
        store.delete("one")
    with pytest.raises(UnknownName):
        store.delete("two")
    assert store.payload("one", "t")["x"].shape == (9,)
    assert store.status(lease.run) == "running"
