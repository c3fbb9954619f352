"""Sums over pairs of observer and client, for every combination of axes."""

from __future__ import annotations

import numpy as np

from engine.privacy.sums import Sums

CLIENTS, OBSERVERS = np.array([0, 2]), np.array([1, 3, 4])


def filled() -> tuple[Sums, np.ndarray]:
    sums = Sums(5)
    expected = np.zeros((5, 5))  # (observers, clients)
    sums.add(1.0, None)
    expected += 1
    sums.add(2.0, CLIENTS)
    expected[:, CLIENTS] += 2
    sums.add(4.0, None, OBSERVERS)
    expected[OBSERVERS] += 4
    sums.add(8.0, CLIENTS, OBSERVERS)
    expected[np.ix_(OBSERVERS, CLIENTS)] += 8
    return sums, expected


def test_pairs_are_added_up():
    sums, expected = filled()
    np.testing.assert_array_equal(sums.matrix(), expected)


def test_the_sums_for_clients_are_an_upper_bound_over_observers():
    sums, expected = filled()
    assert (sums.for_clients() >= expected.max(axis=0)).all()
    np.testing.assert_array_equal(sums.for_clients(), [15, 5, 15, 5, 5])


def test_axes_are_stored_only_if_entries_differ():
    sums = Sums(10_000)
    sums.add(3.0, None)
    assert not sums.per_client and not sums.per_observer
    sums.add(1.0, None, np.array([7]))
    assert sums.per_observer and not sums.per_client
    assert sums.for_observers()[7] == 4 and sums.for_observers()[8] == 3
    sums.add(1.0, np.array([9]))
    assert sums.per_client and sums.pair is None


def test_a_copy_is_independent():
    sums, expected = filled()
    copy = sums.copy()
    copy.add(100.0, CLIENTS, OBSERVERS)
    copy.add(100.0, CLIENTS)
    copy.add(100.0, None, OBSERVERS)
    copy.add(100.0, None)
    np.testing.assert_array_equal(sums.matrix(), expected)
    assert copy.matrix()[1, 0] == expected[1, 0] + 400
