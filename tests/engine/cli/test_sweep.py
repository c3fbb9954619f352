"""The command `sweep`: lines as points end, a table with ε, nothing run twice, stopped and gone on with."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.cli.sweep import followed
from engine.environment import ROOT
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store
from engine.results.report import report
from engine.specs.run import RunSpec
from engine.specs.sweep import SweepGrid, points
from engine.training.loop import run
from tests.engine.makers import SMALL, ask, tiny

pytestmark = pytest.mark.slow

ASKED = f"sweep {SMALL} --methods udp-fedavg,fedavg --noises 0.5,2 --seeds 2 --seed 3"
PATIENCE_S = 60.0


def test_a_sweep_is_made_of_runs_and_runs_none_of_them_twice(home: Path) -> None:
    told = ask(f"{ASKED} --json")
    assert told.code == 0
    body = told.json
    assert {(spot["method"], spot["noise"], spot["seeds"]) for spot in body["spots"]} == {
        ("udp-fedavg", 0.5, 2), ("udp-fedavg", 2.0, 2), ("fedavg", None, 2),
    }  # fmt: skip
    one = next(row for row in body["runs"] if (row["method"], row["noise"], row["seed"]) == ("udp-fedavg", 2.0, 4))
    question = {"rounds": 2, "clients": 40, "sampled": 4, "epochs": 1, "batch": 100, "sampling": "poisson", "seed": 4}
    spec = RunSpec(method={"name": "udp-fedavg", "noise": 2.0}, **question)
    assert one["id"] == spec.id and one["accuracy"] == report(run(spec))["accuracy"]
    attempts = {row.id: row.attempt for row in Store(home).runs()}
    assert len(attempts) == 6 and set(attempts.values()) == {1}
    again = ask(f"{ASKED} --noises 0.5,2,1 --json")
    assert len(again.json["runs"]) == 8
    assert {row.id: row.attempt for row in Store(home).runs()}.items() >= attempts.items()
    quiet, loud = (next(s for s in body["spots"] if s["noise"] == noise)["epsilon"]["outsider"] for noise in (0.5, 2.0))
    assert quiet > loud > 0


def test_as_a_person_reads_it() -> None:
    told = ask(f"{ASKED} --seeds 1")
    assert told.code == 0 and told.out.count(" seed 3 ") == 3
    table = told.out.split("\n\n")[1]
    first = table.splitlines()[0]
    assert first.startswith("ε in the outsider view: per user, zero-out, δ = 1e-05, ")
    assert first.endswith(" for poisson sampling, worst user.") and "(1 seed)" in table and "±" not in table
    assert "fedavg: no ε in the outsider view: nothing is clipped" in table


def test_what_is_counted_per_client_and_what_per_record_are_two_tables() -> None:
    told = ask(f"sweep {SMALL} --methods udp-fedavg,dp-fedavg --noises 1 --seeds 2 --view server")
    heads = [line for line in told.out.splitlines() if line.startswith("ε in the server view: ")]
    assert [head.split(", ")[0].rpartition(" ")[2] for head in heads] == ["user", "record"]
    assert all("worst " in head and " and seed" in head for head in heads)
    body = ask(f"sweep {SMALL} --methods udp-fedavg,dp-fedavg --noises 1 --seeds 2 --json").json
    for spot in body["spots"]:
        known = {view for view, epsilon in spot["epsilon"].items() if epsilon is not None}
        assert known and known | spot["reason"].keys() == spot["epsilon"].keys()
        for view in known:
            assert spot["accountant"][view] and spot["sampling"][view] and spot["adjacency"][view]
            assert 0 < spot["delta"][view] <= 1e-5


def test_a_parameter_of_one_method_reaches_it_alone(home: Path) -> None:
    told = ask(f"sweep {SMALL} --methods udp-fedavg,ppsgd --noises 1 --seeds 1 --of ppsgd.head-epochs=0 --json")
    assert told.code == 0
    methods = {row.spec["method"]["name"]: row.spec["method"] for row in Store(home).runs()}
    assert methods["ppsgd"]["head-epochs"] == 0 and set(methods) == {"udp-fedavg", "ppsgd"}


class Lazy:
    """A supervisor that lets go of a run the first time, and computes it the second time."""

    working, trouble = True, None

    def __init__(self, store: Store) -> None:
        self.store, self.woken = store, 0

    def wake(self) -> None:
        self.woken += 1
        lease = self.store.take(ProcessId.me(), 1)
        assert lease
        if self.woken == 1:
            self.store.release(lease)
        else:
            spec = {name: value for name, value in lease.spec.items() if name != "format"}
            self.store.append(lease, list(run(RunSpec(**spec))))


def test_a_run_whose_holder_is_gone_is_asked_for_again(home: Path) -> None:
    store = Store(home)
    point = points(tiny(sampling="poisson"), SweepGrid(({"name": "udp-fedavg"},), (1.0,)))[0]
    lazy = Lazy(store)
    ((told, found),) = followed(store, lazy, [point])  # type: ignore[arg-type]
    assert told == point and found and found.accuracy == report(run(point.spec))["accuracy"]
    assert lazy.woken == 2


@pytest.mark.parametrize(
    ("words", "said"),
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
def test_what_cannot_be_asked(home: Path, words: str, said: str) -> None:
    told = ask(f"sweep {words}")
    assert told.code == 2 and told.out == "" and said in told.sentence()
    assert not home.exists() or Store(home).runs() == []


def test_ctrl_c_stops_what_is_left_and_asked_again_it_goes_on(home: Path) -> None:
    line = f"sweep {SMALL} --rounds 40 --methods udp-fedavg --noises 0.5,1,1.5,2 --seeds 1 --json"
    asked = subprocess.Popen(
        [sys.executable, "-m", "engine", *line.split()],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    store, ends = Store(home), time.monotonic() + PATIENCE_S
    while time.monotonic() < ends and not any(row.status == "finished" for row in store.runs()):
        time.sleep(0.05)
    asked.send_signal(signal.SIGINT)
    out, err = asked.communicate(timeout=PATIENCE_S)
    assert asked.returncode == 130 and out == "" and err.startswith("Cancelled ") and "goes on" in err
    done = {row.id for row in store.runs() if row.status == "finished"}
    assert 1 <= len(done) < 4
    assert {row.status for row in store.runs() if row.id not in done} == {"cancelled"}
    again = ask(line)
    assert again.code == 0 and len(again.json["runs"]) == 4
    assert all(row.attempt == 1 for row in store.runs() if row.id in done)
