"""Ledgers and releases that the tests of this folder share."""

from __future__ import annotations

import numpy as np

from engine.epsilon import Epsilon
from engine.privacy.ledger import Ledger
from engine.records import Gaussian, Release, View

DELTA = 1e-5
T, N, K = 300, 100, 10
LAWS = (Gaussian(2.0), Gaussian(5.0), Gaussian(1.2, 0.2, 3), Gaussian(0.9, 0.05, 10))


def spent(view, laws, clients=N, delta=DELTA, precise=True, **words) -> Epsilon:
    ledger = Ledger(clients, delta)
    for law in laws:
        ledger.add([Release(view, law, **words)])
    return ledger.answer(view, precise=precise)


def number(answer: Epsilon) -> float:
    assert answer.value is not None
    return answer.value


def outsider(sigma, precise=True, rounds=T, rate=K / N) -> float:
    return number(spent("outsider", [Gaussian(sigma, rate)] * rounds, precise=precise, sampling="poisson"))


def recorded(function, calls: list):
    """The function, which also records the arguments of each call."""

    def record(*arguments):
        calls.append(arguments)
        return function(*arguments)

    return record


def schedule(seed: int, view: View, observed: bool, laws=LAWS, clients: int = 6, rounds: int = 12) -> list[Release]:
    rng = np.random.default_rng(seed)

    def subset() -> tuple[int, ...] | None:
        return None if rng.random() < 0.3 else tuple(np.flatnonzero(rng.random(clients) < 0.5).tolist())

    releases = []
    for _ in range(rounds):
        law = laws[rng.integers(len(laws))]
        charged = subset()
        observers = subset() if observed else None
        releases.append(Release(view, law, charged, observers, sampling="poisson"))
    return releases
