"""Attacks as jobs of the store: what they find in the home, and that a worker tells the same."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from engine import doctor
from engine.errors import BadInput
from engine.events import Finished, Judged, Kept, Pictured
from engine.jobs import payloads
from engine.jobs.entries import HomeResources, attack_json
from engine.jobs.home import PRIORS, Home
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from engine.jobs.uploads import UploadedPictures
from engine.leakage.compatibility import refuse
from engine.leakage.pictures import attack
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from engine.training.loop import run
from tests.engine.jobs.test_uploads import other

RUN: dict[str, Any] = {
    "method": "fedavg", "model": {"name": "mlp", "bias": True}, "clients": 10, "sampled": 5, "epochs": 1, "rounds": 3,
}  # fmt: skip
PATIENCE_S = 60.0


@pytest.mark.slow
def test_a_worker_tells_what_the_attack_says(tmp_path: Path) -> None:
    spec = AttackSpec(run=RUN, attack={"name": "map", "iterations": 20}, pictures=["test-3"], restarts=2)
    store = Store(tmp_path)
    store.submit(spec.id, spec.canonical())
    with Supervisor(store, preload=()):
        last = time.monotonic() + PATIENCE_S
        while store.status(spec.id) in ("queued", "running") and time.monotonic() < last:
            time.sleep(0.05)
    told = [event for _, event in store.events(spec.id)]
    assert store.status(spec.id) == "finished" and isinstance(told[-1], Finished)
    direct = list(attack(spec))
    ours, theirs = ([event for event in events if isinstance(event, Judged)] for events in (told, direct))
    assert ours[0].numbers == theirs[0].numbers
    assert sum(isinstance(event, Pictured) for event in told) == sum(isinstance(event, Pictured) for event in direct)


@pytest.mark.slow
def test_a_cancelled_attack_frees_its_worker(tmp_path: Path) -> None:
    spec = AttackSpec(run=RUN, attack={"name": "map", "iterations": 100_000}, pictures=["test-3"])
    store = Store(tmp_path)
    store.submit(spec.id, spec.canonical())
    with Supervisor(store, preload=()) as supervisor:
        last = time.monotonic() + PATIENCE_S
        while not any(isinstance(event, Pictured) for _, event in store.events(spec.id)) and time.monotonic() < last:
            time.sleep(0.02)
        store.cancel(spec.id)
        supervisor.wake()
        while supervisor.working and time.monotonic() < last:
            time.sleep(0.02)
    assert store.status(spec.id) == "cancelled"


def test_states_of_a_finished_run_are_found_and_change_nothing(tmp_path: Path) -> None:
    spec, home = RunSpec(**RUN), Home.find(tmp_path)
    asked = AttackSpec(run=RUN, attack="analytic", pictures=["test-3"], round="last")
    assert not HomeResources(home).states(spec.id)
    apart = [event for event in attack_json(asked.canonical(), home=home) if isinstance(event, Judged)]
    store = Store(tmp_path)
    store.submit(spec.id, spec.canonical())
    from engine.jobs.process_id import ProcessId

    lease = store.take(ProcessId.me(), 1)
    assert lease
    for event in run(spec):
        if isinstance(event, Kept) and event.payload is not None:
            payloads.write(home, spec.id, event.name, event.payload)
        store.append(lease, [event])
    assert [kept.round for kept in HomeResources(home).states(spec.id)] == [0, 1, 2, 3]
    assert [event for event in attack_json(asked.canonical(), home=home) if isinstance(event, Judged)] == apart


def test_an_own_picture_is_attacked_and_a_lost_one_refused(tmp_path: Path) -> None:
    home = Home.find(tmp_path)
    name = UploadedPictures(home).add(other())
    asked = AttackSpec(run=RUN, attack="analytic", pictures=[f"own-{name}-4"])
    refuse(asked, HomeResources(home))
    judged = next(event for event in attack_json(asked.canonical(), home=home) if isinstance(event, Judged))
    assert judged.numbers["psnr"][0] > 60 and judged.labels == (4,)
    with pytest.raises(BadInput, match="label between 0 and 9"):
        refuse(asked.with_(pictures=(f"own-{name}-10",)), HomeResources(home))
    UploadedPictures(home).remove(name)
    with pytest.raises(BadInput, match="still kept"):
        refuse(asked, HomeResources(home))


def test_what_an_attack_learnt_is_no_stray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    monkeypatch.setenv("LEAKLENS_HOME", str(tmp_path))
    home = Home.find(tmp_path)
    pantry = HomeResources(home)
    assert pantry.prior("gias-1") is None
    pantry.keep_prior("gias-1", {"w": np.ones(3, dtype=np.float32)})
    found = pantry.prior("gias-1")
    assert found is not None and found["w"].tolist() == [1.0, 1.0, 1.0]
    assert "0 stray" in doctor.payloads().text
    home.payload(PRIORS, "gias-1").write_bytes(b"broken")
    assert pantry.prior("gias-1") is None
