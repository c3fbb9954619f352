"""The time from the click to the first picture in the store, with a warm worker. Also the time of `analytic` alone."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import torch

from engine.attacks.pictures.analytic import Analytic
from engine.bench import BenchRow
from engine.bench.first_accuracy import PATIENCE_S, PRELOAD, seconds_to_event, wait_until_warm
from engine.compute.context import AttackContext
from engine.compute.threads import ThreadTeam
from engine.events import Pictured
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from engine.leakage.probe import make_victim, probe
from engine.seeds import Seeds
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from engine.training.plan import load_plan

RUN = RunSpec(method="fedavg", dataset="cifar10", clients=10, sampled=10, sampling="all", epochs=1)
MODELS = {"analytic": {"name": "mlp", "bias": True}, "map": "lenet-sigmoid", "inverting-gradients": "lenet5"}
REPEATS = 5


def measure() -> BenchRow:
    ours = {"analytic ms": 1000 * analytic_seconds()}
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        with Supervisor(store, preload=PRELOAD) as supervisor:
            for name, model in MODELS.items():
                times = []
                for seed in range(REPEATS):
                    wait_until_warm(supervisor)
                    run = RUN.with_(model=model, seed=seed)
                    spec = AttackSpec(run=run, attack=name, pictures=["test-0"])
                    times.append(seconds_to_picture(store, supervisor, spec))
                ours |= {f"{name} s": statistics.median(times), f"{name} worst s": max(times)}
        store.close()
    kept = ours["analytic ms"] < 50 and all(ours[f"{name} s"] < 1 for name in MODELS)
    return BenchRow("first-picture", ours, promise="analytic under 50 ms; click to picture under 1 s warm", kept=kept)


def analytic_seconds() -> float:
    """Seconds of the attack `analytic` itself."""
    plan = load_plan(RUN.with_(model=MODELS["analytic"]))
    data = plan.spec.dataset.load()
    with ThreadTeam(1) as team:
        exposure = probe(plan, [], make_victim(plan, 1, data.test_x[:1], data.test_y[:1]), "server", team)
    attack = Analytic()
    module = plan.world.build(torch.Generator())
    times = []
    for _ in range(20):
        start = time.perf_counter()
        list(attack.reconstruct(exposure, module, None, AttackContext(Seeds(0))))
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def seconds_to_picture(store: Store, supervisor: Supervisor, spec: AttackSpec) -> float:
    """Seconds until a page that reads the store could show a picture. The rest of the attack is cancelled."""
    start = time.perf_counter()
    store.submit(spec.id, spec.canonical())
    supervisor.wake()
    taken = seconds_to_event(store, spec.id, Pictured, start)
    store.cancel(spec.id)
    while store.status(spec.id) == "running" and time.perf_counter() - start < PATIENCE_S:
        time.sleep(0.01)
    return taken
