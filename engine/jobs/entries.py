"""Attacks as jobs: what they need of the home, and where what they learnt is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine.errors import Damaged, LeakLensError
from engine.events import Event, Kept, Payload
from engine.jobs import payloads
from engine.jobs.home import PRIORS, Home
from engine.jobs.store import Store
from engine.jobs.uploads import UploadedPictures
from engine.leakage.pictures import attack
from engine.leakage.target import AttackResources
from engine.specs.attack import AttackSpec


class HomeResources(AttackResources):
    """The home, as far as an attack may look into it."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def states(self, run: str) -> Sequence[Kept]:
        """What is still there: a finished run lets its checkpoints go."""
        store = Store(self._home.path)
        try:
            told = [event for _, event in store.events(run)]
        except LeakLensError:  # the run is not here: its rounds are played again
            return ()
        finally:
            store.close()
        kept = [event for event in told if isinstance(event, Kept) and event.kind == "state"]
        whole = [event for event in kept if payloads.whole(self._home, run, event.name)]
        return [replace(event, payload=payloads.read(self._home, run, event.name)) for event in whole]

    def picture(self, name: str) -> bytes:
        return UploadedPictures(self._home).read(name)

    def prior(self, name: str) -> Payload | None:
        try:
            return payloads.read(self._home, PRIORS, name) if payloads.whole(self._home, PRIORS, name) else None
        except Damaged:  # it is learnt again
            return None

    def keep_prior(self, name: str, payload: Payload) -> None:
        payloads.write(self._home, PRIORS, name, payload)


def attack_json(spec: Mapping[str, Any], resume: Kept | None = None, *, home: Home, **how: Any) -> Iterator[Event]:
    """An attack from its spec as JSON: what a worker calls. It keeps no checkpoint and always begins at the start."""
    del resume
    return attack(AttackSpec(**spec), HomeResources(home), **how)
