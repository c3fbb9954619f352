"""Amounts over pairs, however they were told."""

from __future__ import annotations

import numpy as np

from engine.privacy.sums import Sums

CLIENTS, OBSERVERS = np.array([0, 2]), np.array([1, 3, 4])


def filled() -> tuple[Sums, np.ndarray]:
    tally, plain = Sums(5), np.zeros((5, 5))  # (observers, clients)
    tally.add(1.0, None)
    plain += 1
    tally.add(2.0, CLIENTS)
    plain[:, CLIENTS] += 2
    tally.add(4.0, None, OBSERVERS)
    plain[OBSERVERS] += 4
    tally.add(8.0, CLIENTS, OBSERVERS)
    plain[np.ix_(OBSERVERS, CLIENTS)] += 8
    return tally, plain


def test_pairs_are_added_up():
    tally, plain = filled()
    np.testing.assert_array_equal(tally.matrix(), plain)


def test_one_observer_sees_at_least_what_any_saw():
    tally, plain = filled()
    assert (tally.for_clients() >= plain.max(axis=0)).all()
    np.testing.assert_array_equal(tally.for_clients(), [15, 5, 15, 5, 5])


def test_axes_are_stored_only_when_told_apart():
    tally = Sums(10_000)
    tally.add(3.0, None)
    assert not tally.per_client and not tally.per_observer
    tally.add(1.0, None, np.array([7]))
    assert tally.per_observer and not tally.per_client
    assert tally.for_observers()[7] == 4 and tally.for_observers()[8] == 3
    tally.add(1.0, np.array([9]))
    assert tally.per_client and tally.pair is None


def test_a_copy_is_independent():
    tally, plain = filled()
    twin = tally.copy()
    twin.add(100.0, CLIENTS, OBSERVERS)
    twin.add(100.0, CLIENTS)
    twin.add(100.0, None, OBSERVERS)
    twin.add(100.0, None)
    np.testing.assert_array_equal(tally.matrix(), plain)
    assert twin.matrix()[1, 0] == plain[1, 0] + 400
