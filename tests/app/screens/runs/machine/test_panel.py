"""The Machine screen: quick checks at once, one background examination for all, and the state of the engine."""

from __future__ import annotations

import platform
import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.runs.machine import examination as examinations
from app.screens.runs.machine import texts as machine_texts
from app.screens.runs.machine.examination import Examination
from app.session import services
from engine import doctor
from engine.doctor import Finding
from engine.environment import CLASS
from engine.errors import HomeFull
from engine.jobs.backends.device import DEVICE
from engine.jobs.process_id import ProcessId, cores
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from tests.app.conftest import PATIENCE_S, Screen
from tests.app.reading import text

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]

FINDINGS = (
    Finding("python", True, "3.11 somewhere"),
    Finding("store", False, "cannot be <read>", "Move it aside"),
    Finding("lpips", True, "measures"),
    Finding("mnist", True, "bundled part", "For the full set: unpack it"),
)


class Doctor:
    """A doctor that waits until a test lets it finish, and counts its examinations."""

    def __init__(self) -> None:
        self.may_finish = threading.Event()
        self.examinations = 0
        self.findings: Sequence[Finding] = FINDINGS

    def examine(self) -> Sequence[Finding]:
        self.examinations += 1
        assert self.may_finish.wait(PATIENCE_S)
        return self.findings


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """A doctor whose examination does not finish yet."""
    waiting = Doctor()
    examination = Examination(waiting.examine)
    monkeypatch.setattr(examinations, "examination", lambda: examination)
    return waiting


@pytest.fixture
def finished(waiting: Doctor) -> Doctor:
    """A doctor that has finished one examination."""
    waiting.may_finish.set()
    examination = examinations.examination()
    examination.begin()
    wait_for(examination)
    return waiting


def wait_for(examination: Examination) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while examination.running:
        assert time.monotonic() < deadline, "the examination does not end"
        time.sleep(0.005)


def lines(page: AppTest) -> dict[str, str]:
    """The text of each row of the page, by the name of its check."""
    names = re.findall(r'<th scope="row">([\w -]+)</th>', text(page))
    rows = re.findall(r"<tr><td.*?</tr>", text(page), re.DOTALL)
    texts = [" ".join(re.sub("<[^>]*>", " ", row).split()) for row in rows]
    return dict(zip(names, texts, strict=True))


# --- the doctor --------------------------------------------------------------------------------------------


def test_the_quick_checks_are_shown_at_once(waiting: Doctor, screen: Screen) -> None:
    page = screen("machine")
    assert not page.exception and machine_texts.LOOKING in text(page)
    shown = lines(page)
    assert shown["python"].startswith(f"✓ ok python {platform.python_version()}")
    assert "GB free at" in shown["disk"] and f"cores: {cores()};" in shown["threads"] and "allowed" in shown["home"]
    assert shown["lpips"] == "… checking lpips" and shown["torch"] == "… checking torch"
    assert page.button(key="look").disabled
    waiting.may_finish.set()
    wait_for(examinations.examination())


def test_every_finding_has_its_sign_its_text_and_its_remedy(finished: Doctor, screen: Screen) -> None:
    page = screen("machine")
    assert finished.examinations == 1 and not page.exception
    shown = lines(page)
    assert shown["python"] == "✓ ok python 3.11 somewhere"
    assert shown["store"] == "! fix store cannot be &lt;read&gt; Move it aside"
    assert shown["mnist"] == "✓ ok mnist bundled part For the full set: unpack it"
    groups = re.findall("<h2>(.*?)</h2>", text(page))
    assert groups == [machine_texts.WHERE, *examinations.GROUPS]
    assert list(shown).index("payloads") < list(shown).index("mnist") < list(shown).index("lpips")


@pytest.mark.parametrize(
    ("failed", "sentence"),
    [
        ((), machine_texts.FINE),
        (("disk",), "One check failed."),
        (("disk", "lpips"), "2 checks failed."),
        (("torch",), machine_texts.UNABLE),
    ],
)
def test_the_verdict(waiting: Doctor, screen: Screen, failed: Sequence[str], sentence: str) -> None:
    waiting.findings = [Finding(name, name not in failed, "") for name in ("python", "torch", "disk", "lpips")]
    waiting.may_finish.set()
    screen("machine")
    wait_for(examinations.examination())
    assert sentence in text(screen("machine"))


def test_the_doctor_examines_once_until_a_visitor_asks_again(finished: Doctor, screen: Screen) -> None:
    screen("machine")
    page = screen("machine")
    assert finished.examinations == 1
    finished.findings = (Finding("python", False, "grown old", "Install a newer one"),)
    page.button(key="look").click().run()
    wait_for(examinations.examination())
    assert finished.examinations == 2
    assert lines(page.run())["python"] == "! fix python grown old Install a newer one"


def test_two_visitors_make_one_examination(waiting: Doctor, screen: Screen) -> None:
    screen("machine")
    screen("machine")
    waiting.may_finish.set()
    wait_for(examinations.examination())
    assert waiting.examinations == 1


def test_the_report_can_be_copied(finished: Doctor, screen: Screen) -> None:
    written = screen("machine").code[0].value
    assert [line for line in written.splitlines() if not line.startswith(" ")] == list(examinations.GROUPS)
    for finding in FINDINGS:
        line = next(line for line in written.splitlines() if finding.name in line.split())
        assert finding.text in line and finding.remedy in line
        assert line.split()[0] == ("ok" if finding.ok else "look")


def test_an_error_of_the_doctor_is_a_finding(waiting: Doctor, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examinations.examination(), "_examine", lambda: 1 / 0)
    screen("machine")
    wait_for(examinations.examination())
    assert "ZeroDivisionError" in lines(screen("machine"))["doctor"]


def test_no_user_name_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    finding = examinations.redacted(Finding("home", True, f"{tmp_path / 'runs'}: full", f"Empty {tmp_path / 'runs'}"))
    assert (finding.text, finding.remedy) == (str(Path("~/runs")) + ": full", "Empty " + str(Path("~/runs")))


def test_visitors_of_a_class_see_no_folders_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CLASS, "1")
    text = "3.11 on Linux/x86, /opt/lens/.venv/bin/python; full set: looked in /srv/data/a.npz, /srv/data/b"
    finding = examinations.redacted(Finding("home", True, text, "See /srv/data/readme: it says"))
    assert finding.text == "3.11 on Linux/x86, …/python; full set: looked in …/a.npz, …/b"
    assert finding.remedy == "See …/readme: it says"


def test_every_check_of_the_doctor_has_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_checked", lambda name, look: Finding(name, True, f"about {name}"))
    findings = doctor.examine()
    names = [finding.name for finding in findings]
    grouped = [line for group in examinations.groups(findings).values() for line in group]
    assert sorted(line.name for line in grouped) == sorted(names)
    assert all(line.finding for line in grouped)
    assert {finding.name for finding in examinations.quick()} == set(examinations.QUICK) <= set(names)


# --- the engine --------------------------------------------------------------------------------------------


def facts(page: AppTest) -> dict[str, str]:
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?) <small>", text(page)))


@pytest.fixture
def busy(home: Path) -> None:
    """A store with one running and two queued runs."""
    store = Store()
    for run in ("first", "second", "third"):
        store.submit(run, {"rounds": 1})
    assert store.take(ProcessId.me(), 10)
    store.close()


@pytest.mark.usefixtures("busy")
def test_the_state_of_the_engine_is_shown(finished: Doctor, screen: Screen) -> None:
    page = screen("machine")
    begins = machine_texts.LATER if cores() == 1 else machine_texts.SOON
    assert facts(page) == {
        machine_texts.WORKERS: str(cores()),
        machine_texts.RUNNING: "1",
        machine_texts.WAITING: "2",
        machine_texts.NEXT: begins,
    }


def test_each_kind_of_work_and_each_run_under_way_has_its_device(
    home: Path, finished: Doctor, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store()
    store.submit("first", {"rounds": 1}, {"device": "cuda:1"})
    store.submit("second", {"rounds": 1})
    assert store.take(ProcessId.me(), 10)
    store.close()
    monkeypatch.setenv(DEVICE, "cuda")
    row = r'<tr class="ll-device"><td>(.*?)</td><th class="ll-work" scope="row">(.*?)<p'
    rows = re.findall(row, text(screen("machine")))
    assert rows == [
        ("cuda", "Training, testing and attacks"),
        ("processor", "Random numbers, ε, scores and stored files"),
        ("cuda:1", "run first"),
    ]


@pytest.mark.usefixtures("busy")
def test_a_warm_worker_does_not_help_while_every_slot_is_busy(
    finished: Doctor, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services.shared().supervisor, "workers", 1)
    monkeypatch.setattr(Supervisor, "warm", property(lambda supervisor: True))
    assert facts(screen("machine"))[machine_texts.NEXT] == machine_texts.LATER


def test_a_warm_worker_and_the_error_of_the_supervisor_are_shown(
    finished: Doctor, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = screen("machine")
    trouble = HomeFull("the home: no space is left", "Delete some runs")
    monkeypatch.setattr(Supervisor, "warm", property(lambda supervisor: True))
    monkeypatch.setattr(Supervisor, "trouble", property(lambda supervisor: trouble))
    page.run()
    assert facts(page)[machine_texts.NEXT] == machine_texts.AT_ONCE
    assert "No run can start now: the home: no space is left. Delete some runs." in text(page)


def occupy(home: Path) -> None:
    home.write_text("a file", encoding="utf-8")


def damage(home: Path) -> None:
    home.mkdir()
    (home / "leaklens.db").write_bytes(b"this is not a store" * 100)


@pytest.mark.parametrize("harm", [occupy, damage])
def test_without_a_store_the_findings_are_still_shown(
    home: Path, finished: Doctor, screen: Screen, harm: Callable[[Path], None]
) -> None:
    harm(home)
    page = screen("machine")
    assert not page.exception and not facts(page)
    assert str(home) in text(page).partition('role="alert">')[2] and "store" in lines(page)
