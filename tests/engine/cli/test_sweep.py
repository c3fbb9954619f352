"""The command `sweep`: a line for each point, a table with ε, reuse of finished runs, cancel and resume."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.cli.sweep import batch_of, follow_points
from engine.environment import ROOT
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store
from engine.results.report import report
from engine.specs.run import RunSpec
from engine.specs.sweep import SweepGrid, points
from engine.training.loop import run
from tests.engine.makers import SMALL, run_command, tiny_spec

pytestmark = pytest.mark.slow

COMMAND = f"sweep {SMALL} --methods udp-fedavg,fedavg --noises 0.5,2 --seeds 2 --seed 3"
TIMEOUT_S = 60.0


def test_each_point_is_a_run_and_finished_runs_are_reused(home: Path) -> None:
    result = run_command(f"{COMMAND} --json")
    assert result.code == 0
    body = result.json
    assert {(row["method"], row["noise"], row["seeds"]) for row in body["spots"]} == {
        ("udp-fedavg", 0.5, 2), ("udp-fedavg", 2.0, 2), ("fedavg", None, 2),
    }  # fmt: skip
    last = next(row for row in body["runs"] if (row["method"], row["noise"], row["seed"]) == ("udp-fedavg", 2.0, 4))
    fields = {"rounds": 2, "clients": 40, "sampled": 4, "epochs": 1, "batch": 100, "sampling": "poisson", "seed": 4}
    spec = RunSpec(method={"name": "udp-fedavg", "noise": 2.0}, **fields)
    assert last["id"] == spec.id and last["accuracy"] == report(run(spec))["accuracy"]
    attempts = {row.id: row.attempt for row in Store(home).runs()}
    assert len(attempts) == 6 and set(attempts.values()) == {1}
    again = run_command(f"{COMMAND} --noises 0.5,2,1 --json")
    assert len(again.json["runs"]) == 8
    assert {row.id: row.attempt for row in Store(home).runs()}.items() >= attempts.items()
    epsilons = {row["noise"]: row["epsilon"]["outsider"] for row in body["spots"]}
    assert epsilons[0.5] > epsilons[2.0] > 0


def test_the_table_as_text() -> None:
    result = run_command(f"{COMMAND} --seeds 1")
    assert result.code == 0 and result.out.count(" seed 3 ") == 3
    table = result.out.split("\n\n")[1]
    first = table.splitlines()[0]
    assert first.startswith("ε in the outsider view: per user, zero-out, δ = 1e-05, ")
    assert first.endswith(" for poisson sampling, worst user.") and "(1 seed)" in table and "±" not in table
    assert "fedavg: no ε in the outsider view: nothing is clipped" in table


def test_user_level_and_record_level_methods_have_two_tables() -> None:
    result = run_command(f"sweep {SMALL} --methods udp-fedavg,dp-fedavg --noises 1 --seeds 2 --view server")
    heads = [line for line in result.out.splitlines() if line.startswith("ε in the server view: ")]
    assert [head.split(", ")[0].rpartition(" ")[2] for head in heads] == ["user", "record"]
    assert all("worst " in head and " and seed" in head for head in heads)
    body = run_command(f"sweep {SMALL} --methods udp-fedavg,dp-fedavg --noises 1 --seeds 2 --json").json
    for row in body["spots"]:
        views = {view for view, epsilon in row["epsilon"].items() if epsilon is not None}
        assert views and views | row["reason"].keys() == row["epsilon"].keys()
        for view in views:
            assert row["accountant"][view] and row["sampling"][view] and row["adjacency"][view]
            assert 0 < row["delta"][view] <= 1e-5


def test_a_parameter_of_one_method_reaches_it_alone(home: Path) -> None:
    result = run_command(
        f"sweep {SMALL} --methods udp-fedavg,ppsgd --noises 1 --seeds 1 --of ppsgd.head-epochs=0 --json"
    )
    assert result.code == 0
    methods = {row.spec["method"]["name"]: row.spec["method"] for row in Store(home).runs()}
    assert methods["ppsgd"]["head-epochs"] == 0 and set(methods) == {"udp-fedavg", "ppsgd"}


class FlakySupervisor:
    """A supervisor that releases a run the first time and computes it the second time."""

    working = True
    trouble = None

    def __init__(self, store: Store) -> None:
        self.store = store
        self.wakes = 0

    def wake(self) -> None:
        self.wakes += 1
        lease = self.store.take(ProcessId.me(), 1)
        assert lease
        if self.wakes == 1:
            self.store.release(lease)
        else:
            spec = {name: value for name, value in lease.spec.items() if name != "format"}
            self.store.append(lease, list(run(RunSpec(**spec))))


def test_a_run_of_a_lost_worker_is_submitted_again(home: Path) -> None:
    store = Store(home)
    point = points(tiny_spec(sampling="poisson"), SweepGrid(({"name": "udp-fedavg"},), (1.0,)))[0]
    supervisor = FlakySupervisor(store)
    batch = batch_of("sweep", "a sweep", [point], {})
    ((ended, outcome),) = follow_points(store, supervisor, [point], batch)  # type: ignore[arg-type]
    assert ended == point and outcome and outcome.accuracy == report(run(point.spec))["accuracy"]
    assert supervisor.wakes == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--methods none", "method: no none"),
        ("--noises 1,x", "must be numbers with commas between, got 1,x"),
        ("--noises -1", "udp-fedavg: noise: must be a number between 0 and 1000, got -1"),
        ("--seeds 0", "sweep: seeds: must be a whole number between 1 and 100, got 0"),
        ("--of clip=1", "sweep: --of: must be METHOD.NAME=VALUE, got clip=1"),
        ("--of fedceo.every=1", "sweep: --of: must name one of udp-fedavg, got fedceo"),
        ("--of udp-fedavg.nothing=1", "udp-fedavg: nothing: no such parameter"),
        ("--model lenet5 --dataset mnist --clients 100000", "must be"),
    ],
)
def test_wrong_options_are_refused(home: Path, options: str, message: str) -> None:
    result = run_command(f"sweep {options}")
    assert result.code == 2 and result.out == "" and message in result.sentence()
    assert not home.exists() or Store(home).runs() == []


def test_ctrl_c_cancels_the_rest_and_the_same_command_resumes(home: Path) -> None:
    line = f"sweep {SMALL} --rounds 40 --methods udp-fedavg --noises 0.5,1,1.5,2 --seeds 1 --json"
    process = subprocess.Popen(
        [sys.executable, "-m", "engine", *line.split()],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    store = Store(home)
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline and not any(row.status == "finished" for row in store.runs()):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130 and out == "" and err.startswith("Cancelled ") and "again to resume" in err
    done = {row.id for row in store.runs() if row.status == "finished"}
    assert 1 <= len(done) < 4
    assert {row.status for row in store.runs() if row.id not in done} == {"cancelled"}
    again = run_command(line)
    assert again.code == 0 and len(again.json["runs"]) == 4
    assert all(row.attempt == 1 for row in store.runs() if row.id in done)
