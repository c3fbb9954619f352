"""The Machine screen: quick facts at once, the rest by a thread that looks once, and how the engine stands."""

from __future__ import annotations

import platform
import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.machine import examination as examinations
from app.screens.machine import texts as machine_texts
from app.screens.machine.examination import Examination
from app.session import limits as class_limits
from engine import doctor
from engine.doctor import Finding
from engine.errors import HomeFull
from engine.jobs.process_id import ProcessId, cores
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from tests.app.conftest import PATIENCE_S, Screen
from tests.app.reading import text

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]

FOUND = (
    Finding("python", True, "3.11 somewhere"),
    Finding("store", False, "cannot be <read>", "Move it aside"),
    Finding("lpips", True, "measures"),
    Finding("mnist", True, "bundled part", "For the full set: unpack it"),
)


class Doctor:
    """Looks when it is let, and counts."""

    def __init__(self) -> None:
        self.door = threading.Event()
        self.visits = 0
        self.found: Sequence[Finding] = FOUND

    def examine(self) -> Sequence[Finding]:
        self.visits += 1
        assert self.door.wait(PATIENCE_S)
        return self.found


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Doctor:
    called = Doctor()
    examination = Examination(called.examine)
    monkeypatch.setattr(examinations, "examination", lambda: examination)
    return called


@pytest.fixture
def seen(called: Doctor) -> Doctor:
    called.door.set()
    examination = examinations.examination()
    examination.begin()
    done(examination)
    return called


def done(examination: Examination) -> None:
    last = time.monotonic() + PATIENCE_S
    while examination.looking:
        assert time.monotonic() < last, "the doctor does not come to an end"
        time.sleep(0.005)


def lines(page: AppTest) -> dict[str, str]:
    rows = re.findall(r'<th scope="row">([\w -]+)</th>', text(page))
    found = re.findall(r"<tr><td.*?</tr>", text(page), re.DOTALL)
    return dict(zip(rows, (" ".join(re.sub("<[^>]*>", " ", one).split()) for one in found), strict=True))


# --- the doctor --------------------------------------------------------------------------------------------


def test_quick_facts_are_there_at_once(called: Doctor, screen: Screen) -> None:
    page = screen("machine")
    assert not page.exception and machine_texts.LOOKING in text(page)
    shown = lines(page)
    assert shown["python"].startswith(f"✓ ok python {platform.python_version()}")
    assert "GB free at" in shown["disk"] and f"cores: {cores()};" in shown["threads"] and "allowed" in shown["home"]
    assert shown["lpips"] == "… looking lpips" and shown["torch"] == "… looking torch"
    assert page.button(key="look").disabled
    called.door.set()
    done(examinations.examination())


def test_every_finding_has_its_word_its_text_and_its_remedy(seen: Doctor, screen: Screen) -> None:
    page = screen("machine")
    assert seen.visits == 1 and not page.exception
    shown = lines(page)
    assert shown["python"] == "✓ ok python 3.11 somewhere"
    assert shown["store"] == "! look store cannot be &lt;read&gt; Move it aside"
    assert shown["mnist"] == "✓ ok mnist bundled part For the full set: unpack it"
    groups = re.findall("<h2>(.*?)</h2>", text(page))
    assert groups == list(examinations.GROUPS)
    assert list(shown).index("payloads") < list(shown).index("mnist") < list(shown).index("lpips")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ((), machine_texts.FINE),
        (("disk",), "One thing wants a look."),
        (("disk", "lpips"), "2 things want a look."),
        (("torch",), machine_texts.UNABLE),
    ],
)
def test_the_verdict(called: Doctor, screen: Screen, wrong: Sequence[str], said: str) -> None:
    called.found = [Finding(name, name not in wrong, "") for name in ("python", "torch", "disk", "lpips")]
    called.door.set()
    screen("machine")
    done(examinations.examination())
    assert said in text(screen("machine"))


def test_it_looks_once_until_it_is_asked_to_look_again(seen: Doctor, screen: Screen) -> None:
    screen("machine")
    page = screen("machine")
    assert seen.visits == 1
    seen.found = (Finding("python", False, "grown old", "Install a newer one"),)
    page.button(key="look").click().run()
    done(examinations.examination())
    assert seen.visits == 2
    assert lines(page.run())["python"] == "! look python grown old Install a newer one"


def test_two_visitors_make_one_examination(called: Doctor, screen: Screen) -> None:
    screen("machine")
    screen("machine")
    called.door.set()
    done(examinations.examination())
    assert called.visits == 1


def test_the_report_can_be_copied(seen: Doctor, screen: Screen) -> None:
    written = screen("machine").code[0].value
    assert [line for line in written.splitlines() if not line.startswith(" ")] == list(examinations.GROUPS)
    for found in FOUND:
        line = next(line for line in written.splitlines() if found.name in line.split())
        assert found.text in line and found.remedy in line
        assert line.split()[0] == ("ok" if found.ok else "look")


def test_a_doctor_that_breaks_is_a_finding(called: Doctor, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examinations.examination(), "_examine", lambda: 1 / 0)
    screen("machine")
    done(examinations.examination())
    assert "ZeroDivisionError" in lines(screen("machine"))["doctor"]


def test_nobody_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    found = examinations.homely(Finding("home", True, f"{tmp_path / 'runs'}: full", f"Empty {tmp_path / 'runs'}"))
    assert (found.text, found.remedy) == (str(Path("~/runs")) + ": full", "Empty " + str(Path("~/runs")))


def test_visitors_of_a_class_do_not_learn_where_things_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(class_limits.CLASS, "1")
    text = "3.11 on Linux/x86, /opt/lens/.venv/bin/python; full set: looked in /srv/data/a.npz, /srv/data/b"
    found = examinations.homely(Finding("home", True, text, "See /srv/data/readme: it says"))
    assert found.text == "3.11 on Linux/x86, …/python; full set: looked in …/a.npz, …/b"
    assert found.remedy == "See …/readme: it says"


def test_every_look_of_the_doctor_has_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_looked", lambda name, look: Finding(name, True, f"about {name}"))
    found = doctor.examine()
    grouped = examinations.groups(found)
    assert sorted(line.name for group in grouped.values() for line in group) == sorted(one.name for one in found)
    assert all(line.finding for group in grouped.values() for line in group)
    assert {one.name for one in examinations.quick()} == set(examinations.QUICK) <= {one.name for one in found}


# --- the engine --------------------------------------------------------------------------------------------


def facts(page: AppTest) -> dict[str, str]:
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?) <small>", text(page)))


@pytest.fixture
def busy(home: Path) -> None:
    """One run of three is taken."""
    store = Store()
    for run in ("one", "two", "three"):
        store.submit(run, {"rounds": 1})
    assert store.take(ProcessId.me(), 10)
    store.close()


@pytest.mark.usefixtures("busy")
def test_the_engine_is_shown_as_it_stands(seen: Doctor, screen: Screen) -> None:
    page = screen("machine")
    begins = machine_texts.LATER if cores() == 1 else machine_texts.SOON
    assert facts(page) == {
        machine_texts.WORKERS: str(cores()),
        machine_texts.RUNNING: "1",
        machine_texts.WAITING: "2",
        machine_texts.NEXT: begins,
    }


def test_a_warm_worker_and_a_trouble_are_told(seen: Doctor, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    page = screen("machine")
    trouble = HomeFull("the home: no space is left", "Delete some runs")
    monkeypatch.setattr(Supervisor, "warm", property(lambda supervisor: True))
    monkeypatch.setattr(Supervisor, "trouble", property(lambda supervisor: trouble))
    page.run()
    assert facts(page)[machine_texts.NEXT] == machine_texts.AT_ONCE
    assert "Why nothing moves: the home: no space is left. Delete some runs." in text(page)


def occupy(home: Path) -> None:
    home.write_text("a file", encoding="utf-8")


def damage(home: Path) -> None:
    home.mkdir()
    (home / "leaklens.db").write_bytes(b"this is not a store" * 100)


@pytest.mark.parametrize("harm", [occupy, damage])
def test_without_a_store_the_doctor_still_answers(
    home: Path, seen: Doctor, screen: Screen, harm: Callable[[Path], None]
) -> None:
    harm(home)
    page = screen("machine")
    assert not page.exception and not facts(page)
    assert str(home) in text(page).partition('role="alert">')[2] and "store" in lines(page)
