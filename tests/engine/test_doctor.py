"""The doctor finds what works and what is broken, names the fixes, and changes nothing."""

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
from engine.doctor import Finding, can_run, examine
from engine.environment import ROOT, Requirements
from engine.errors import Damaged
from engine.events import Cancelled, Event, Finished, Kept, Round
from engine.jobs import payloads
from engine.jobs.migrations import MIGRATIONS
from engine.jobs.process_id import ProcessId, cores
from engine.jobs.store import Store
from tests.engine.makers import run_command

SETS = ["cifar10", "emnist", "fashion-mnist", "mnist", "movie-reviews", "sentiment140"]
NAMES = ["python", "packages", "torch", "home", "disk", "store", "payloads", "threads", "gpu", "device", "denormals"]
NAMES += ["assets", *SETS, "outside parts", "torchvision", "lpips"]
ARRAYS = {"x": np.arange(5000.0)}


def store_with(*events: Event, run: str = "one", lost: tuple[str, ...] = ()) -> Store:
    """A store with a run and its events. Their payloads are written, except the lost ones."""
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


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- all checks --------------------------------------------------------------------------------------------


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Finding], Path]:
    home = tmp_path_factory.mktemp("doctor") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKLENS_HOME", str(home))
        return by_name(examine()), home


def test_all_checks_pass_on_a_working_machine(healthy: tuple[dict[str, Finding], Path]):
    findings, home = healthy
    assert list(findings) == NAMES
    pinned = not Requirements(ROOT / "requirements.txt").lacking()
    failed = [finding.name for finding in findings.values() if not finding.ok]
    assert failed == ([] if pinned else ["packages"])
    assert can_run(list(findings.values()))
    assert not home.exists()
    assert findings["home"].text.startswith(f"{home}: does not exist yet")


def test_findings_hold_measured_values(healthy: tuple[dict[str, Finding], Path]):
    findings, _ = healthy
    assert torch.__version__ in findings["torch"].text
    assert f"cores: {cores()}; a lone run gets {cores()} threads" in findings["threads"].text
    distance = findings["lpips"].text.removeprefix("measures: 0 from a picture to itself, ").split()[0]
    assert 0 < float(distance) < 1


@pytest.mark.parametrize("name", SETS)
def test_a_data_set_lists_the_searched_places(healthy: tuple[dict[str, Finding], Path], name: str):
    findings, home = healthy
    text = findings[name].text
    assert (f"{DATASETS[name].noun} in {ROOT / 'assets'}" in text) is (name not in ("emnist", "sentiment140"))
    names_full_set = "full set: in " in text or f"full set: not here, looked in {home / 'data'}" in text
    assert names_full_set is (name != "movie-reviews")


def test_the_command_prints_every_finding(monkeypatch: pytest.MonkeyPatch):
    findings = [Finding("home", True, "fine"), Finding("lpips", False, "broken", "Restore")]
    monkeypatch.setattr(doctor, "examine", lambda: findings)
    assert run_command("doctor").out.split() == ["ok", "home", "fine", "look", "lpips", "broken", "Restore"]
    answer = run_command("doctor", "--json")
    assert answer.code == 0
    assert answer.json == [
        {"name": "home", "ok": True, "text": "fine", "remedy": ""},
        {"name": "lpips", "ok": False, "text": "broken", "remedy": "Restore"},
    ]


@pytest.mark.parametrize("name", ["python", "torch", "home", "store"])
def test_the_exit_code_is_1_when_nothing_can_run(monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setattr(doctor, "examine", lambda: [Finding(name, False, "broken", "Fix it")])
    assert run_command("doctor").code == 1


@pytest.mark.parametrize(
    ("error", "text", "remedy"),
    [
        (Damaged("store: torn", "Fix it"), "store: torn", "Fix it"),
        (ImportError("no module\nnamed torch"), "ImportError: no module named torch", "Delete .venv"),
        (PermissionError(13, "Permission denied", "/data"), "/data: permission denied", "its permissions"),
        (OSError("it broke"), "it broke", "its permissions"),
        (RuntimeError(), "RuntimeError: no message", "report it"),
    ],
)
def test_an_error_in_a_check_is_a_finding(monkeypatch: pytest.MonkeyPatch, error: Exception, text: str, remedy: str):
    def fail() -> Finding:
        raise error

    for name in ("home_folder", "lpips_works", "torchvision_loads"):
        monkeypatch.setattr(doctor, name, fail)
    findings = by_name(examine())
    assert list(findings) == NAMES
    for name in ("home", "lpips", "torchvision"):
        assert not findings[name].ok
        assert findings[name].text == text
        assert remedy in findings[name].remedy


# --- the program and the processor -------------------------------------------------------------------------


def test_an_old_python_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "OLDEST", (9, 9))
    assert doctor.python() == Finding("python", False, doctor.python().text, "Install Python 9.9 or newer")


def test_packages_are_compared_with_their_pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    (tmp_path / "requirements.txt").write_text(f"numpy=={np.__version__}")
    assert doctor.packages() == Finding("packages", True, f"as pinned: numpy {np.__version__}")
    (tmp_path / "requirements.txt").write_text(f"torch==0.0.1\nno-such-package==3\nnumpy=={np.__version__}")
    finding = doctor.packages()
    assert not finding.ok
    assert finding.text == f"torch {torch.__version__} instead of 0.0.1, no-such-package missing instead of 3"
    assert ".venv" in finding.remedy


def test_the_device_of_this_machine_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LEAKLENS_DEVICE", "cuda:900")
    finding = next(finding for finding in doctor.examine() if finding.name == "device")
    assert not finding.ok and finding.text == "LEAKLENS_DEVICE: must be cpu, or cuda where a GPU is found, got cuda:900"
    assert finding.remedy.startswith("Leave LEAKLENS_DEVICE out")


def test_the_check_of_denormals_does_not_change_this_thread(monkeypatch: pytest.MonkeyPatch):
    assert doctor.denormals().ok
    assert float(torch.tensor([1e-39]).mul(0.5)) > 0
    monkeypatch.setattr(torch, "set_flush_denormal", lambda on: False)
    assert not doctor.denormals().ok
    assert doctor.denormals().remedy


# --- the home ----------------------------------------------------------------------------------------------


def test_the_size_of_a_home_is_measured(home: Path):
    store_with(kept("state-1"), Finished(1, 0.1))
    finding = doctor.home_folder()
    assert finding.ok
    assert finding.text.startswith(f"{home}: writable; holds ")
    assert " of 20 GB allowed" in finding.text


def test_a_home_over_its_quota_is_reported(monkeypatch: pytest.MonkeyPatch):
    store_with(kept("state-1"))
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "1e-6")
    finding = doctor.home_folder()
    assert not finding.ok
    assert "of 1 kB allowed" in finding.text
    assert "Delete runs" in finding.remedy


def test_a_quota_that_is_no_number_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "much")
    finding = by_name(examine())["home"]
    assert (finding.ok, finding.text) == (False, "LEAKLENS_QUOTA_GB: must be a number above 0, got much")


@pytest.mark.parametrize("inside", ["payloads", "pictures"])
def test_a_file_in_place_of_a_folder_of_the_home_is_reported(home: Path, inside: str):
    home.mkdir()
    (home / inside).write_text("not a folder")
    findings = by_name(examine())
    assert findings["home"].text == f"{home / inside}: must be in a folder that can be written: not a directory"
    assert not can_run(list(findings.values()))


@pytest.mark.parametrize("name", ["~nobody-of-this-name/x", "/tmp/" + "a" * 300, "/proc/nowhere/home", "/dev/null/x"])
def test_an_impossible_home_is_reported(monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setenv("LEAKLENS_HOME", name)
    findings = examine()
    assert [finding.name for finding in findings] == NAMES
    assert not by_name(findings)["home"].ok and not can_run(findings)
    assert not [finding.remedy for finding in findings if "This is unexpected" in finding.remedy]
    assert not [finding.text for finding in findings if re.search(r"/tmp\w{8}", finding.text)]  # its temporary file


@pytest.mark.parametrize("inside", ["", "further/down"])
def test_a_file_in_place_of_the_home_is_reported(home: Path, monkeypatch: pytest.MonkeyPatch, inside: str):
    home.write_text("not a folder")
    monkeypatch.setenv("LEAKLENS_HOME", str(home / inside))
    findings = by_name(examine())
    assert findings["home"].text == f"{home}: must be in a folder that can be written: not a directory"
    assert "LEAKLENS_HOME" in findings["home"].remedy
    assert not findings["home"].ok
    assert not can_run(list(findings.values()))
    assert home.read_text() == "not a folder"


def test_a_disk_that_is_nearly_full_is_reported(monkeypatch: pytest.MonkeyPatch):
    assert doctor.disk().ok
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=5e8))
    finding = doctor.disk()
    assert not finding.ok
    assert finding.text.startswith("500 MB free at ")
    assert finding.remedy


# --- the store ---------------------------------------------------------------------------------------------


def test_a_missing_store_is_fine_and_is_not_created(home: Path):
    assert doctor.store() == Finding("store", True, "none yet: the first run creates it")
    assert doctor.payloads() == Finding("payloads", True, "0 files; 0 unreadable, 0 missing, 0 stray")
    assert not home.exists()


def test_it_counts_runs_by_their_status():
    store_with(kept("state-1"), Finished(1, 0.1), run="one")
    store_with(Cancelled(0), run="two")
    store_with(run="three")
    store = Store()
    store.submit("four", {})
    assert doctor.store().text == (
        f"version {len(MIGRATIONS)}, intact; 4 runs (1 cancelled, 1 finished, 1 interrupted, 1 queued), 3 events"
    )


def garbage(database: Path) -> None:
    database.write_bytes(b"no store at all" * 1000)


def torn(database: Path) -> None:
    """Overwrite a part of every page except the first."""
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


UNCHANGED = "nothing was overwritten"
BROKEN: list[tuple[Any, str, str]] = [
    (garbage, "cannot be read: file is not a database", UNCHANGED),
    (torn, "malformed", UNCHANGED),
    (altered("PRAGMA user_version = 99"), f"has version 99, this LeakLens supports up to {len(MIGRATIONS)}", "Update"),
    (altered("UPDATE events SET body = '{' WHERE number = 1"), "1 events cannot be read", UNCHANGED),
    (altered("UPDATE events SET body = '{' WHERE number = 3"), "1 events cannot be read", UNCHANGED),
]


@pytest.mark.parametrize(("broken", "text", "remedy"), BROKEN)
def test_a_broken_store_is_reported_and_not_changed(home: Path, broken: Any, text: str, remedy: str):
    store = store_with(kept("state-1"), Round(1, 2, 3), Finished(1, 0.1))
    broken(store.home.database)
    before = files_in(home)
    findings = by_name(examine())
    assert not findings["store"].ok
    assert str(store.home.database) in findings["store"].text
    assert text in findings["store"].text
    assert remedy in findings["store"].remedy
    assert not can_run(list(findings.values()))
    assert before.items() <= files_in(home).items()


def test_tables_of_another_program_are_reported(home: Path):
    home.mkdir()
    altered("CREATE TABLE songs (title TEXT)")(home / "leaklens.db")
    with pytest.raises(Damaged, match="holds tables of another program"):
        doctor.store()


def test_an_older_store_is_upgraded_by_the_next_run_only(monkeypatch: pytest.MonkeyPatch, home: Path):
    store_with(Finished(0, 0.1))
    before = files_in(home)
    monkeypatch.setattr(doctor, "MIGRATIONS", [*MIGRATIONS, ()])
    assert doctor.store().text == f"version {len(MIGRATIONS)}: the next run upgrades it to {len(MIGRATIONS) + 1}"
    assert doctor.store().ok
    assert before.items() <= files_in(home).items()


def test_a_store_too_large_to_check_in_time_is_reported(monkeypatch: pytest.MonkeyPatch):
    store_with(kept("state-1"), *[Round(number, 500, 1) for number in range(500)])
    monkeypatch.setattr(doctor, "LOOK_S", -1.0)
    assert "intact as far as it was read" in doctor.store().text
    assert "1 files, of which 0 were opened; 0 unreadable, 0 missing, 0 stray" in doctor.payloads().text


# --- the payloads ------------------------------------------------------------------------------------------


def test_payloads_that_are_named_and_open_are_fine():
    replaced = kept("checkpoint-1", "checkpoint")
    store_with(kept("state-1"), kept("state-2"), replaced, lost=("checkpoint-1",))
    assert doctor.payloads() == Finding("payloads", True, "2 files; 0 unreadable, 0 missing, 0 stray")


@pytest.mark.parametrize("keep", [0, 1000, 39_000])
def test_a_truncated_payload_is_reported_by_name(keep: int):
    store = store_with(kept("state-1"), kept("state-2"))
    file = store.home.payload("one", "state-2")
    file.write_bytes(file.read_bytes()[:keep])
    finding = doctor.payloads()
    assert not finding.ok
    assert finding.text == f"2 files; 1 unreadable, 0 missing, 0 stray; the first: {file}"
    assert finding.remedy == "Delete run one and submit it again"


def test_a_missing_payload_is_reported_by_name():
    store = store_with(kept("state-1"), kept("state-2"), lost=("state-2",))
    missing = store.home.payload("one", "state-2")
    assert not doctor.payloads().ok
    assert doctor.payloads().text == f"1 files; 0 unreadable, 1 missing, 0 stray; the first: {missing}"


def test_a_stray_payload_is_no_problem():
    store = store_with(kept("state-1"))
    payloads.write(store.home, "gone", "state-1", ARRAYS)
    finding = doctor.payloads()
    assert (finding.ok, finding.text) == (True, "2 files; 0 unreadable, 0 missing, 1 stray")
    assert "may be removed" in finding.remedy


def test_nothing_is_stray_or_missing_while_a_run_runs():
    store = store_with(kept("state-1"))
    store.submit("two", {})
    assert store.take(ProcessId.me(), 9)
    payloads.write(store.home, "two", "state-1", ARRAYS)
    assert doctor.payloads().text == "2 files; 0 unreadable, 0 missing, 0 stray"


def test_a_broken_store_does_not_make_payloads_stray():
    store = store_with(kept("state-1"))
    garbage(store.home.database)
    assert doctor.payloads().text == "1 files; 0 unreadable, 0 missing, 0 stray"


# --- data and measures -------------------------------------------------------------------------------------


def test_a_full_set_is_reported_with_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for name in (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"):
        (folder / name).write_bytes(bytes(3073))
    monkeypatch.setenv("LEAKLENS_DATA", str(tmp_path))
    finding = by_name(doctor.data_sets())["cifar10"]
    assert finding.text.endswith(f"full set: in {folder}")
    assert not finding.remedy


def test_a_missing_bundle_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(DataFolders, "here", classmethod(lambda cls: cls(tmp_path, (tmp_path,))))
    for finding in [finding for finding in doctor.data_sets() if DATASETS[finding.name].bundle]:
        assert not finding.ok
        assert "is not there" in finding.text
        assert finding.remedy == "Restore this file from the repository"
