"""The command `export` writes one page, whole or not at all, and over nothing that is not its own."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

import pytest

from engine.cli import export
from engine.cli.export import OURS, refuse, write
from engine.errors import BadInput
from tests.engine.makers import SMALL, ask

PAGE = "<!doctype html>\n<html><head>" + OURS.decode() + "</head><body>ε</body></html>\n"


def exported(path: Path, force: bool = False, text: str = PAGE) -> int:
    return export.run(
        Namespace(id="abc", out=str(path), force=force, json=True, page=lambda store, run: f"{text}{run}")
    )


def test_a_page_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.html"
    assert exported(path) == 0
    assert path.read_text(encoding="utf-8") == f"{PAGE}abc"
    assert str(path.stat().st_size) in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == [path]


def test_a_page_of_ours_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "page.htm"
    exported(path)
    exported(path, text=f"{PAGE}again")
    assert path.read_text(encoding="utf-8") == f"{PAGE}againabc"


@pytest.mark.parametrize("there", [b"<html>precious</html>", b"", b" " * 9000 + OURS])
def test_what_is_not_ours_is_left_alone_unless_forced(tmp_path: Path, there: bytes) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(there)
    with pytest.raises(BadInput, match=r"something else is there, got .*--force"):
        exported(path)
    assert path.read_bytes() == there
    assert exported(path, force=True) == 0
    assert path.read_text(encoding="utf-8").startswith(PAGE)


def test_places_where_no_page_can_lie(tmp_path: Path) -> None:
    (tmp_path / "folder.html").mkdir()
    os.mkfifo(tmp_path / "pipe.html")
    for name, law in (
        ("page", "must end in .html"),
        ("page.png", "must end in .html"),
        ("folder.html", "this is a folder"),
        ("nowhere/page.html", "must be in a folder that is there"),
        ("pipe.html", "must be an ordinary file"),
        (f"{'a' * 300}.html", "must be a place that can be written"),
    ):
        for force in (False, True):
            with pytest.raises(BadInput, match=law):
                exported(tmp_path / name, force)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder.html", "pipe.html"]


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "page.html"
    write(path, PAGE.encode())
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInput, match="no space left on device"):
        write(path, b"half")
    assert path.read_text(encoding="utf-8") == PAGE
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_that_no_file_system_takes(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="must be"):
        exported(tmp_path / "a\0b.html")
    refuse(tmp_path / "ä b.html")


def test_out_must_be_given() -> None:
    told = ask("export abc")
    assert told.code == 2 and "--out" in told.sentence()


@pytest.mark.slow
def test_a_real_run_and_a_real_attack(tmp_path: Path) -> None:
    run = ask(f"run {SMALL} --method udp-fedavg --model lenet-sigmoid --dataset cifar10 --json").json["id"]
    attack = ask(f"attack {run} --attack map --set iterations=20 --picture 1 --round first --json").json
    whole, alone = tmp_path / "run.html", tmp_path / "attack.html"
    told = ask(f"export {run} --out {whole} --json")
    assert (told.code, told.err) == (0, "")
    assert told.json == {"id": run, "file": str(whole), "bytes": whole.stat().st_size}
    assert ask(f"export {attack['id']} --out {alone}").code == 0
    for path in (whole, alone):
        text = path.read_text(encoding="utf-8")
        assert f"{attack['psnr']:.1f} dB" in text and "Test picture 1" in text
        assert OURS in path.read_bytes()[: export.HEAD]
    first = whole.read_bytes()
    assert ask(f"export {run} --out {whole}").code == 0
    assert whole.read_bytes() == first
    refused = ask(f"export nobody --out {tmp_path / 'none.html'}")
    assert refused.code == 2 and refused.sentence().startswith("run: no nobody")
    assert not (tmp_path / "none.html").exists()
