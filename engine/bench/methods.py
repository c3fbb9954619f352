"""Seconds of one round of each method at its quick settings. The peer is FedAvg, of private methods DP-FedAvg."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from engine.bench import BenchRow
from engine.bench.clock import PairedTimes, time_pair
from engine.compute.threads import ThreadTeam, set_thread_modes
from engine.specs.run import RunSpec
from engine.training.plan import load_plan
from engine.training.rounds import first_state, train_round

# MNIST with five clients of two classes each, as in FedLAP
QUICK: Mapping[str, Any] = {
    "dataset": "mnist", "partition": {"name": "classes-per-client", "classes": 2}, "clients": 5, "sampling": "all",
    "epochs": 1, "batch": 64, "rounds": 10,
}  # fmt: skip


@dataclass(frozen=True)
class MethodPace:
    """A method, its peer, and how many times the peer's seconds a round may take; None: nothing is promised."""

    method: Mapping[str, Any]
    most: float | None
    peer: str = "fedavg"
    peer_fields: Mapping[str, Any] = field(default_factory=dict)


FEDLAP_DP = {"stops": 6, "batches": 3, "boost": 10, "server-steps": 60}
PACES = (
    MethodPace({"name": "fedprox"}, 1.3),
    MethodPace({"name": "scaffold"}, 1.5),
    MethodPace({"name": "feddm"}, None, peer_fields={"epochs": 5}),
    MethodPace({"name": "fedlap", "server-step": 2.0}, 6.0, peer_fields={"epochs": 5}),
    MethodPace({"name": "dp-fedprox"}, 1.3, "dp-fedavg"),
    MethodPace({"name": "fedlap-dp", **FEDLAP_DP}, 14.0, "dp-fedavg"),
)


def measure() -> BenchRow:
    set_thread_modes()
    with ThreadTeam(1) as team:
        times = {str(pace.method["name"]): compared(pace, team) for pace in PACES}
    ours = {f"{name} ms": 1000 * min(pair.ours) for name, pair in times.items()}
    peer = {f"beside {name} ms": 1000 * min(pair.peer) for name, pair in times.items()}
    ratios = {name: 1 / pair.ratio for name, pair in times.items()}
    ours |= {f"{name} x": ratio for name, ratio in ratios.items()}
    limits = {str(pace.method["name"]): pace.most for pace in PACES if pace.most is not None}
    broken = [name for name, most in limits.items() if ratios[name] > most]
    promise = "at most " + ", ".join(f"{name} {most:g} x" for name, most in limits.items())
    if broken:
        promise += f"; broken: {', '.join(broken)}"
    return BenchRow("methods", ours, peer, None, promise, not broken)


def compared(pace: MethodPace, team: ThreadTeam) -> PairedTimes:
    """The seconds of one round of the method and of its peer, in alternation."""
    return time_pair(round_of(pace.method, team), round_of({"name": pace.peer}, team, **pace.peer_fields), repeats=5)


def round_of(method: Mapping[str, Any], team: ThreadTeam, **fields: Any) -> Any:
    """A function that trains one round from the first weights."""
    plan = load_plan(RunSpec(**{**QUICK, **fields, "method": dict(method)}))
    return partial(train_round, plan, first_state(plan), 1, team)
