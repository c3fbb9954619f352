"""The command `export`: it writes a page completely or not at all, and overwrites only pages of its own."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

import pytest

from engine.cli import export
from engine.cli.export import OURS, refuse, write
from engine.errors import BadInput
from tests.engine.makers import SMALL, run_command

PAGE = "<!doctype html>\n<html><head>" + OURS.decode() + "</head><body>ε</body></html>\n"


def exported(path: Path, force: bool = False, text: str = PAGE) -> int:
    return export.run(
        Namespace(
            id="abc", out=str(path), force=force, json=True, style="page", page=lambda store, run, style: f"{text}{run}"
        )
    )


def test_a_page_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.html"
    assert exported(path) == 0
    assert path.read_text(encoding="utf-8") == f"{PAGE}abc"
    assert str(path.stat().st_size) in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == [path]


def test_an_exported_page_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "page.htm"
    exported(path)
    exported(path, text=f"{PAGE}again")
    assert path.read_text(encoding="utf-8") == f"{PAGE}againabc"


@pytest.mark.parametrize("content", [b"<html>precious</html>", b"", b" " * 9000 + OURS])
def test_another_file_is_kept_unless_forced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"another file has this name, got .*--force"):
        exported(path)
    assert path.read_bytes() == content
    assert exported(path, force=True) == 0
    assert path.read_text(encoding="utf-8").startswith(PAGE)


def test_paths_that_cannot_hold_a_page(tmp_path: Path) -> None:
    (tmp_path / "folder.html").mkdir()
    os.mkfifo(tmp_path / "pipe.html")
    for name, law in (
        ("page", "must end in .html"),
        ("page.png", "must end in .html"),
        ("folder.html", "this is a folder"),
        ("nowhere/page.html", "must be in a folder that exists"),
        ("pipe.html", "must be an ordinary file"),
        (f"{'a' * 300}.html", "must be a place that can be written"),
    ):
        for force in (False, True):
            with pytest.raises(BadInput, match=law):
                exported(tmp_path / name, force)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.html", "pipe.html"]


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def disk_full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "page.html"
    write(path, PAGE.encode())
    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(BadInput, match="no space left on device"):
        write(path, b"half")
    assert path.read_text(encoding="utf-8") == PAGE
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_that_no_file_system_takes(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="must be"):
        exported(tmp_path / "a\0b.html")
    refuse(tmp_path / "ä b.html")


def test_out_must_be_given() -> None:
    result = run_command("export abc")
    assert result.code == 2 and "--out" in result.sentence()


def test_a_style_is_checked_before_the_file(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    result = run_command(f"export leaks --out {out} --style poster")
    assert result.code == 2
    assert result.sentence().startswith("export: style: must be page or slides, got poster")
    assert "--style slides" in result.err and not out.exists()


def test_slides_are_the_same_page_opened_in_another_style(tmp_path: Path) -> None:
    files = {}
    for style in export.STYLES:
        path = tmp_path / f"{style}.html"
        assert run_command(f"export noise-1 --out {path} --style {style}").code == 0
        files[style] = path.read_text(encoding="utf-8")
    assert files["page"].replace('data-opens="page"', 'data-opens="slides"') == files["slides"]


@pytest.mark.slow
def test_a_real_run_and_a_real_attack(tmp_path: Path) -> None:
    run = run_command(f"run {SMALL} --method udp-fedavg --model lenet-sigmoid --dataset cifar10 --json").json["id"]
    attack = run_command(f"attack {run} --attack map --set iterations=20 --picture 1 --round first --json").json
    run_page = tmp_path / "run.html"
    attack_page = tmp_path / "attack.html"
    result = run_command(f"export {run} --out {run_page} --json")
    assert (result.code, result.err) == (0, "")
    assert result.json == {"id": run, "file": str(run_page), "bytes": run_page.stat().st_size}
    assert run_command(f"export {attack['id']} --out {attack_page}").code == 0
    for path in (run_page, attack_page):
        text = path.read_text(encoding="utf-8")
        assert f"{attack['psnr']:.1f} dB" in text and "Test picture 1" in text
        assert OURS in path.read_bytes()[: export.HEAD]
    first = run_page.read_bytes()
    assert run_command(f"export {run} --out {run_page}").code == 0
    assert run_page.read_bytes() == first
    refused = run_command(f"export unknown --out {tmp_path / 'none.html'}")
    assert refused.code == 2 and refused.sentence().startswith("run: no unknown")
    assert not (tmp_path / "none.html").exists()


def test_a_stored_example_is_exported_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "leaks.html"
    assert run_command(f"export leaks --out {path}").code == 0
    assert OURS in path.read_bytes()[: export.HEAD]
