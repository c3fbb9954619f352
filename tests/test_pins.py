"""Requirement files: what the launcher reads in them, and what the files of this project hold.

The files are written by `python3 -m tests.pins`, which needs the network; these tests do not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.environment import ROOT, Requirements, StartError
from tests import pins


def installed(site: Path, name: str, version: str) -> None:
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir()
    if version:
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_a_build_counts_as_its_version(tmp_path: Path) -> None:
    installed(tmp_path, "torch", "2.13.0+cpu")
    installed(tmp_path, "scikit_image", "0.26.0")
    installed(tmp_path, "numpy", "2.4.60")
    (tmp_path / "r.txt").write_text("torch==2.13.0\nscikit-image==0.26.0\nnumpy==2.4.6\nscipy==1.17.1\n")
    assert Requirements(tmp_path / "r.txt").lacking(tmp_path) == ["numpy==2.4.6", "scipy==1.17.1"]


def test_what_a_killed_installation_left_counts_as_absent(tmp_path: Path) -> None:
    (tmp_path / "tiny-1.0.dist-info").mkdir()
    (tmp_path / "r.txt").write_text("tiny==1.0\n")
    assert Requirements(tmp_path / "r.txt").lacking(tmp_path) == ["tiny==1.0"]


def test_requirements_are_pins_and_files(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "base.txt").write_text("# why\na==1\n\n")
    (tmp_path / "sub" / "r.txt").write_text("-r ../base.txt\nb==2.0.1 # because\n")
    wanted = Requirements(tmp_path / "sub" / "r.txt")
    assert wanted.pins == {"a": "1", "b": "2.0.1"}
    assert wanted.hashes > Requirements(tmp_path / "base.txt").hashes


@pytest.mark.parametrize(
    ("text", "message"), [("a>=1", "line 1: must be name==version"), ("-r gone.txt", "gone.txt: cannot")]
)
def test_a_requirement_it_cannot_check_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "r.txt").write_text(text)
    with pytest.raises(StartError, match=message):
        Requirements(tmp_path / "r.txt")


PROJECT = """
[project]
dependencies = ["A.Name==1"]
optional-dependencies = { test = ["tool==3"] }
"""


def test_only_direct_dependencies_decide_whether_an_environment_is_good(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "requirements.txt").write_text("a-name==1\nbelow==2\nwindows==4 ; sys_platform == 'win32'\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "requirements.txt").write_text("-r ../requirements.txt\nbelow-tool==5\ntool==3\n")
    assert Requirements(tmp_path / "requirements.txt").lacking(tmp_path) == ["a-name==1"]
    assert Requirements(tmp_path / "tests" / "requirements.txt").lacking(tmp_path) == ["a-name==1", "tool==3"]
    installed(tmp_path, "A_Name", "1")
    assert Requirements(tmp_path / "requirements.txt").lacking(tmp_path) == []


def test_a_changed_pin_below_a_direct_one_is_installed_again(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "requirements.txt").write_text("a-name==1\nbelow==2\n")
    before = Requirements(tmp_path / "requirements.txt").hashes
    (tmp_path / "requirements.txt").write_text("a-name==1\nbelow==2.1\n")
    assert not before & Requirements(tmp_path / "requirements.txt").hashes


def test_a_project_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project")
    (tmp_path / "requirements.txt").write_text("a==1\n")
    with pytest.raises(StartError, match=r"pyproject\.toml: cannot be read"):
        Requirements(tmp_path / "requirements.txt")


# --- the files of this project -----------------------------------------------------------------------------


def lines(path: str) -> list[str]:
    return (ROOT / path).read_text(encoding="utf-8").splitlines()


def test_c06_the_requirements_hold_every_direct_pin() -> None:
    direct, tools = pins.direct_pins(ROOT / "pyproject.toml")
    assert set(direct) <= set(lines("requirements.txt"))
    assert set(tools) <= set(lines("tests/requirements.txt"))
    assert not set(tools) & set(lines("requirements.txt"))
    wanted, tested = Requirements(ROOT / "requirements.txt"), Requirements(ROOT / "tests" / "requirements.txt")
    assert {f"{name}=={pin}" for name, pin in wanted.pins.items()} == set(direct)
    assert {f"{name}=={pin}" for name, pin in tested.pins.items()} == {*direct, *tools}


@pytest.mark.parametrize("path", ["requirements.txt", "tests/requirements.txt"])
def test_c06_the_requirements_name_their_command_and_no_build(path: str) -> None:
    head, *rest = lines(path)
    assert f"`{pins.COMMAND}`" in head
    names = [line for line in rest if not line.startswith("-r ")]
    assert names == sorted(names, key=lambda line: line.partition("==")[0])
    assert not [line for line in names if "+" in line or line.startswith(pins.GPU)]


# --- the command that writes them --------------------------------------------------------------------------

PACKAGES = {
    "top": pins.Package("1", ("below>=2", "colours ; sys_platform == 'win32'", "nvidia-x==3", "more ; extra == 'all'")),
    "below": pins.Package("2.5", ("top", "old ; python_version < '3.13'", "other[all]")),
    "other": pins.Package("3", ("more ; extra == 'all'",)),
    "more": pins.Package("4"),
    "old": pins.Package("5"),
}


def test_what_a_package_requires_is_followed_with_its_extras() -> None:
    needed, absent = pins.reachable(["top==1"], PACKAGES)
    assert set(needed) == {"top", "below", "other", "more", "old"}
    assert absent == ["colours"]
    assert needed["top"] == needed["more"] == pins.TARGETS
    assert pins.marker(needed["old"]) == 'python_version <= "3.12"'


def test_a_marker_says_where_a_package_is_needed() -> None:
    def where(*platforms: str) -> set[pins.Target]:
        return {target for target in pins.TARGETS if target[0] in platforms}

    assert pins.marker(pins.TARGETS) == ""
    assert pins.marker(where("win32")) == 'sys_platform == "win32"'
    assert pins.marker(where("linux", "win32")) == 'sys_platform != "darwin"'
    assert pins.marker({("linux", "3.12"), ("linux", "3.13")}) == 'sys_platform == "linux" and python_version >= "3.12"'
    mixed = {("linux", "3.11"), *where("win32")}
    assert pins.marker(mixed) == 'sys_platform == "linux" and python_version <= "3.11" or sys_platform == "win32"'


def test_a_file_has_one_sorted_line_for_each_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pins, "ROOT", tmp_path)
    needed = {"top": pins.TARGETS, "old": frozenset({("win32", python) for python in pins.PYTHONS})}
    pins.write(tmp_path / "r.txt", "# head\n", PACKAGES, needed)
    assert (tmp_path / "r.txt").read_text() == '# head\nold==5 ; sys_platform == "win32"\ntop==1\n'
    assert capsys.readouterr().out == "r.txt: 2 pins\n"
