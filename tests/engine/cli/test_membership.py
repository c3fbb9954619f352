"""The command `attack` with an attack on membership: its report, its options and its refusals."""

from __future__ import annotations

import pytest

from engine.jobs.store import Store
from engine.seeds import Seeds
from engine.specs.attack import MembershipSpec
from engine.specs.run import RunSpec
from tests.engine.makers import SMALL, run_command

pytestmark = pytest.mark.slow


@pytest.fixture
def queued() -> str:
    """A run that no one computes: a refusal needs only its spec."""
    spec = RunSpec(rounds=2, clients=40, sampled=4, epochs=1, batch=100)
    Store().submit(spec.id, spec.canonical())
    return spec.id


def test_the_report_has_the_view_the_unit_the_number_and_the_interval() -> None:
    run = run_command(f"run {SMALL} --set model.hidden=8 --json").json["id"]
    answer = run_command(f"attack {run} --attack loss-threshold --view outsider --json")
    body = answer.json
    assert answer.code == 0 and body["status"] == "finished" and body["kind"] == "membership"
    assert (body["view"], body["unit"], body["round"], body["client"]) == ("outsider", "record", 2, None)
    low, high = body["interval"]
    assert low <= body["auc"] <= high and body["n"] == body["others"] > 100
    assert set(body["tpr"]) == {"0.1", "0.01", "0.001"} and 1 < len(body["roc"]) <= 60
    again = run_command(f"attack {run} --attack loss_threshold --view outsider --json")
    assert again.json == body
    other = run_command(f"attack {run} --attack loss-threshold --view outsider --seed 5 --round first --json").json
    request = MembershipSpec(run=RunSpec(**Store().run(run).spec), seed=5, round="first")
    assert (other["id"], other["round"]) == (request.id, 1)
    lines = run_command(f"attack {run} --attack loss-threshold").out
    assert "0.5 tells nothing" in lines and "held-out test records of the same classes" in lines
    assert "An AUC of 0.5 is no proof of privacy" in lines


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--attack loss-threshold --picture 3", "attack: --picture: is for attacks on pictures, and loss-threshold is"),
        ("--attack loss-threshold --upload ordinary", "attack: --upload: is for attacks on pictures"),
        ("--attack loss-threshold --restarts 3", "attack: --restarts: is for attacks on pictures"),
        ("--attack loss-threshold --view server --unit user", "compares clients, and an upload is of one client"),
        ("--attack loss-threshold --unit crowd", "attack: unit: must be one of record, user, got crowd"),
        ("--attack loss-threshold --view server --client 39999", "attack: client: must be one that took part"),
        ("--attack map --unit user", "attack: --unit: is for attacks on membership. Leave it out."),
        ("--attack look", "attack: look: reads samples, and the clients of fedavg upload updates. Choose "),
        ("--attack loss", "attack: no loss. "),
        ("--attack loss-threshold --unit ''", "attack: unit: must be one of record, user, got "),
        ("--attack loss-threshold --set name=map", "attack: --set: must name a parameter of the attack, got name=map"),
    ],
)
def test_a_request_that_cannot_be_run_has_exit_code_2(queued: str, options: str, text: str) -> None:
    answer = run_command(f"attack {queued} {options}")
    assert answer.code == 2 and text in answer.sentence()


def test_an_empty_round_is_refused_before_anything_is_stored(queued: str) -> None:
    sizes = {seed: [len(Seeds(seed).cohort(round, 40, 1, "poisson")) for round in (1, 2)] for seed in range(100)}
    seed = next(seed for seed, (first, second) in sizes.items() if first and not second)
    spec = RunSpec(rounds=2, clients=40, sampled=1, epochs=1, batch=100, method="udp-fedavg", seed=seed)
    Store().submit(spec.id, spec.canonical())
    for options in ("--attack map --picture 7", "--attack map", "--attack loss-threshold --view server"):
        answer = run_command(f"attack {spec.id} {options} --round 2")
        assert answer.code == 2 and "attack: round: no client took part in round 2" in answer.sentence()
    assert {row.id for row in Store().runs()} == {queued, spec.id}


@pytest.mark.parametrize("options", ["--method fedavg --set name=fedprox", "--set model.name=lenet5"])
def test_a_part_is_not_replaced_by_a_parameter(options: str) -> None:
    answer = run_command(f"run {options} --dry-run")
    assert answer.code == 2 and "must name a parameter" in answer.sentence()
