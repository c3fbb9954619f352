"""The owners of uploaded pictures: a set for each picture, who leaves, and what goes with the last one."""

from __future__ import annotations

import os
import time

import pytest

from engine.errors import HomeUnwritable, UnknownName
from engine.events import Seen
from engine.jobs import visits
from engine.jobs.batches import Batch, BatchMember
from engine.jobs.home import Home
from engine.jobs.process_id import ProcessId
from engine.jobs.requests import MACHINE
from engine.jobs.store import Store
from engine.jobs.uploads import UploadedPictures
from tests.engine.jobs.makers import photo, saved
from tests.engine.jobs.test_database import open_raw

FILE = saved(photo(), "PNG")
OTHER = saved(photo(30, 30).rotate(90), "PNG")


def attack_on(store: Store, picture: str, run: str = "attack", visitor: str = MACHINE) -> str:
    """A finished attack on an uploaded picture, with a payload."""
    spec = {"attack": {"name": "analytic"}, "pictures": [f"own-{picture}-3"], "run": {}}
    store.submit(run, spec, visitor=visitor)
    lease = store.take(ProcessId.me(), 99, {run})
    assert lease
    store.append(lease, [Seen("server", 1, 0, {}, (), {})])
    folder = store.home.folder(run)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "guess.npz").write_bytes(b"private")
    store.release(lease)
    return run


def leave_all(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half an hour passes in which no tab is open."""
    now = time.time()
    monkeypatch.setattr("engine.jobs.visits.time.time", lambda: now + visits.LEFT_S + 1)


def test_two_visitors_with_one_photo_share_it(store: Store) -> None:
    name = store.owners.add(FILE, "ann")
    assert store.owners.add(FILE, "bob") == name
    other = store.owners.add(OTHER, "bob")
    assert store.owners.pictures("ann") == (name,) and store.owners.pictures("bob") == (other, name)
    assert store.owners.owns([name], "ann") and not store.owners.owns([name, other], "ann")
    assert not store.owners.owns([name], "eve") and not store.owners.owns([name], MACHINE)
    assert store.owners.owns([], "eve")  # what names no uploaded picture is everyone's


def test_a_shared_photo_survives_until_both_left(store: Store) -> None:
    name = store.owners.add(FILE, "ann")
    store.owners.add(FILE, "bob")
    attack = attack_on(store, name)
    assert store.owners.leave(name, "ann").shared
    assert store.owners.pictures("ann") == () and store.owners.pictures("bob") == (name,)
    assert store.status(attack) == "interrupted"
    departure = store.owners.leave(name, "bob")
    assert (departure.deleted, departure.shared) == ((attack,), False)
    store.complete_deletions()
    assert UploadedPictures(store.home).names() == () and not store.home.folder(attack).exists()
    with pytest.raises(UnknownName):
        store.status(attack)
    assert store.owners.leave(name, "bob").deleted == ()  # twice is no error


def test_whoever_does_not_own_a_photo_deletes_nothing(store: Store) -> None:
    name = store.owners.add(FILE, "ann")
    for visitor in ("eve", MACHINE):
        assert store.owners.leave(name, visitor).deleted == ()
    assert store.owners.pictures("ann") == (name,)


def test_the_batches_of_a_photo_go_with_it(store: Store) -> None:
    name = store.owners.add(FILE, "ann")
    attack = attack_on(store, name)
    batch = Batch("leak grid", "a picture", (BatchMember(attack, store.run(attack).spec),))
    store.batches.request(batch, "ann")
    store.owners.leave(name, "ann")
    assert store.batches.listed() == []


def test_visitors_who_left_lose_their_photos_and_the_others_keep_theirs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = store.owners.add(FILE, "ann")
    here = store.owners.add(OTHER, "bob")
    own = store.owners.add(saved(photo(50, 50), "PNG"))
    store.visits.see(["ann", "bob"])
    attack = attack_on(store, left)
    assert store.owners.drop_left() == []
    leave_all(store, monkeypatch)
    store.visits.see(["bob"])
    assert store.owners.drop_left() == [attack]
    assert set(UploadedPictures(store.home).names()) == {here, own}
    assert store.owners.drop_left() == []


def test_a_server_that_starts_again_drops_the_photos_of_the_one_before(store: Store) -> None:
    store.owners.add(FILE, "ann")
    own = store.owners.add(OTHER)
    store.visits.see(["ann"])
    open_raw(store.home.path).execute("UPDATE visits SET start = 'of a process that ended'")
    store.owners.drop_left()
    assert UploadedPictures(store.home).names() == (own,)


def test_a_visitor_who_never_came_back_after_the_upload_loses_it(store: Store) -> None:
    """A crash between the upload and the first record of the visit leaves no photo behind."""
    store.owners.add(FILE, "ann")
    open_raw(store.home.path).execute("DELETE FROM visits")
    store.owners.drop_left()
    assert UploadedPictures(store.home).names() == ()


def test_a_photo_without_an_owner_belongs_to_the_machine(home: Home, store: Store) -> None:
    name = UploadedPictures(store.home).add(FILE)  # as version 0.4.0 did
    assert store.owners.pictures(MACHINE) == (name,) and store.owners.pictures("ann") == ()
    store.owners.add(FILE, "ann")
    store.owners.leave(name, "ann")
    assert store.owners.pictures(MACHINE) == (name,)  # the machine had it before
    store.owners.leave(name, MACHINE)
    assert UploadedPictures(store.home).names() == ()


def test_a_photo_whose_file_was_not_written_is_not_listed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash between the owner and the file leaves an owner without a picture, never a picture without its owner."""

    def crash(pictures: UploadedPictures, picture: bytes) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(UploadedPictures, "keep", crash)
        with pytest.raises(KeyboardInterrupt):
            store.owners.add(FILE, "ann")
    assert store.owners.pictures("ann") == ()
    assert store.owners.add(FILE, "ann") in store.owners.pictures("ann")


def test_giving_up_a_shared_photo_withdraws_its_attacks(store: Store) -> None:
    """Ann no longer sees the attack, so she cannot want it: Bob's cancel ends it."""
    name = store.owners.add(FILE, "ann")
    store.owners.add(FILE, "bob")
    spec = {"attack": {"name": "analytic"}, "pictures": [f"own-{name}-3"], "run": {}}
    batch = Batch("leak grid", "", (BatchMember("attack", spec),))
    for visitor in ("ann", "bob"):
        store.batches.request(batch, visitor)
    store.owners.leave(name, "ann")
    assert store.status("attack") == "queued"
    assert store.withdraw(["attack"], "bob").cancelled == ("attack",)


def test_a_photo_given_up_while_it_is_written_is_not_left_behind(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = UploadedPictures.keep

    def leave_meanwhile(pictures: UploadedPictures, picture: bytes) -> str:
        name = keep(pictures, picture)
        store.owners.leave(name, "ann")
        return keep(pictures, picture)

    monkeypatch.setattr(UploadedPictures, "keep", leave_meanwhile)
    store.owners.add(FILE, "ann")
    assert UploadedPictures(store.home).names() == ()


def test_a_half_written_photo_of_a_killed_process_is_removed(store: Store) -> None:
    store.home.pictures.mkdir(parents=True, exist_ok=True)
    half = store.home.pictures / ".0123456789abcdef.png.aa.tmp"
    half.write_bytes(FILE)
    os.utime(half, (1, 1))
    store.owners.drop_left()
    assert not half.exists()


def test_a_photo_that_cannot_be_deleted_keeps_no_other_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = store.owners.add(FILE, "ann"), store.owners.add(OTHER, "bob")
    remove = UploadedPictures.remove

    def refuse_first(pictures: UploadedPictures, name: str) -> None:
        if name == first:
            raise HomeUnwritable("it is busy")
        remove(pictures, name)

    monkeypatch.setattr(UploadedPictures, "remove", refuse_first)
    leave_all(store, monkeypatch)
    store.owners.drop_left()
    assert UploadedPictures(store.home).names() == (first,) and second
    assert store.owners.pictures("ann") == (first,)  # tried again later
    monkeypatch.setattr(UploadedPictures, "remove", remove)
    store.owners.drop_left()
    assert UploadedPictures(store.home).names() == ()


def test_a_clock_that_was_ahead_keeps_no_visitor_here(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.owners.add(FILE, "ann")
    store.visits.see(["ann"], time.time() + 7 * 86400)
    store.visits.see(["ann"])  # the clock is right again, and so is the visit
    leave_all(store, monkeypatch)
    store.owners.drop_left()
    assert UploadedPictures(store.home).names() == ()


def test_what_is_deleted_is_not_left_in_the_file_of_the_store(store: Store) -> None:
    """The events of an attack hold the picture: neither the database nor its log may keep them."""
    name = store.owners.add(FILE, "ann")
    attack = attack_on(store, name)
    lease_text = "a secret that the events hold"
    raw = open_raw(store.home.path)
    raw.execute("UPDATE events SET body = ? WHERE run = ?", (f'{{"event": "{lease_text}"}}', attack))
    raw.close()
    store.owners.leave(name, "ann")
    store.complete_deletions()
    for file in store.home.path.glob("leaklens.db*"):
        assert lease_text.encode() not in file.read_bytes(), file.name
