"""The home that version 0.4.0 wrote opens as it is: runs, events, reports, payloads, attacks and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.doors import (
    BadInput,
    Exposure,
    Kept,
    Measured,
    RunSpec,
    Spent,
    Store,
    dashboard,
    decode,
    encode,
    run,
    tell,
    unpack,
)
from tests.contracts.goldens import FOLDER, HOME, entries
from tests.contracts.homes import arrays, copied, filled, ids, kept, listed, reported
from tests.contracts.questions import HOME_ATTACKS, HOME_PAYLOADS, HOME_RUNS
from tests.contracts.visits import visit

RUNS, REPORTS = entries("home", "runs"), entries("home", "reports")
ATTACKS, PAYLOADS = entries("home", "attacks"), entries("home", "payloads")
PICTURE = "own-1e9ed044df849dda-3"
ACCURACY, EPSILON = 0.02, 1e-6  # another processor rounds otherwise
# Noise has another law and other streams since format 2: these runs are shown, and not computed again.
OLDER = [name for name, known in RUNS.items() if RunSpec(**known["spec"].get("run", known["spec"])).replay_problem()]
CURRENT_RUNS = [name for name in HOME_RUNS if name not in OLDER]
CURRENT_ATTACKS = [name for name in HOME_ATTACKS if name not in OLDER]
LARGEST, LARGEST_HOME = 1_000_000, 800_000  # bytes


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy of the home, where a test may write."""
    return copied(tmp_path)


@pytest.fixture
def store(old: Path) -> Iterator[Store]:
    store = Store(old)
    yield store
    store.close()


def test_every_run_is_listed_as_it_stood(store: Store) -> None:
    assert listed(store) == {known["id"]: known for known in RUNS.values()}
    assert {known["status"] for known in RUNS.values()} == {"finished", "cancelled", "queued"}


@pytest.mark.parametrize("name", [*HOME_RUNS, *HOME_ATTACKS])
def test_every_event_is_read(name: str, store: Store) -> None:
    events = [event for _, event in store.events(ids()[name])]
    assert len(events) == RUNS[name]["events"]
    assert [decode(encode(event)) for event in events] == events
    assert encode(events[0])["event"] == "started" and encode(events[-1])["event"] == "finished"


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_says_the_same(name: str, store: Store) -> None:
    report = reported(store, ids()[name])
    assert {key: report.get(key) for key in REPORTS[name]} == REPORTS[name]


@pytest.mark.parametrize("name", PAYLOADS)
def test_payloads_hold_the_same_arrays(name: str, store: Store) -> None:
    run_id, present = ids()[name], {file.stem for file in (HOME / "payloads" / ids()[name]).iterdir()}
    assert sorted(event.name for event in kept(store, run_id)) == sorted(PAYLOADS[name])
    assert present and present <= PAYLOADS[name].keys()
    for payload in present:
        assert arrays(store.payload(run_id, payload)) == PAYLOADS[name][payload]


def test_the_names_of_arrays_are_these() -> None:
    known = {name: set(keys) for name, keys in PAYLOADS["fedceo"].items()}
    names = {"hidden.weight", "head.weight"}
    slices = {key for key in known["state-2"] if key.startswith("memory/") and key.split("/")[1].isdecimal()}
    assert known["state-2"] == {
        *(f"server/{name}" for name in names),
        *(f"memory/before smoothing/{name}" for name in names),
        *slices,
    }
    assert {key.split("/", 2)[2] for key in slices} == names and "memory/0/head.weight" in slices
    (exposure,) = [keys for name, keys in known.items() if name.startswith("exposure-1-")]
    (truth,) = [keys for name, keys in known.items() if name.startswith("truth-1-")]
    assert exposure == {f"{side}/{name}" for side in ("sent", "received") for name in names}
    assert truth == {"pictures", "labels"}
    assert known["partition"] == {"train", "test"}


def test_an_exposure_is_unpacked(store: Store) -> None:
    run_id = ids()["fedceo"]
    (event,) = [each for each in kept(store, run_id) if each.name.startswith("exposure-1-")]
    payload = store.payload(run_id, event.name)
    exposure = unpack(event.facts, payload)
    assert isinstance(exposure, Exposure)
    assert (exposure.view, exposure.shape, exposure.classes, exposure.tampered) == ("server", (1, 28, 28), 10, False)
    assert {f"sent/{name}" for name in exposure.packet.model} | {
        f"received/{name}" for name in exposure.upload.model
    } == payload.keys()
    assert (exposure.protocol.kind, exposure.protocol.local.epochs, exposure.protocol.clip) == (
        "update",
        1,
        "whole-update",
    )


@pytest.mark.parametrize("name", [*HOME_RUNS, *HOME_ATTACKS])
def test_a_finished_run_is_not_asked_again(name: str, store: Store) -> None:
    known = RUNS[name]
    assert store.submit(known["id"], known["spec"], {}) == "finished"
    assert store.run(known["id"]).attempt == 1
    assert len(store.events(known["id"])) == known["events"]


def test_what_was_cancelled_begins_a_new_attempt(store: Store) -> None:
    known = RUNS["cancelled"]
    assert store.submit(known["id"], known["spec"], {}) == "queued"
    assert store.run(known["id"]).attempt == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", CURRENT_RUNS)
def test_the_same_command_answers_from_the_store(name: str, old: Path) -> None:
    code, answer = tell(HOME_RUNS[name], old)
    known = {**REPORTS[name], "status": "finished"}
    assert code == 0
    assert {key: answer.get(key) for key in known} == known
    assert attempts(old) == {1}


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in HOME_RUNS if name in OLDER])
def test_the_command_of_an_older_run_makes_a_run_of_its_own(name: str, old: Path) -> None:
    code, answer = tell(HOME_RUNS[name], old)
    assert code == 0 and answer["id"] not in ids().values()
    code, rows = tell("runs --json", old)
    assert code == 0 and {row["id"] for row in rows} == {answer["id"], *(known["id"] for known in RUNS.values())}


@pytest.mark.parametrize("name", OLDER)
def test_an_older_run_is_not_computed_again(name: str) -> None:
    spec = RunSpec(**RUNS[name]["spec"].get("run", RUNS[name]["spec"]))
    with pytest.raises(BadInput, match="format: must be 2 to be replayed, got 1"):
        next(iter(run(spec)))


def test_the_home_has_runs_of_both_formats() -> None:
    assert set(HOME_RUNS) - set(OLDER) and set(HOME_RUNS) & set(OLDER)
    assert set(HOME_ATTACKS) - set(OLDER)


@pytest.mark.slow
@pytest.mark.parametrize("name", CURRENT_ATTACKS)
def test_the_same_attack_answers_from_the_store(name: str, old: Path) -> None:
    code, answer = tell(filled(HOME_ATTACKS[name], old, picture=PICTURE), old)
    assert code == 0
    assert {key: answer.get(key) for key in ATTACKS[name]} == ATTACKS[name]
    assert attempts(old) == {1}


def attempts(old: Path) -> set[int]:
    code, rows = tell("runs --json", old)
    assert code == 0 and len(rows) == len(RUNS)
    return {row["attempt"] for row in rows}


# --- computed again ----------------------------------------------------------------------------------------


def last(events: list[Any]) -> dict[str, Any]:
    """The last accuracy of the model that all share, and ε by view."""
    scores = [
        event for event in events if isinstance(event, Measured) and (event.name, event.who) == ("accuracy", "global")
    ]
    return {
        "accuracy": scores[-1].value,
        "epsilon": {event.view: event.epsilon for event in events if isinstance(event, Spent)},
    }


def same(numbers: dict[str, Any], known: dict[str, Any]) -> bool:
    return bool(
        numbers["accuracy"] == pytest.approx(known["accuracy"], abs=ACCURACY)
        and numbers["epsilon"] == pytest.approx(known["epsilon"], abs=EPSILON)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", CURRENT_RUNS)
def test_a_run_computed_again_says_the_same(name: str) -> None:
    events = list(run(RunSpec(**RUNS[name]["spec"])))
    assert same(last(events), REPORTS[name])
    payloads = {
        event.name: event.payload or {} for event in events if isinstance(event, Kept) and event.kind != "checkpoint"
    }
    assert {name: arrays(payload) for name, payload in payloads.items()} == PAYLOADS[name]


@pytest.mark.slow
def test_a_run_resumes_from_a_state_of_then(store: Store) -> None:
    run_id = ids()["fedavg"]
    (event,) = [each for each in kept(store, run_id) if each.name == "state-0"]
    events = list(run(RunSpec(**RUNS["fedavg"]["spec"]), replace(event, payload=store.payload(run_id, event.name))))
    assert {event.round for event in events if isinstance(event, Measured)} == {1, 2, 3}
    assert same(last(events), REPORTS["fedavg"])


def test_an_older_run_does_not_resume(store: Store) -> None:
    run_id = ids()["fedceo"]
    (event,) = [each for each in kept(store, run_id) if each.name == "state-2"]
    resumed = run(RunSpec(**RUNS["fedceo"]["spec"]), replace(event, payload=store.payload(run_id, event.name)))
    with pytest.raises(BadInput, match="format: must be 2 to be replayed, got 1"):
        next(iter(resumed))


@pytest.mark.slow
def test_the_dashboard_shows_the_home(old: Path) -> None:
    with dashboard(old):
        for path, params in (("/runs", {}), ("/machine", {}), *(("/lab", {"run": ids()[name]}) for name in HOME_RUNS)):
            assert visit(path, params)[0] == {"/lab": "/try"}.get(path, path)


# --- the files themselves ----------------------------------------------------------------------------------


def test_the_files_are_small_and_tell_nothing_of_a_machine() -> None:
    home = [file for file in HOME.rglob("*") if file.is_file()]
    files = [*home, *FOLDER.glob("*.json")]
    assert sum(file.stat().st_size for file in home) < LARGEST_HOME
    assert sum(file.stat().st_size for file in files) < LARGEST
    for file in files:
        body = file.read_bytes()
        for word in (b"/tmp", b"/wor" + b"k/", b"/roo" + b"t", b"/hom" + b"e/", b"/Users", b"C:\\", b"pid:["):
            assert word not in body, (file.name, word)
    assert not [file.name for file in home if file.name.endswith(("-wal", "-shm", ".tmp")) or file.name[0] == "."]


def test_the_home_holds_what_it_should() -> None:
    assert {file.name for file in (HOME / "payloads").iterdir()} == {ids()[name] for name in HOME_PAYLOADS}
    assert (HOME / "pictures" / f"{PICTURE.split('-')[1]}.png").exists()
