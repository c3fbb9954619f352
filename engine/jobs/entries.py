"""Attacks as jobs: the function that a worker calls, and the files of the home that an attack may use."""

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
from engine.leakage.attack import attack
from engine.leakage.target import AttackResources
from engine.specs.attack import attack_spec


class HomeResources(AttackResources):
    """The states, uploaded pictures and priors of one home."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def states(self, run: str) -> Sequence[Kept]:
        """The states that can still be read. A finished run has no checkpoints any more."""
        store = Store(self._home.path)
        try:
            numbered = store.events(run)
        except LeakLensError:  # this store does not hold the run: the attack replays its rounds
            return ()
        finally:
            store.close()
        states = []
        for _, event in numbered:
            if not isinstance(event, Kept) or event.kind != "state":
                continue
            if payloads.readable(self._home, run, event.name):
                states.append(replace(event, payload=payloads.read(self._home, run, event.name)))
        return states

    def picture(self, name: str) -> bytes:
        return UploadedPictures(self._home).read(name)

    def prior(self, name: str) -> Payload | None:
        try:
            if not payloads.readable(self._home, PRIORS, name):
                return None
            return payloads.read(self._home, PRIORS, name)
        except Damaged:  # the attack trains the prior again
            return None

    def keep_prior(self, name: str, payload: Payload) -> None:
        payloads.write(self._home, PRIORS, name, payload)


def attack_json(spec: Mapping[str, Any], resume: Kept | None = None, *, home: Home, **how: Any) -> Iterator[Event]:
    """Run an attack from its JSON spec. An attack keeps no checkpoint, so it always starts from the beginning."""
    del resume
    return attack(attack_spec(spec), HomeResources(home), **how)
