"""From the click to the first picture in the store, with a warm worker; and how long `analytic` itself takes."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import torch

from engine.attacks.pictures.analytic import Analytic
from engine.bench import BenchRow
from engine.bench.first_accuracy import PATIENCE_S, WARM, heard, rest
from engine.compute.threads import ThreadTeam
from engine.events import Pictured
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from engine.leakage.probe import probe, victim
from engine.seeds import Seeds
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from engine.training.plan import load_plan

RUN = RunSpec(method="fedavg", dataset="cifar10", clients=10, sampled=10, sampling="all", epochs=1)
CASES = {"analytic": {"name": "mlp", "bias": True}, "map": "lenet-sigmoid", "inverting-gradients": "lenet5"}
TURNS = 5


def measure() -> BenchRow:
    ours = {"analytic ms": 1000 * alone()}
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        with Supervisor(store, preload=WARM) as supervisor:
            for name, model in CASES.items():
                found = []
                for seed in range(TURNS):
                    rest(supervisor)
                    run = RUN.with_(model=model, seed=seed)
                    found.append(first(store, supervisor, AttackSpec(run=run, attack=name, pictures=["test-0"])))
                ours |= {f"{name} s": statistics.median(found), f"{name} worst s": max(found)}
        store.close()
    kept = ours["analytic ms"] < 50 and all(ours[f"{name} s"] < 1 for name in CASES)
    return BenchRow("first-picture", ours, promise="analytic under 50 ms; click to picture under 1 s warm", kept=kept)


def alone() -> float:
    """Seconds of the reading itself."""
    plan = load_plan(RUN.with_(model=CASES["analytic"]))
    data = plan.spec.dataset.load()
    with ThreadTeam(1) as team:
        exposure = probe(plan, [], victim(plan, 1, data.test_x[:1], data.test_y[:1]), "server", team)
    attack, module, times = Analytic(), plan.world.build(torch.Generator()), []
    for _ in range(20):
        start = time.perf_counter()
        list(attack.reconstruct(exposure, module, None, Seeds(0)))
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def first(store: Store, supervisor: Supervisor, spec: AttackSpec) -> float:
    """Seconds until a page that reads the store could show a picture; what is left of the attack is cancelled."""
    start = time.perf_counter()
    store.submit(spec.id, spec.canonical())
    supervisor.wake()
    found = heard(store, spec.id, Pictured, start)
    store.cancel(spec.id)
    while store.status(spec.id) == "running" and time.perf_counter() - start < PATIENCE_S:
        time.sleep(0.01)
    return found
