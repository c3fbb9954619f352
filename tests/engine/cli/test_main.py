"""The command line: its answers, its refusals and its exit codes."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.cli.run import answer
from engine.environment import ROOT
from engine.events import Failed, Kept
from engine.jobs import payloads
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store
from engine.privacy.solver import sampled_gaussian_epsilon
from engine.results.report import report
from engine.specs.run import RunSpec
from engine.training import loop
from engine.training.loop import run
from tests.engine.makers import SMALL, CommandAnswer, run_command

FIELDS: dict[str, Any] = {"method": "udp-fedavg", "rounds": 2, "clients": 40, "sampled": 4, "epochs": 1, "batch": 100}
SPEC = RunSpec(**FIELDS)
REPORT_KEYS = {
    "id", "accuracy", "accuracy-best", "accuracy-personal", "rounds-done", "epsilon", "unit", "adjacency", "delta",
    "accountant", "guarantee", "seconds", "device",
}  # fmt: skip
SHELVES = ("methods", "attacks", "metrics", "datasets", "models", "partitions")
TIMEOUT_S = 60.0


def computed(spec: RunSpec) -> dict[str, Any]:
    """The report of an uninterrupted run without a store. The time is left out."""
    return {**report(run(spec, threads=2)), "seconds": None}


def printed(result: CommandAnswer) -> dict[str, Any]:
    """The report that `run --json` printed. The time and the status are left out."""
    body = {**result.json, "seconds": None}
    del body["status"]
    return body


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CommandAnswer]:
    """A home with one run, and the output of the command."""
    home = tmp_path_factory.mktemp("main") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKLENS_HOME", str(home))
        return home, run_command(f"run --method udp-fedavg {SMALL} --json")


@pytest.fixture
def known(finished: tuple[Path, CommandAnswer], home: Path) -> CommandAnswer:
    """A copy of that home, for tests that change it."""
    shutil.copytree(finished[0], home)
    return finished[1]


# --- a run -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_prints_one_line_of_json_with_every_key(finished: tuple[Path, CommandAnswer]):
    _, result = finished
    body = result.json
    assert result.code == 0
    assert body.keys() >= REPORT_KEYS
    assert body["id"] == SPEC.id
    assert body["rounds-done"] == 2
    assert 0 <= body["accuracy"] <= body["accuracy-best"] <= 1
    assert body["accuracy-personal"] is None
    assert body["unit"] == "user"
    assert body["adjacency"] == "zero-out"
    assert body["delta"] == 1e-5
    assert body["epsilon"].keys() == body["accountant"].keys() == {"server", "aggregate", "outsider", "client"}
    assert all(epsilon > 0 for epsilon in body["epsilon"].values())
    assert body["guarantee"].keys() >= {"status", "reason"}
    assert body["seconds"] > 0


@pytest.mark.slow
def test_its_numbers_are_those_of_the_loop(finished: tuple[Path, CommandAnswer]):
    assert printed(finished[1]) == computed(SPEC)


def test_the_same_spec_in_other_words_opens_the_same_run(known: CommandAnswer, tmp_path: Path):
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(FIELDS | {"method": {"name": "udp_fedavg"}}))
    for command in (
        f"run --method udp_fedavg {SMALL} --threads 1",
        f"run --spec {file}",
        f"run --spec {file} --seed=0",
    ):
        again = run_command(command, "--json")
        assert (again.code, again.json) == (0, known.json)
    (row,) = run_command("runs --json").json
    assert (row["id"], row["status"], row["attempt"]) == (SPEC.id, "finished", 1)


def test_the_text_output_has_every_number(known: CommandAnswer):
    result = run_command(f"run --method udp-fedavg {SMALL}")
    body = known.json
    assert result.code == 0
    assert f"run {SPEC.id}: finished, 2 rounds" in result.out
    assert f"accuracy {100 * body['accuracy']:.1f} %" in result.out
    for view, epsilon in body["epsilon"].items():
        terms = f"(per user, zero-out, δ = 1e-05, {body['accountant'][view]}, worst user)"
        assert f"ε = {epsilon:.4g} in the {view} view {terms}" in result.out
    assert f"guarantee: {body['guarantee']['status']}" in result.out


def test_runs_are_listed_cancelled_and_deleted(known: CommandAnswer):
    assert SPEC.id in run_command("runs").out
    assert run_command(f"cancel {SPEC.id} --json").json == {"id": SPEC.id, "status": "finished"}
    assert run_command(f"delete {SPEC.id} --json").json == {"id": SPEC.id, "status": "deleted"}
    assert run_command("runs --json").json == []
    assert run_command("runs").out.startswith("No runs yet")
    assert run_command(f"delete {SPEC.id}").code == 2


def test_a_queued_run_is_cancelled():
    Store().submit("waits", {"rounds": 2})
    assert run_command("cancel waits").out == "waits: cancelled\n"
    assert run_command("runs --json").json[0]["status"] == "cancelled"


@pytest.mark.slow
def test_a_run_that_fails_reports_the_reason():
    result = run_command("run --rounds 2 --clients 40 --sampled 4 --epochs 5 --batch 10 --lr 100 --json")
    assert result.code == 1
    assert result.json.keys() >= REPORT_KEYS
    assert (result.json["accuracy"], result.json["epsilon"], result.json["rounds-done"]) == (None, {}, 0)
    assert "the weights are no longer finite numbers. Lower the learning rate" in result.sentence()


def test_debug_shows_where_a_run_failed(capsys: pytest.CaptureFixture[str]):
    store = Store()
    store.submit("bad", {})
    lease = store.take(ProcessId.me(), 9)
    assert lease
    store.append(lease, [Failed("the data is gone", "Fix it", "Traceback: line 7")])
    for debug in (False, True):
        assert answer(store, "bad", as_json=True, debug=debug) == 1
        output = capsys.readouterr()
        assert output.err.endswith("run bad: the data is gone. Fix it.\n")
        assert json.loads(output.out).keys() >= REPORT_KEYS
        assert json.loads(output.out)["id"] == "bad"
        assert ("line 7" in output.err) == debug


# --- interrupted runs resume -------------------------------------------------------------------------------

LONG = {**FIELDS, "rounds": 6, "seed": 5}
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "whole": lambda body: body,
    "cut": lambda body: body[: len(body) // 2],
}


def interrupted(monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store whose run was interrupted after a checkpoint. The test does the work of its worker."""
    spec, store = RunSpec(**LONG), Store()
    monkeypatch.setattr(loop, "CHECKPOINT_S", 0.0)
    store.submit(spec.id, spec.canonical(), {"device": "cpu", "threads": None})
    lease = store.take(ProcessId.me(), 9)
    assert lease
    for event in run(spec):
        if isinstance(event, Kept) and event.payload is not None:
            payloads.write(store.home, spec.id, event.name, event.payload)
            event = replace(event, payload=None)
        store.append(lease, [event])
        if isinstance(event, Kept) and event.kind == "checkpoint":
            break
    store.release(lease)
    return store


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_an_interrupted_run_resumes_but_not_from_a_damaged_checkpoint(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damage: str
):
    spec, store = RunSpec(**LONG), interrupted(monkeypatch)
    assert store.status(spec.id) == "interrupted"
    before = store.bodies(spec.id)
    file = store.home.payload(spec.id, before[-1][1]["name"])
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    (tmp_path / "spec.json").write_text(json.dumps(spec.canonical()))
    result = run_command(f"run --spec {tmp_path / 'spec.json'} --json")
    assert printed(result) == computed(spec)
    after = store.bodies(spec.id)
    if damage == "whole":
        assert after[: len(before)] == before
    else:  # from the start: the old events were deleted
        assert after[0][0] > before[-1][0]


@pytest.mark.slow
def test_ctrl_c_cancels_and_the_same_command_resumes_to_the_same_numbers(home: Path):
    line = f"run --method udp-fedavg {SMALL} --rounds 100 --json"
    spec = RunSpec(**FIELDS | {"rounds": 100})
    process = subprocess.Popen(
        [sys.executable, "-m", "engine", *line.split()],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell may have set it to be ignored
    )  # fmt: skip
    store = Store(home)
    for _ in polling(process):
        if any(row.round >= 2 for row in store.runs()):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    assert json.loads(out)["status"] == "cancelled"
    assert 1 <= json.loads(out)["rounds-done"] < 100
    assert err == f"Cancelled run {spec.id}. Run the same command again to resume it.\n"
    again = run_command(line)
    assert again.json["status"] == "finished"
    assert printed(again) == computed(spec)
    assert store.run(spec.id).attempt == 2


def polling(process: subprocess.Popen[str]) -> Iterator[None]:
    """Yield every 20 ms while the process runs, for at most TIMEOUT_S."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        yield
        time.sleep(0.02)
    raise AssertionError("nothing happened")


# --- without a run -----------------------------------------------------------------------------------------


def test_a_dry_run_sets_every_part_and_creates_no_home(home: Path):
    result = run_command(
        "run --method udp_fedavg --set noise=2 --dataset mnist --set dataset.normalise=false --set model.bias=true "
        "--partition dirichlet --set partition.alpha=5 --rounds 2 --clients 40 --sampled 4 --json --dry-run"
    )
    spec = RunSpec(
        method={"name": "udp-fedavg", "noise": 2.0},
        dataset={"name": "mnist", "normalise": False},
        model={"name": "mlp", "bias": True},
        partition={"name": "dirichlet", "alpha": 5.0},
        rounds=2,
        clients=40,
        sampled=4,
    )
    body = result.json
    assert (result.code, body["id"], body["noise"]) == (0, spec.id, 2.0)
    assert all(epsilon > 0 for epsilon in body["epsilon"].values())
    assert body["seconds"] > 0
    assert not home.exists()


def test_the_epsilon_of_a_dry_run_is_that_of_the_run(finished: tuple[Path, CommandAnswer]):
    result = run_command(f"run --method udp-fedavg {SMALL} --dry-run --json")
    for key in ("id", "epsilon", "accountant", "unit", "adjacency", "delta"):
        assert result.json[key] == finished[1].json[key]
    assert "ε = " in run_command(f"run --method udp-fedavg {SMALL} --dry-run").out


def test_a_dry_run_of_an_impossible_run_is_refused():
    result = run_command("run --dataset cifar10 --clients 4000 --dry-run --json")
    assert result.code == 2
    assert result.json["problems"][0]["fatal"]
    assert result.json["problems"][0]["reason"] in result.sentence()


@pytest.mark.parametrize("shelf", SHELVES)
def test_a_shelf_is_listed(shelf: str):
    result = run_command(f"list {shelf} --json")
    assert result.code == 0
    for row in result.json:
        assert row.keys() == {"name", "title", "summary", "parameters", "goal", "guarantee", "source"}
        assert row["parameters"]["type"] == "object"
        assert (row["guarantee"] is None) == (shelf != "methods")
        assert (row["goal"] is None) == (shelf not in ("attacks", "metrics"))
        assert all([row["name"], row["title"], row["summary"]])
    names = [row["name"] for row in result.json]
    assert [line.split()[0] for line in run_command(f"list {shelf}").out.splitlines()] == names
    assert {"methods": "fedavg", "datasets": "mnist", "models": "mlp", "partitions": "iid"}.get(shelf) in [None, *names]


@pytest.mark.parametrize(("rate", "noise"), [("0.1", "1"), ("1", "4")])
def test_epsilon_and_noise_are_computed(rate: str, noise: str):
    result = run_command(f"epsilon --noise {noise} --rate {rate} --steps 30 --delta 1e-5 --json")
    assert result.json == sampled_gaussian_epsilon(float(noise), float(rate), 30, 1e-5)
    back = run_command(f"epsilon --target_epsilon {result.json['prv']} --rate {rate} --steps 30 --delta 1e-5 --json")
    assert back.json["noise"] == pytest.approx(float(noise), rel=2e-3)
    assert back.json["prv"] <= result.json["prv"]
    assert (
        f"{result.json['rdp']:.5g}" in run_command(f"epsilon --noise {noise} --rate {rate} --steps 30 --delta 1e-5").out
    )


def test_an_infinite_epsilon_is_null():
    assert run_command("epsilon --noise 0 --rate 0.1 --steps 3 --delta 1e-5 --json").json == {"prv": None, "rdp": None}
    assert run_command("epsilon --noise 0 --rate 0.1 --steps 3 --delta 1e-5").out.split() == [
        "prv",
        "none",
        "rdp",
        "none",
    ]


@pytest.mark.slow
def test_the_module_runs_as_a_program():
    words = ["epsilon", "--noise", "1", "--rate", "1", "--steps", "1", "--delta", "1e-5", "--json"]
    result = subprocess.run(
        [sys.executable, "-m", "engine", *words], cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout) == sampled_gaussian_epsilon(1.0, 1.0, 1, 1e-5)
