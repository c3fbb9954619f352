"""The doctor sees what is there and what is broken, says what would help, and leaves everything as it lies."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from engine import doctor
from engine.datasets.base import DATASETS, DataFolders
from engine.doctor import Finding, able, examine
from engine.environment import ROOT, Requirements
from engine.errors import Damaged
from engine.events import Cancelled, Event, Finished, Kept, Round
from engine.jobs import payloads
from engine.jobs.database import MIGRATIONS
from engine.jobs.process_id import ProcessId, cores
from engine.jobs.store import Store
from tests.engine.makers import ask

SETS = ["cifar10", "emnist", "fashion-mnist", "mnist", "movie-reviews", "sentiment140"]
NAMES = ["python", "packages", "torch", "home", "disk", "store", "payloads", "threads", "gpu", "denormals"]
NAMES += [*SETS, "torchvision", "lpips"]
ARRAYS = {"x": np.arange(5000.0)}


def told(*events: Event, run: str = "one", lost: tuple[str, ...] = ()) -> Store:
    """A store in which a run told these events; their payloads lie beside it, but for the lost ones."""
    store = Store()
    store.submit(run, {"rounds": 2})
    lease = store.take(ProcessId.me(), 9)
    assert lease
    for event in events:
        if isinstance(event, Kept) and event.name not in lost:
            payloads.write(store.home, run, event.name, ARRAYS)
    store.append(lease, events)
    store.release(lease)
    store.close()
    return store


def kept(name: str, kind: str = "state") -> Kept:
    return Kept(kind, name, 1)


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- the whole ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Finding], Path]:
    home = tmp_path_factory.mktemp("doctor") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKLENS_HOME", str(home))
        return {one.name: one for one in examine()}, home


def test_a_sound_machine_is_found_sound(healthy: tuple[dict[str, Finding], Path]):
    findings, home = healthy
    assert list(findings) == NAMES
    pinned = not Requirements(ROOT / "requirements.txt").lacking()
    assert [one.name for one in findings.values() if not one.ok] == ([] if pinned else ["packages"])
    assert able(list(findings.values()))
    assert not home.exists()
    assert findings["home"].text.startswith(f"{home}: not there yet")


def test_it_measures_what_it_says(healthy: tuple[dict[str, Finding], Path]):
    findings, _ = healthy
    assert torch.__version__ in findings["torch"].text
    assert f"cores: {cores()}; a lone run gets {cores()} threads" in findings["threads"].text
    distance = findings["lpips"].text.removeprefix("measures: 0 from a picture to itself, ").split()[0]
    assert 0 < float(distance) < 1


@pytest.mark.parametrize("name", SETS)
def test_it_shows_where_a_data_set_was_looked_for(healthy: tuple[dict[str, Finding], Path], name: str):
    findings, home = healthy
    text = findings[name].text
    assert (f"{DATASETS[name].noun} in {ROOT / 'assets'}" in text) is (name not in ("emnist", "sentiment140"))
    found = "full set: in " in text or f"full set: not here, looked in {home / 'data'}" in text
    assert found is (name != "movie-reviews")


def test_the_command_prints_every_finding(monkeypatch: pytest.MonkeyPatch):
    found = [Finding("home", True, "fine"), Finding("lpips", False, "silent", "Shout")]
    monkeypatch.setattr(doctor, "examine", lambda: found)
    assert ask("doctor").out.split() == ["ok", "home", "fine", "look", "lpips", "silent", "Shout"]
    answer = ask("doctor", "--json")
    assert answer.code == 0
    assert answer.json == [
        {"name": "home", "ok": True, "text": "fine", "remedy": ""},
        {"name": "lpips", "ok": False, "text": "silent", "remedy": "Shout"},
    ]


@pytest.mark.parametrize("name", ["python", "torch", "home", "store"])
def test_the_exit_code_tells_that_nothing_can_run(monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setattr(doctor, "examine", lambda: [Finding(name, False, "broken", "Mend it")])
    assert ask("doctor").code == 1


@pytest.mark.parametrize(
    ("error", "text", "remedy"),
    [
        (Damaged("store: torn", "Mend it"), "store: torn", "Mend it"),
        (ImportError("no module\nnamed torch"), "ImportError: no module named torch", "Delete .venv"),
        (PermissionError(13, "Permission denied", "/data"), "/data: permission denied", "its permissions"),
        (OSError("it broke"), "it broke", "its permissions"),
        (RuntimeError(), "RuntimeError: no words", "report it"),
    ],
)
def test_trouble_while_looking_is_a_finding(monkeypatch: pytest.MonkeyPatch, error: Exception, text: str, remedy: str):
    def breaks() -> Finding:
        raise error

    for name in ("home_folder", "lpips_works", "torchvision_opens"):
        monkeypatch.setattr(doctor, name, breaks)
    found = {one.name: one for one in examine()}
    assert list(found) == NAMES
    for name in ("home", "lpips", "torchvision"):
        assert not found[name].ok
        assert found[name].text == text
        assert remedy in found[name].remedy


# --- the program and the processor -------------------------------------------------------------------------


def test_an_old_python_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "OLDEST", (9, 9))
    assert doctor.python() == Finding("python", False, doctor.python().text, "Install Python 9.9 or newer")


def test_packages_are_held_against_their_pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    (tmp_path / "requirements.txt").write_text(f"numpy=={np.__version__}")
    assert doctor.packages() == Finding("packages", True, f"as pinned: numpy {np.__version__}")
    (tmp_path / "requirements.txt").write_text(f"torch==0.0.1\nno-such-package==3\nnumpy=={np.__version__}")
    found = doctor.packages()
    assert not found.ok
    assert found.text == f"torch {torch.__version__} instead of 0.0.1, no-such-package missing instead of 3"
    assert ".venv" in found.remedy


def test_a_gpu_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert doctor.gpu().text == "none: everything runs on the processor"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: f"Card {number}")
    assert doctor.gpu().text == "Card 0: choose it with --device cuda"


def test_denormals_are_tried_without_touching_this_thread(monkeypatch: pytest.MonkeyPatch):
    assert doctor.denormals().ok
    assert float(torch.tensor([1e-39]).mul(0.5)) > 0
    monkeypatch.setattr(torch, "set_flush_denormal", lambda on: False)
    assert not doctor.denormals().ok
    assert doctor.denormals().remedy


# --- the home ----------------------------------------------------------------------------------------------


def test_a_home_in_use_is_measured(home: Path):
    told(kept("state-1"), Finished(1, 0.1))
    found = doctor.home_folder()
    assert found.ok
    assert found.text.startswith(f"{home}: can be written; holds ")
    assert " of 20 GB allowed" in found.text


def test_a_home_over_its_quota_is_told(monkeypatch: pytest.MonkeyPatch):
    told(kept("state-1"))
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "1e-6")
    found = doctor.home_folder()
    assert not found.ok
    assert "of 1 kB allowed" in found.text
    assert "Delete runs" in found.remedy


def test_a_quota_that_is_no_number_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "much")
    found = {one.name: one for one in examine()}["home"]
    assert (found.ok, found.text) == (False, "LEAKLENS_QUOTA_GB: must be a number above 0, got much")


@pytest.mark.parametrize("inside", ["payloads", "pictures"])
def test_a_file_in_place_of_a_folder_of_the_home_is_told(home: Path, inside: str):
    home.mkdir()
    (home / inside).write_text("not a folder")
    found = {one.name: one for one in examine()}
    assert found["home"].text == f"{home / inside}: must be in a folder that can be written: not a directory"
    assert not able(list(found.values()))


@pytest.mark.parametrize("name", ["~nobody-of-this-name/x", "/tmp/" + "a" * 300, "/proc/nowhere/home", "/dev/null/x"])
def test_no_home_surprises_it(monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setenv("LEAKLENS_HOME", name)
    found = examine()
    assert [one.name for one in found] == NAMES
    assert not {one.name: one for one in found}["home"].ok and not able(found)
    assert not [one.remedy for one in found if "Nothing foresaw" in one.remedy]
    assert not [one.text for one in found if re.search(r"/tmp\w{8}", one.text)]  # its own trial file


@pytest.mark.parametrize("inside", ["", "further/down"])
def test_a_file_in_place_of_the_home_is_told(home: Path, monkeypatch: pytest.MonkeyPatch, inside: str):
    home.write_text("not a folder")
    monkeypatch.setenv("LEAKLENS_HOME", str(home / inside))
    found = {one.name: one for one in examine()}
    assert found["home"].text == f"{home}: must be in a folder that can be written: not a directory"
    assert "LEAKLENS_HOME" in found["home"].remedy
    assert not found["home"].ok
    assert not able(list(found.values()))
    assert home.read_text() == "not a folder"


def test_a_disk_that_is_nearly_full_is_told(monkeypatch: pytest.MonkeyPatch):
    assert doctor.disk().ok
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=5e8))
    found = doctor.disk()
    assert not found.ok
    assert found.text.startswith("500 MB free at ")
    assert found.remedy


# --- the store ---------------------------------------------------------------------------------------------


def test_no_store_yet_is_fine_and_none_is_made(home: Path):
    assert doctor.store() == Finding("store", True, "none yet: the first run begins it")
    assert doctor.payloads() == Finding("payloads", True, "0 files; 0 unreadable, 0 missing, 0 stray")
    assert not home.exists()


def test_it_counts_runs_by_their_status():
    told(kept("state-1"), Finished(1, 0.1), run="one")
    told(Cancelled(0), run="two")
    told(run="three")
    store = Store()
    store.submit("four", {})
    assert doctor.store().text == (
        f"version {len(MIGRATIONS)}, sound; 4 runs (1 cancelled, 1 finished, 1 interrupted, 1 queued), 3 events"
    )


def garbage(database: Path) -> None:
    database.write_bytes(b"no store at all" * 1000)


def torn(database: Path) -> None:
    """The middle of every page but the first is lost."""
    body = bytearray(database.read_bytes())
    for page in range(4096, len(body), 4096):
        body[page : page + 2000] = b"\xff" * 2000
    database.write_bytes(body)


def altered(statement: str) -> Callable[[Path], None]:
    def alter(database: Path) -> None:
        with sqlite3.connect(database) as connection:
            connection.execute(statement)
        connection.close()

    return alter


ALONE = "nothing was overwritten"
BROKEN: list[tuple[Any, str, str]] = [
    (garbage, "cannot be read: file is not a database", ALONE),
    (torn, "malformed", ALONE),
    (altered("PRAGMA user_version = 99"), f"has version 99, this LeakLens knows up to {len(MIGRATIONS)}", "Update"),
    (altered("UPDATE events SET body = '{' WHERE number = 1"), "1 events cannot be read", ALONE),
    (altered("UPDATE events SET body = '{' WHERE number = 3"), "1 events cannot be read", ALONE),
]


@pytest.mark.parametrize(("broken", "text", "remedy"), BROKEN)
def test_a_broken_store_is_told_and_left_alone(home: Path, broken: Any, text: str, remedy: str):
    store = told(kept("state-1"), Round(1, 2, 3), Finished(1, 0.1))
    broken(store.home.database)
    before = everything(home)
    found = {one.name: one for one in examine()}
    assert not found["store"].ok
    assert str(store.home.database) in found["store"].text
    assert text in found["store"].text
    assert remedy in found["store"].remedy
    assert not able(list(found.values()))
    assert before.items() <= everything(home).items()


def test_tables_of_another_program_are_told(home: Path):
    home.mkdir()
    altered("CREATE TABLE songs (title TEXT)")(home / "leaklens.db")
    with pytest.raises(Damaged, match="holds tables of another program"):
        doctor.store()


def test_an_older_store_is_led_up_by_the_next_run_only(monkeypatch: pytest.MonkeyPatch, home: Path):
    told(Finished(0, 0.1))
    before, version = everything(home), len(MIGRATIONS)
    monkeypatch.setattr(doctor, "MIGRATIONS", [*MIGRATIONS, ()])
    assert doctor.store().text == f"version {version}: the next run leads it up to {version + 1}"
    assert doctor.store().ok
    assert before.items() <= everything(home).items()


def test_a_store_too_large_to_read_through_is_told(monkeypatch: pytest.MonkeyPatch):
    told(kept("state-1"), *[Round(number, 500, 1) for number in range(500)])
    monkeypatch.setattr(doctor, "LOOK_S", -1.0)
    assert "sound as far as it was read" in doctor.store().text
    assert "1 files, of which 0 were opened; 0 unreadable, 0 missing, 0 stray" in doctor.payloads().text


# --- the payloads ------------------------------------------------------------------------------------------


def test_payloads_that_are_named_and_open_are_fine():
    replaced = kept("checkpoint-1", "checkpoint")
    told(kept("state-1"), kept("state-2"), replaced, lost=("checkpoint-1",))
    assert doctor.payloads() == Finding("payloads", True, "2 files; 0 unreadable, 0 missing, 0 stray")


@pytest.mark.parametrize("keep", [0, 1000, 39_000])
def test_a_cut_payload_is_told_by_name(keep: int):
    store = told(kept("state-1"), kept("state-2"))
    file = store.home.payload("one", "state-2")
    file.write_bytes(file.read_bytes()[:keep])
    found = doctor.payloads()
    assert not found.ok
    assert found.text == f"2 files; 1 unreadable, 0 missing, 0 stray; the first: {file}"
    assert found.remedy == "Delete run one and ask it again"


def test_a_missing_payload_is_told_by_name():
    store = told(kept("state-1"), kept("state-2"), lost=("state-2",))
    found = doctor.payloads()
    assert not found.ok
    assert found.text == f"1 files; 0 unreadable, 1 missing, 0 stray; the first: {store.home.payload('one', 'state-2')}"


def test_a_stray_payload_does_no_harm():
    store = told(kept("state-1"))
    payloads.write(store.home, "gone", "state-1", ARRAYS)
    found = doctor.payloads()
    assert (found.ok, found.text) == (True, "2 files; 0 unreadable, 0 missing, 1 stray")
    assert "may be removed" in found.remedy


def test_nothing_is_stray_or_missing_while_a_run_runs():
    store = told(kept("state-1"))
    store.submit("two", {})
    assert store.take(ProcessId.me(), 9)
    payloads.write(store.home, "two", "state-1", ARRAYS)
    assert doctor.payloads().text == "2 files; 0 unreadable, 0 missing, 0 stray"


def test_a_broken_store_does_not_make_payloads_stray():
    store = told(kept("state-1"))
    garbage(store.home.database)
    assert doctor.payloads().text == "1 files; 0 unreadable, 0 missing, 0 stray"


# --- data and measures -------------------------------------------------------------------------------------


def test_a_full_set_is_found_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for name in (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"):
        (folder / name).write_bytes(bytes(3073))
    monkeypatch.setenv("LEAKLENS_DATA", str(tmp_path))
    found = {one.name: one for one in doctor.data_sets()}["cifar10"]
    assert found.text.endswith(f"full set: in {folder}")
    assert not found.remedy


def test_a_bundle_that_is_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(DataFolders, "here", classmethod(lambda cls: cls(tmp_path, (tmp_path,))))
    for found in (one for one in doctor.data_sets() if DATASETS[one.name].bundle):
        assert not found.ok
        assert "is not there" in found.text
        assert found.remedy == "Restore this file from the repository"
