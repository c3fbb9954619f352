"""Attacks as jobs: what they read from the home, and that a worker produces the same events as a direct call."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from engine import doctor
from engine.errors import BadInput
from engine.events import Event, Finished, Judged, Kept, Pictured
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
from tests.engine.jobs.test_uploads import small_picture

RUN: dict[str, Any] = {
    "method": "fedavg", "model": {"name": "mlp", "bias": True}, "clients": 10, "sampled": 5, "epochs": 1, "rounds": 3,
}  # fmt: skip
PATIENCE_S = 60.0


def first_judged(events: Iterable[Event]) -> Judged:
    return next(event for event in events if isinstance(event, Judged))


@pytest.mark.slow
def test_a_worker_stores_the_events_of_the_attack(tmp_path: Path) -> None:
    spec = AttackSpec(run=RUN, attack={"name": "map", "iterations": 20}, pictures=["test-3"], restarts=2)
    store = Store(tmp_path)
    store.submit(spec.id, spec.canonical())
    with Supervisor(store, preload=()):
        deadline = time.monotonic() + PATIENCE_S
        while store.status(spec.id) in ("queued", "running") and time.monotonic() < deadline:
            time.sleep(0.05)
    events = [event for _, event in store.events(spec.id)]
    assert store.status(spec.id) == "finished" and isinstance(events[-1], Finished)
    direct = list(attack(spec))
    assert first_judged(events).numbers == first_judged(direct).numbers
    pictured = sum(isinstance(event, Pictured) for event in events)
    assert pictured == sum(isinstance(event, Pictured) for event in direct)


@pytest.mark.slow
def test_a_cancelled_attack_frees_its_worker(tmp_path: Path) -> None:
    spec = AttackSpec(run=RUN, attack={"name": "map", "iterations": 100_000}, pictures=["test-3"])
    store = Store(tmp_path)
    store.submit(spec.id, spec.canonical())
    with Supervisor(store, preload=()) as supervisor:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if any(isinstance(event, Pictured) for _, event in store.events(spec.id)):
                break
            time.sleep(0.02)
        store.cancel(spec.id)
        supervisor.wake()
        while supervisor.working and time.monotonic() < deadline:
            time.sleep(0.02)
    assert store.status(spec.id) == "cancelled"


@pytest.mark.slow
def test_an_attack_reads_the_states_of_a_finished_run_with_the_same_result(tmp_path: Path) -> None:
    spec = RunSpec(**RUN)
    home = Home.find(tmp_path)
    attack_spec = AttackSpec(run=RUN, attack="analytic", pictures=["test-3"], round="last")
    assert not HomeResources(home).states(spec.id)
    without_states = [event for event in attack_json(attack_spec.canonical(), home=home) if isinstance(event, Judged)]
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
    with_states = [event for event in attack_json(attack_spec.canonical(), home=home) if isinstance(event, Judged)]
    assert with_states == without_states


@pytest.mark.slow
def test_an_uploaded_picture_is_attacked_and_a_removed_one_is_refused(tmp_path: Path) -> None:
    home = Home.find(tmp_path)
    name = UploadedPictures(home).add(small_picture())
    attack_spec = AttackSpec(run=RUN, attack="analytic", pictures=[f"own-{name}-4"])
    refuse(attack_spec, HomeResources(home))
    judged = first_judged(attack_json(attack_spec.canonical(), home=home))
    assert judged.numbers["psnr"][0] > 60 and judged.labels == (4,)
    with pytest.raises(BadInput, match="label between 0 and 9"):
        refuse(attack_spec.with_(pictures=(f"own-{name}-10",)), HomeResources(home))
    UploadedPictures(home).remove(name)
    with pytest.raises(BadInput, match="not removed"):
        refuse(attack_spec, HomeResources(home))


def test_a_prior_is_stored_and_the_doctor_counts_it_as_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    monkeypatch.setenv("LEAKLENS_HOME", str(tmp_path))
    home = Home.find(tmp_path)
    resources = HomeResources(home)
    assert resources.prior("gias-1") is None
    resources.keep_prior("gias-1", {"w": np.ones(3, dtype=np.float32)})
    prior = resources.prior("gias-1")
    assert prior is not None and prior["w"].tolist() == [1.0, 1.0, 1.0]
    assert "0 stray" in doctor.payloads().text
    home.payload(PRIORS, "gias-1").write_bytes(b"broken")
    assert resources.prior("gias-1") is None
