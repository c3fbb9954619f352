"""Deleting: rows and files go together, on a full disk too, and nothing goes that somebody may still need."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from engine.errors import BadInput, Damaged, HomeFull, UnknownName
from engine.events import Cancelled, Finished, Kept, Round, Warned
from engine.jobs import payloads
from engine.jobs.home import Home, size
from engine.jobs.store import Store
from tests.engine.jobs.test_database import raw
from tests.engine.jobs.test_store import ME, taken


class PowerCut(BaseException):
    pass


def cut(*_: object) -> None:
    raise PowerCut


def finished(store: Store, run: str = "one") -> None:
    """A run with a payload that has ended."""
    store.submit(run, {})
    lease = taken(store)
    payloads.write(store.home, run, "t", {"x": np.zeros(9)})
    store.append(lease, [Kept("truth", "t", 1), Finished(1, 0.1)])


def test_deleting_removes_rows_and_files(store: Store, home: Path) -> None:
    finished(store)
    store.delete("one")
    assert store.runs() == []
    assert list((home / "payloads").iterdir()) == []
    for table in ("runs", "events", "requests", "leases"):
        assert raw(home).execute(f"SELECT COUNT(*) FROM {table}").fetchone() == (0,)
    assert store.submit("one", {}) == "queued"


def test_a_running_run_is_not_deleted(store: Store) -> None:
    store.submit("one", {})
    lease = taken(store)
    with pytest.raises(BadInput, match=r"run one: is running\. Cancel it first"):
        store.delete("one")
    store.append(lease, [Round(1, 2, 3)])
    assert store.status("one") == "running"


def test_a_cancelled_run_whose_worker_still_works_goes_when_it_has_let_go(store: Store) -> None:
    store.submit("one", {})
    lease = taken(store)
    store.cancel("one")
    store.delete("one")
    assert store.runs() == []
    store.append(lease, [Round(1, 2, 3), Cancelled(1)])
    assert store.runs() == []
    store.tidy()
    with pytest.raises(UnknownName):
        store.events("one")


def test_asked_again_while_it_is_being_deleted_it_begins_from_nothing(store: Store) -> None:
    store.submit("one", {})
    lease = taken(store)
    store.append(lease, [Round(1, 2, 3)])
    store.cancel("one")
    store.delete("one")
    assert store.submit("one", {}) == "queued"
    assert store.take(ME, 8) is None
    store.append(lease, [Cancelled(1)])
    store.tidy()
    again = taken(store)
    assert (again.after, again.resume, store.events("one"), store.run("one").attempt) == (0, None, [], 1)


@pytest.mark.parametrize("moment", ["bury", "empty_trash"])
def test_a_deletion_left_half_done_is_completed_later(
    moment: str, store: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished(store)
    with monkeypatch.context() as patch:
        patch.setattr(payloads, moment, cut)
        with pytest.raises(PowerCut):
            store.delete("one")
    assert list((home / "payloads").iterdir()) != []
    assert store.runs() == []
    assert Store().runs() == []
    assert list((home / "payloads").iterdir()) == []


def test_asked_again_it_waits_until_the_old_files_are_away(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    finished(store)
    with monkeypatch.context() as patch:
        patch.setattr(payloads, "bury", cut)
        with pytest.raises(PowerCut):
            store.delete("one")
    assert store.submit("one", {}) == "queued"
    assert (store.take(ME, 8), store.events("one")) == (None, [])
    store.tidy()
    again = taken(store)
    payloads.write(store.home, "one", "t", {"x": np.zeros(5)})
    store.append(again, [Kept("truth", "t", 1)])
    store.tidy()
    assert store.payload("one", "t")["x"].shape == (5,)


def test_the_files_of_a_run_outlive_a_deletion_that_fails(store: Store, home: Path) -> None:
    store.submit("one", {})
    lease = taken(store)
    payloads.write(store.home, "one", "t", {"x": np.zeros(9)})
    store.append(lease, [Warned("needle", ""), *(Round(number, 3000, 1) for number in range(3000)), Finished(1, 0.1)])
    store.close()
    raw(home).execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path = home / "leaklens.db"
    body = bytearray(path.read_bytes())
    page = body.index(b"needle") // 4096
    body[page * 4096 : (page + 1) * 4096] = b"\xa5" * 4096
    path.write_bytes(body)
    with pytest.raises(Damaged, match=r"leaklens\.db"):
        store.delete("one")
    assert store.payload("one", "t")["x"].shape == (9,)
    again = Store()  # the rest goes on, and whoever meets the damage is told
    assert again.runs() == []
    assert again.submit("two", {}) == "queued"
    with pytest.raises(Damaged, match=r"leaklens\.db"):
        again.tidy()


def test_files_of_a_run_that_is_unknown_here_stay(store: Store, home: Path) -> None:
    payloads.write(store.home, "stray", "t", {"x": np.zeros(9)})  # its database may have been moved aside
    store.tidy()
    assert Store().payload("stray", "t")["x"].shape == (9,)


# --- on a full disk ----------------------------------------------------------------------------------------


def fill(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite cannot make the files it needs for writing until the trash was emptied."""
    store.close()
    blocked, emptied = store.home.database.with_name("leaklens.db-shm"), payloads.empty_trash
    blocked.symlink_to("nowhere/at-all")

    def empty(home: Home) -> None:
        before = size(home.payloads)
        emptied(home)
        if blocked.is_symlink() and size(home.payloads) < before:
            blocked.unlink()

    monkeypatch.setattr(payloads, "empty_trash", empty)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0 if blocked.is_symlink() else 10**9))


def test_deleting_makes_room_on_a_full_disk(store: Store, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished(store, "one")
    finished(store, "two")
    fill(store, monkeypatch)
    with pytest.raises(HomeFull, match="Delete runs"):
        store.submit("three", {})
    store.delete("one")
    assert [run.id for run in store.runs()] == ["two"]
    assert [path.name for path in (home / "payloads").iterdir()] == ["two"]
    assert store.submit("three", {}) == "queued"


def test_a_full_disk_is_no_reason_to_delete_a_running_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.submit("one", {})
    lease = taken(store)
    payloads.write(store.home, "one", "t", {"x": np.zeros(9)})
    fill(store, monkeypatch)
    with pytest.raises(BadInput, match="is running"):
        store.delete("one")
    with pytest.raises(UnknownName):
        store.delete("two")
    assert store.payload("one", "t")["x"].shape == (9,)
    assert store.status(lease.run) == "running"
