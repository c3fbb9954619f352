"""Requirement files: what the launcher reads in them, and what the files of this project hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.environment import ROOT, Trouble, Wanted


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
    assert Wanted(tmp_path / "r.txt").lacking(tmp_path) == ["numpy==2.4.6", "scipy==1.17.1"]


def test_what_a_killed_installation_left_counts_as_absent(tmp_path: Path) -> None:
    (tmp_path / "tiny-1.0.dist-info").mkdir()
    (tmp_path / "r.txt").write_text("tiny==1.0\n")
    assert Wanted(tmp_path / "r.txt").lacking(tmp_path) == ["tiny==1.0"]


def test_requirements_are_pins_and_files(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "base.txt").write_text("# why\na==1\n\n")
    (tmp_path / "sub" / "r.txt").write_text("-r ../base.txt\nb==2.0.1 # because\n")
    wanted = Wanted(tmp_path / "sub" / "r.txt")
    assert wanted.pins == {"a": "1", "b": "2.0.1"}
    assert wanted.hashes > Wanted(tmp_path / "base.txt").hashes


@pytest.mark.parametrize(
    ("text", "said"), [("a>=1", "line 1: must be name==version"), ("-r gone.txt", "gone.txt: cannot")]
)
def test_a_requirement_it_cannot_check_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "r.txt").write_text(text)
    with pytest.raises(Trouble, match=said):
        Wanted(tmp_path / "r.txt")


def test_the_requirements_of_the_project_are_exact_pins() -> None:
    wanted, tested = Wanted(ROOT / "requirements.txt"), Wanted(ROOT / "tests" / "requirements.txt")
    assert {"torch", "streamlit", "pydantic"} <= wanted.pins.keys()
    assert wanted.pins.items() < tested.pins.items()
