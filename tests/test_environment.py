"""A start from nothing: `.venv` is made once, found again, repaired when broken, and never entered in a circle."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from app import __main__ as start_app
from engine import __main__ as start_engine
from engine import environment
from engine.environment import GUARD, ROOT, StartError, Venv, enter, take_index
from tests import __main__ as start_tests

PROBE = """import json, sys
from engine.environment import ROOT, enter
rest = enter("probe", ROOT / "requirements.txt", sys.argv[1:])
import tiny
print(json.dumps({"prefix": sys.prefix, "rest": rest, "tiny": tiny.SAYS}))
"""


def wheel(folder: Path, version: str) -> None:
    """The smallest wheel pip accepts: one module `tiny`."""
    record = f"tiny-{version}.dist-info"
    with zipfile.ZipFile(folder / f"tiny-{version}-py3-none-any.whl", "w") as file:
        file.writestr("tiny.py", f"SAYS = {version!r}\n")
        file.writestr(f"{record}/METADATA", f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n")
        file.writestr(f"{record}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{record}/RECORD", "")


class Project:
    """A copy of the starter with one dependency, whose wheel lies in a folder that only pip's configuration names."""

    def __init__(self, root: Path) -> None:
        self.root, self.wheels, self.index, self.empty = root, root / "wheels", root / "index", root / "empty"
        for folder in (root / "assets", root / "engine", root / "probe", self.wheels, self.index / "tiny", self.empty):
            folder.mkdir(parents=True)
        shutil.copy(ROOT / "engine" / "environment.py", root / "engine")
        (root / "engine" / "__init__.py").touch()
        (root / "probe" / "__main__.py").write_text(PROBE)
        wheel(self.wheels, "1.0")
        wheel(self.index / "tiny", "1.0+cpu")
        (self.index / "tiny" / "index.html").write_text('<a href="tiny-1.0+cpu-py3-none-any.whl">tiny</a>')
        self.require("tiny==1.0")

    def require(self, text: str) -> None:
        (self.root / "requirements.txt").write_text(text + "\n")

    def start(self, *words: str, **more: str) -> subprocess.Popen[str]:
        ordinary = {key: value for key, value in os.environ.items() if key != GUARD and not key.startswith("PIP_")}
        pip = {
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": self.empty.as_uri(),
            "PIP_FIND_LINKS": self.wheels.as_uri(),
        }
        command = [sys.executable, "-m", "probe", *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.root, env={**ordinary, **pip, **more}, stdout=pipe, stderr=pipe, text=True
        )

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        running = self.start(*words, **more)
        stdout, stderr = running.communicate(timeout=120)
        return subprocess.CompletedProcess(running.args, running.returncode, stdout, stderr)

    def answer(self, *words: str) -> tuple[dict[str, object], str]:
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr


Start = tuple[Project, dict[str, object], str]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Start:
    """A project and its first start: making a `.venv` takes seconds, so the tests share one."""
    if importlib.util.find_spec("ensurepip") is None:
        pytest.skip("this Python has no ensurepip, so it makes no .venv")
    project = Project(tmp_path_factory.mktemp("a project"))
    return (project, *project.answer("--rounds", "3", "--index", project.index.as_uri(), "--json"))


@pytest.fixture
def project(first: Start) -> Project:
    """The shared project with its `.venv` ready, whatever the test before did to it."""
    first[0].require("tiny==1.0")
    first[0].answer()
    return first[0]


@pytest.mark.slow
def test_the_first_start_makes_the_environment_and_hands_over(first: Start) -> None:
    project, answer, stderr = first
    assert answer == {"prefix": str(project.root / ".venv"), "rest": ["--rounds", "3", "--json"], "tiny": "1.0+cpu"}
    assert "making .venv" in stderr
    assert "ready after" in stderr
    assert json.loads((project.root / ".venv" / "leaklens.json").read_text())["requirements"]


@pytest.mark.slow
def test_the_second_start_runs_no_pip_and_says_nothing(project: Project) -> None:
    shutil.move(Venv(project.root).site / "pip", project.root / "pip-away")
    try:
        answer, stderr = project.answer("a", "b")
    finally:
        shutil.move(project.root / "pip-away", Venv(project.root).site / "pip")
    assert answer["rest"] == ["a", "b"]
    assert stderr == ""


@pytest.mark.slow
def test_an_index_asked_for_too_late_is_explained(project: Project) -> None:
    answer, stderr = project.answer("--index=https://example.org/simple")
    assert answer["rest"] == []
    assert "--index was not needed" in stderr


@pytest.mark.slow
def test_changed_requirements_are_installed_into_the_same_environment(
    project: Project,
) -> None:
    kept = project.root / ".venv" / "kept"
    kept.touch()
    wheel(project.wheels, "1.1")
    project.require("-r more.txt")
    (project.root / "more.txt").write_text("tiny==1.1  # newer\n")
    answer, stderr = project.answer()
    assert answer["tiny"] == "1.1"
    assert "making" not in stderr
    assert kept.exists()


@pytest.mark.slow
def test_what_a_kill_left_half_made_is_made_again_by_one_of_two_starts(project: Project) -> None:
    venv = Venv(project.root)
    venv.stamp.rename(venv.mark)  # what a kill in the middle of pip leaves
    debris = venv.folder / "debris"
    debris.touch()
    with environment._alone(project.root):  # both come to the door while it is locked
        both = [project.start(word) for word in ("one", "two")]
        waiting = [running.stderr.readline() for running in both if running.stderr]
    stdout, stderr = zip(*(running.communicate(timeout=120) for running in both), strict=True)
    assert waiting == ["leaklens: another start is preparing .venv: waiting for it\n"] * 2
    assert [json.loads(text)["rest"] for text in stdout] == [["one"], ["two"]]
    assert sorted("making it again" in text for text in stderr) == [False, True]
    assert not debris.exists()
    assert not venv.mark.exists()


@pytest.mark.slow
def test_a_pip_that_fails_leaves_no_stamp_and_names_the_remedy(
    project: Project,
) -> None:
    project.require("tiny==9.9")
    done = project.run()
    assert done.returncode == 2
    assert done.stdout == ""
    assert "pip did not finish: no package index in reach offers it for this Python" in done.stderr
    assert "Traceback" not in done.stderr
    assert not Venv(project.root).stamp.exists()


@pytest.mark.slow
def test_a_start_from_another_folder_finds_the_packages(project: Project, tmp_path: Path) -> None:
    Venv(project.root).stamp.unlink()
    start = f"import sys; sys.path.insert(0, {str(project.root)!r}); import runpy; runpy.run_module('probe')"
    plain = {key: value for key, value in os.environ.items() if key not in (GUARD, "PYTHONPATH")}
    pip = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": project.wheels.as_uri(), "PIP_NO_INDEX": "1"}
    command = [sys.executable, "-c", start, "one"]
    done = subprocess.run(command, cwd=tmp_path, env={**plain, **pip}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["prefix"] == str(project.root / ".venv")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder that passes for the repository."""
    (tmp_path / "assets").mkdir()
    return tmp_path


def test_a_python_that_has_everything_is_used_as_it_is(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "requirements.txt").write_text(f"pytest=={importlib.metadata.version('pytest')}\n")
    assert enter("app", root / "requirements.txt", ["--port", "1"], root) == ["--port", "1"]
    assert not (root / ".venv").exists()
    assert capsys.readouterr().err == ""


def test_the_installed_command_builds_nothing_where_the_pins_are_satisfied(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "requirements.txt").write_text(f"pytest=={importlib.metadata.version('pytest')}\n")
    monkeypatch.setattr(start_engine, "ROOT", root)
    monkeypatch.setattr(environment, "Venv", lambda folder: pytest.fail("no second environment is needed"))
    monkeypatch.setattr(sys, "argv", ["leaklens", "list", "partitions"])
    assert start_engine.start() == 0
    assert "dirichlet" in capsys.readouterr().out


def test_the_installed_command_starts_the_same_module_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[tuple[str, Path, list[str]]] = []

    def enter_elsewhere(module: str, requirements: Path, argv: list[str]) -> list[str]:
        requests.append((module, requirements, argv))
        raise KeyboardInterrupt  # the user stops it

    monkeypatch.setattr(start_engine, "enter", enter_elsewhere)
    monkeypatch.setattr(sys, "argv", ["leaklens", "runs"])
    assert start_engine.start() == 130
    assert requests == [("engine", ROOT / "requirements.txt", ["runs"])]


def test_the_installed_command_is_the_function_that_pyproject_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"leaklens": f"{start_engine.__name__}:{start_engine.start.__name__}"}


def test_a_copy_without_the_data_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        enter("engine", tmp_path / "requirements.txt", [], tmp_path)
    assert stopped.value.code == 2
    stderr = capsys.readouterr().err
    assert "has no folder `assets`" in stderr
    assert "`pip install -e .`" in stderr


def test_an_environment_that_lacks_what_it_was_given_is_not_entered_twice(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "requirements.txt").write_text("tiny==1.0\n")
    monkeypatch.setenv(GUARD, str(Venv(root).python))
    with pytest.raises(SystemExit) as stopped:
        enter("app", root / "requirements.txt", [], root)
    assert stopped.value.code == 2
    assert "does not see tiny==1.0. Delete" in capsys.readouterr().err
    assert GUARD not in os.environ


@pytest.mark.parametrize("absent", ["venv", "ensurepip"])
def test_a_python_without_venv_says_how_to_get_it(
    absent: str, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == absent else real(name))
    (root / "requirements.txt").write_text("tiny==1.0\n")
    with pytest.raises(SystemExit) as stopped:
        enter("app", root / "requirements.txt", [], root)
    assert stopped.value.code == 2
    stderr = capsys.readouterr().err
    assert f"without `{absent}`" in stderr
    assert "apt-get install python3-venv" in stderr


def test_an_old_python_gets_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(environment, "OLDEST", (99, 0))
    with pytest.raises(SystemExit) as stopped:
        enter("app", ROOT / "requirements.txt", [])
    assert stopped.value.code == 2
    assert "LeakLens needs Python 99.0 or newer, and" in capsys.readouterr().err


@pytest.mark.parametrize(
    "path",
    [
        *("engine/__init__.py", "engine/__main__.py", "engine/environment.py"),
        *("app/__init__.py", "app/__main__.py", "tests/__init__.py", "tests/__main__.py"),
    ],
)
def test_an_old_python_can_read_as_far_as_that_sentence(path: str) -> None:
    ast.parse((ROOT / path).read_text(encoding="utf-8"), feature_version=(3, 8))


def test_a_folder_that_cannot_be_written_is_said(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "requirements.txt").write_text("tiny==1.0\n")
    (root / ".venv.lock").mkdir()  # no user can write there, root included
    with pytest.raises(SystemExit) as stopped:
        enter("app", root / "requirements.txt", [], root)
    assert stopped.value.code == 2
    assert "It must be a folder that you may write to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "index", "rest"),
    [
        ([], "", []),
        (["run", "--json"], "", ["run", "--json"]),
        (["--index", "U", "-x"], "U", ["-x"]),
        (["-x", "--index=U"], "U", ["-x"]),
        (["--indexed", "U"], "", ["--indexed", "U"]),
    ],
)
def test_the_index_is_taken_out(words: list[str], index: str, rest: list[str]) -> None:
    assert take_index(words) == (index, rest)


@pytest.mark.parametrize("words", [["--index"], ["--index="], ["--index", "--quick"]])
def test_an_index_without_an_address_is_refused(words: list[str]) -> None:
    with pytest.raises(StartError, match="--index: must be followed by the address"):
        take_index(words)


@pytest.mark.parametrize(
    ("stdout", "cause"),
    [
        ("ERROR: [Errno 28] No space left on device", "the disk is full"),
        ("WARNING: NewConnectionError('...')\nERROR: No matching distribution found", "index was not reached"),
        ("ERROR: No matching distribution found for a==1", "no package index in reach offers it"),
        ("ERROR: something else.\n", "ERROR: something else. Fix what it names"),
        ("", "it gave no reason"),
    ],
)
def test_a_failure_is_reported_with_its_cause(stdout: str, cause: str) -> None:
    assert cause in environment._diagnosis("pip did not finish", stdout)


def test_an_environment_of_another_python_is_not_trusted(tmp_path: Path) -> None:
    venv = Venv(tmp_path)
    venv.python.parent.mkdir(parents=True)
    venv.python.symlink_to(sys.executable)
    assert not venv.sound()  # it starts, but installs into the Python it points to
    venv.stamp.write_text(json.dumps({"python": "cpython-27", "requirements": ["a"]}))
    assert venv.stamped() == set()
    venv.stamp.write_text(json.dumps({"python": sys.implementation.cache_tag, "requirements": ["a"]}))
    assert venv.stamped() == {"a"}


Called = list[list[str]]


@pytest.fixture
def pytest_called(monkeypatch: pytest.MonkeyPatch) -> Called:
    called: Called = []

    def called_with(words: list[str]) -> int:
        called.append(words)
        return 0

    monkeypatch.setattr(pytest, "main", called_with)
    monkeypatch.setattr("tests.__main__.enter", lambda module, requirements, argv: take_index(argv)[1])
    return called


def test_quick_leaves_out_what_is_slow_and_the_rest_goes_to_pytest(pytest_called: Called) -> None:
    assert start_tests.main(["--quick", "--index", "U", "-k", "ledger"]) == 0
    assert start_tests.main(["-x"]) == 0
    quick, whole = pytest_called
    assert [*quick[:2], *quick[-2:]] == ["-m", "not slow and not long", "-k", "ledger"]
    assert whole[:2] == ["-m", "not long"]
    assert whole[-1] == "-x"


@pytest.mark.parametrize("start", [start_tests.main, start_app.main])
def test_help_costs_no_installation(
    start: Callable[[list[str]], int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("app.__main__", "tests.__main__"):
        monkeypatch.setattr(f"{module}.enter", lambda *given: pytest.fail("help came too late"))
    assert start(["--help"]) == 0
    assert "--index URL" in capsys.readouterr().out
