"""The only module of these tests that imports the project: a refactoring changes this file and no golden file."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shlex
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from app.screens.leak.settings import LeakSettings
from app.screens.tradeoff import sweep_points
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import old_links, run_settings, services
from engine.__main__ import main
from engine.cli.main import parser
from engine.environment import ROOT
from engine.errors import BadInput
from engine.events import KINDS, Kept, Measured, Spent, decode, encode
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from engine.records import Exposure
from engine.results.report import report
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from engine.training.exposure import unpack
from engine.training.loop import run

__all__ = [
    "KINDS", "PAGE", "AttackSpec", "BadInput", "Exposure", "Kept", "Measured", "RunSpec", "Spent", "Store",
    "dashboard", "decode",
    "encode", "grammar", "lab", "leak", "of_the_lab", "report", "run", "tell", "tradeoff_screen", "unpack",
]  # fmt: skip

PAGE = ROOT / "app" / "main.py"  # what `streamlit run` starts
PATIENCE_S = 60.0


# --- the command line --------------------------------------------------------------------------------------


def tell(line: str, home: Path) -> tuple[int, Any]:
    """The exit code and the JSON of one command on a home; None where it prints no JSON."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setenv("LEAKLENS_HOME", str(home))
        try:
            code = main(shlex.split(line))
        except SystemExit as end:  # how argparse leaves
            code = int(end.code or 0)
    try:
        return code, json.loads(out.getvalue())
    except ValueError:
        return code, None


def grammar() -> argparse.ArgumentParser:
    """The parser of the command line."""
    return parser()


# --- links -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Linked:
    """What a link comes to: the ids of everything it asks for, the link of its settings, what was left out of it."""

    asks: list[str]
    link: dict[str, str]
    left_out: int


def leak(params: Mapping[str, str]) -> Linked:
    """A link to the Leak screen: the id of each attack, empty where there can be none."""
    settings, notes = LeakSettings.read_link(params, LeakSettings.default())
    return Linked([cell.id for cell in settings.grid.requests()], settings.link(), len(notes))


def lab(params: Mapping[str, str]) -> Linked:
    """A link to the Lab: the id of its run with the first seed."""
    first = services.first_example()
    assert first
    settings, notes = run_settings.read_link(params, run_settings.completed(run_settings.flat(first.spec)))
    return Linked([run_settings.spec_of(settings).id], run_settings.link(settings), len(notes))


def tradeoff_screen(params: Mapping[str, str]) -> Linked:
    """A link to the Trade-off screen: the id of each point."""
    settings, notes = TradeoffSettings.read_link(params, TradeoffSettings.default())
    return Linked([point.id for point in sweep_points.all_points(settings)], settings.link(), len(notes))


def of_the_lab(params: Mapping[str, str]) -> bool:
    """Whether a link to the first page is one that the Lab wrote."""
    return old_links.screen_of(params) == "lab"


# --- the dashboard -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def dashboard(home: Path) -> Iterator[None]:
    """The dashboard on a home, without worker processes; at the end its threads have ended, too."""
    before = set(threading.enumerate())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKLENS_HOME", str(home))
        patch.setattr(Supervisor, "start", lambda supervisor: supervisor)
        try:
            assert services.shared().ready(PATIENCE_S)
            yield
        finally:
            for thread in set(threading.enumerate()) - before:  # the Machine screen examines this machine in one
                thread.join(PATIENCE_S)
            services.shared.clear()
            st.cache_data.clear()
