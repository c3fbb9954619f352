"""Damages one file of assets/ from a seed, in a copy that the program then reads in place of its own."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from app.session import limits
from engine.datasets import base, text_files
from engine.datasets import files as data_files
from engine.datasets.base import DataFolders
from engine.environment import ROOT
from engine.examples import attacks, checksums, files, runs, start, sweep
from engine.leakage import portrait
from engine.metrics.pictures import networks
from engine.specs import paper_tables, presets
from engine.training import shipped_states
from tests.damage import changed_json

ASSETS = ROOT / "assets"
PATTERNS = (
    "*.npz", "*.gz", "*.safetensors", "class.toml", "*/*.json", "*/*.xz", "*/*.toml", "presets/tables/*.toml",
    "start/*.png", "start/*.safetensors",
)  # fmt: skip
KINDS = ("missing", "empty", "cut", "bytes", "garbage", "text", "text", "text", "folder")
TOKENS = ("[", "}", '"', "1e999", "nan", "-1", "true", "null", "\x00", "é", "= =", "[[x]]")


def damageable() -> list[str]:
    """The names of the files that ship."""
    names = {file.relative_to(ASSETS).as_posix() for pattern in PATTERNS for file in ASSETS.glob(pattern)}
    return sorted(names | {checksums.NAME})


def copy_assets(folder: Path) -> Path:
    """Links to all files, so that a copy takes no time."""
    for file in ASSETS.rglob("*"):
        place = folder / file.relative_to(ASSETS)
        if file.is_dir():
            place.mkdir(parents=True, exist_ok=True)
        elif file.suffix not in (".png", ".md") or file.parent.name == "start":
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(file)
    return folder


def damage_assets(folder: Path, seed: int, listed: bool = True) -> str:
    """Damage one file of a copy, and return its name. Without the list of checksums only its form can be checked."""
    rng = random.Random(seed)
    if not listed:
        (folder / checksums.NAME).unlink()
    names = [name for name in damageable() if listed or name != checksums.NAME]
    name = rng.choice(names)
    file = folder / name
    body = file.read_bytes()
    file.unlink()
    kind = rng.choice(KINDS)
    if kind == "folder":
        file.mkdir()
    elif kind != "missing":
        file.write_bytes(_damaged(rng, kind, name, body))
    return name


def _damaged(rng: random.Random, kind: str, name: str, body: bytes) -> bytes:
    if kind == "empty":
        return b""
    if kind == "cut":
        return body[: rng.randrange(len(body))]
    if kind == "garbage":
        return rng.randbytes(300)
    if kind == "bytes" or not name.endswith((".json", ".toml")):
        place = rng.randrange(len(body))
        return body[:place] + rng.randbytes(16) + body[place + 16 :]
    if name.endswith(".json"):
        return changed_json(rng, body.decode()).encode()
    lines = body.decode().splitlines(keepends=True)
    place = rng.randrange(len(lines))
    key, equals, _ = lines[place].partition("=")
    if equals and rng.random() < 0.6:
        lines[place] = f"{key}= {rng.choice(TOKENS)}\n"
    else:
        del lines[place]
    return "".join(lines).encode()


def read_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the program read these assets, with empty caches."""
    monkeypatch.setattr(files, "ASSETS", folder)
    monkeypatch.setattr(runs, "ASSETS", folder)
    monkeypatch.setattr(checksums, "ASSETS", folder)
    for module, name in ((attacks, "leaks"), (sweep, "frontiers"), (start, "start")):
        monkeypatch.setattr(module, "REQUEST_FILE", folder / name / "request.json")
        monkeypatch.setattr(module, "RESULT_FILE", folder / name / module.RESULT_FILE.name)
    monkeypatch.setattr(portrait, "FILE", folder / "start" / portrait.FILE.name)
    monkeypatch.setattr(shipped_states, "FILE", folder / "start" / shipped_states.FILE.name)
    monkeypatch.setattr(presets, "FOLDER", folder / "presets")
    monkeypatch.setattr(paper_tables, "FILES", folder / "presets" / "tables")
    monkeypatch.setattr(limits, "FILE", folder / "class.toml")
    monkeypatch.setattr(networks, "FEATURES", folder / networks.FEATURES.name)
    monkeypatch.setattr(networks, "CLASSIFIER", folder / networks.CLASSIFIER.name)
    here = DataFolders.here
    monkeypatch.setattr(DataFolders, "here", staticmethod(lambda environ=None: _in(here(environ), folder)))
    empty_caches()


def _in(folders: DataFolders, assets: Path) -> DataFolders:
    return DataFolders(assets, folders.folders, folders.system, folders.download)


def empty_caches() -> None:
    """Forget every file that was read."""
    for module in (attacks, files, start, sweep, networks, paper_tables, base, data_files, text_files, limits):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
