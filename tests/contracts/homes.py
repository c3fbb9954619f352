"""The home of version 0.4.0: how it was made, and what the golden file says of it."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from PIL import Image

from tests.contracts.doors import Kept, RunSpec, Store, report, tell
from tests.contracts.goldens import HOME, add, entries, golden
from tests.contracts.questions import HOME_ATTACKS, HOME_OTHERS, HOME_PAYLOADS, HOME_RUNS

Arrays = dict[str, list[Any]]  # by key: the type and the shape of an array
Payloads = dict[str, Arrays]  # by name
DATABASE = "leaklens.db"


def ids() -> dict[str, str]:
    """The id of each run and attack of the home."""
    return {name: known["id"] for name, known in entries("home", "runs").items()}


def copied(folder: Path) -> Path:
    """The home, where a test may write."""
    return Path(shutil.copytree(HOME, folder / "filled"))


def filled(line: str, home: Path, **more: object) -> str:
    """A line with the ids that it names."""
    return line.format(**ids(), home=home, **more)


# --- what is known of it -----------------------------------------------------------------------------------


def listed(store: Store) -> dict[str, dict[str, Any]]:
    """Every run by its id."""
    return {
        row.id: {"id": row.id, "status": row.status, "spec": dict(row.spec), "events": row.events, "round": row.round}
        for row in store.runs()
    }


def reported(store: Store, run: str) -> dict[str, Any]:
    return report(event for _, event in store.events(run))


def kept(store: Store, run: str) -> list[Kept]:
    """The events of a run that name a payload; a checkpoint depends on the clock."""
    events = [event for _, event in store.events(run)]
    return [event for event in events if isinstance(event, Kept) and event.kind != "checkpoint"]


def payloads(store: Store, run: str) -> Payloads:
    return {event.name: arrays(store.payload(run, event.name)) for event in kept(store, run)}


def arrays(payload: Mapping[str, Any]) -> Arrays:
    return {key: [str(array.dtype), list(array.shape)] for key, array in payload.items()}


# --- making it ---------------------------------------------------------------------------------------------


def make() -> list[str]:
    """Make the home and what is known of it; once made, neither is made again."""
    if HOME.exists() or golden("home"):
        return []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        answers = _ask(home)
        names = {answer["id"]: name for name, answer in answers.items()}
        store = Store(home)
        names |= {_ask_other(store, name): name for name in HOME_OTHERS}
        rows = {names[run]: row for run, row in listed(store).items()}
        runs = {name: rows[name]["id"] for name in HOME_RUNS}
        known: dict[str, dict[str, Any]] = {
            "runs": rows,
            "attacks": {name: answers[name] for name in HOME_ATTACKS},
            "reports": {name: reported(store, run) for name, run in runs.items()},
            "payloads": {name: payloads(store, run) for name, run in runs.items()},
        }
        store.close()
        _take_over(home, {run: HOME_PAYLOADS[name] for name, run in runs.items()})
    sections = [add("home", section, made) for section, made in known.items()]
    return [HOME.name, *(word for section in sections for word in section)]


def _ask(home: Path) -> dict[str, dict[str, Any]]:
    """Ask every run and attack as a user would."""
    picture = home.parent / "picture.png"
    Image.linear_gradient("L").resize((28, 28)).save(picture)
    answers: dict[str, dict[str, Any]] = {}
    for name, line in {**HOME_RUNS, **HOME_ATTACKS}.items():
        known = {request: answer["id"] for request, answer in answers.items()}
        code, answers[name] = tell(line.format(**known, picture=picture), home)
        assert code == 0, answers[name]
    return answers


def _ask_other(store: Store, name: str) -> str:
    """Request a run that no worker computes."""
    spec = RunSpec(**HOME_OTHERS[name])
    store.submit(spec.id, spec.canonical(), {"device": "cpu", "threads": None})
    if name == "cancelled":
        store.cancel(spec.id)
    return spec.id


def _take_over(home: Path, staying: Mapping[str, tuple[str, ...]]) -> None:
    """Copy the home without large payloads and without what tells of the machine."""
    shutil.copytree(home / "pictures", HOME / "pictures")
    for run, names in staying.items():
        (HOME / "payloads" / run).mkdir(parents=True)
        for file in (home / "payloads" / run).iterdir():
            if file.name.startswith(names):
                shutil.copy(file, HOME / "payloads" / run)
    with closing(sqlite3.connect(HOME / DATABASE, isolation_level=None)) as database:
        with closing(sqlite3.connect(home / DATABASE)) as whole:
            whole.backup(database)
        database.execute("DELETE FROM leases")
        database.execute("VACUUM")
