"""Submits runs and appends their events, as a supervisor and its workers do."""

from __future__ import annotations

from typing import Any

from engine.events import Cancelled, Event, Failed, Finished, Measured, Round, Spent
from engine.jobs.leases import Lease
from engine.jobs.process_id import ProcessId
from engine.jobs.requests import MACHINE
from engine.jobs.store import Store
from engine.specs.run import RunSpec

ROUNDS = 4
ENDINGS = {
    "finished": Finished(ROUNDS, 1.0),
    "failed": Failed("the worker <b>stopped</b>", "Choose a smaller model"),
    "cancelled": Cancelled(2),
}


class RunMaker:
    """Submits runs and appends their events, as a supervisor does."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.leases: dict[str, Lease] = {}

    def __call__(self, status: str = "finished", seed: int = 0, visitor: str = "", **settings: Any) -> str:
        """The id of a new run with this status. Its accuracy and ε depend on the seed."""
        spec = RunSpec(**{"method": "udp-fedavg", "rounds": ROUNDS, "seed": seed, **settings})
        self.store.submit(spec.id, spec.canonical(), {"device": "cpu"}, visitor or MACHINE)
        if status != "queued":
            ending = [ENDINGS[status]] if status in ENDINGS else []
            self.tell(spec.id, *run_events(2, seed), *ending)
        if status == "interrupted":
            self.store.release(self.leases.pop(spec.id))
        assert self.store.status(spec.id) == status
        return spec.id

    def tell(self, run: str, *events: Event) -> None:
        if run not in self.leases:
            lease = self.store.take(ProcessId.me(), 1000, {run})
            assert lease
            self.leases[run] = lease
        self.store.append(self.leases[run], events)


def run_events(rounds: int, seed: int = 0) -> list[Event]:
    """The events of a run. They include the accuracy of one client, which is not the accuracy of the run."""
    events: list[Event] = []
    for round in range(1, rounds + 1):
        accuracy = 0.1 * round + 0.001 * seed
        outsider_epsilon = 0.5 * round + seed
        events += [Round(round, ROUNDS, 10), Measured(round, "accuracy", accuracy), Measured(round, "loss", 9.0)]
        events.append(Measured(round, "accuracy", 0.99, "client 3"))
        for view, epsilon in (("server", 77 * outsider_epsilon), ("outsider", outsider_epsilon)):
            events.append(Spent(round, view, epsilon, "user", "zero-out", 1e-5, "rdp", "poisson"))
    return events
