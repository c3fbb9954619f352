"""The largest ε of many rows, and the number of record."""

from __future__ import annotations

import numpy as np
import pytest

from engine.privacy import worst_case
from engine.privacy.accountant import curve, epsilon_exact
from engine.privacy.ledger import Ledger
from engine.privacy.prv import epsilon_prv
from engine.records import Gaussian, Laplace, Release
from tests.engine.privacy.makers import DELTA, T, number, outsider, recorded, spent


def test_the_worst_of_many_unequal_clients_is_found_without_all_curves(monkeypatch):
    ledger = Ledger(200, DELTA)
    sizes = np.random.default_rng(3).permutation(np.arange(300, 3300, 15))
    laws = [Gaussian(1.0, 64 / int(size), 40) for size in sizes]
    ledger.add([Release("server", law, clients=(client,), unit="record") for client, law in enumerate(laws)])
    calls: list = []
    monkeypatch.setattr(worst_case, "curve", recorded(curve, calls))
    answer = ledger.answer("server")
    assert answer.worst == sizes.argmin()
    assert answer.value == spent("server", [laws[sizes.argmin()]], precise=False, unit="record").value
    assert len(set(calls)) < 20
    quantiles = ledger.answer("server", quantiles=True).quantiles
    assert quantiles[-1] == answer.value and list(quantiles) == sorted(quantiles)


def test_the_number_of_record_is_the_largest_of_near_ties():
    ledger = Ledger(9, DELTA)
    laws = [Gaussian(1.0, 0.05 + client / 500, 60 - 4 * client) for client in range(9)]
    ledger.add([Release("server", law, clients=(client,), sampling="poisson") for client, law in enumerate(laws)])
    epsilons = [epsilon_prv([(law.z, law.rate, law.steps)], DELTA) for law in laws]
    answer = ledger.answer("server", precise=True)
    assert answer.accountant == "prv" and answer.value == max(epsilon for epsilon in epsilons if epsilon is not None)
    assert epsilons[answer.worst or 0] == answer.value


@pytest.mark.parametrize("prv", [None, 99.0])
def test_a_missing_or_larger_prv_never_replaces_renyi(monkeypatch, prv):
    monkeypatch.setattr(worst_case, "epsilon_prv", lambda *_: prv)
    record = spent("outsider", [Gaussian(1.0, 0.1, T)])
    assert record.value == outsider(1.0, precise=False) and record.accountant == "rdp"


def test_prv_is_not_computed_above_its_limit(monkeypatch):
    def fail(*_):
        raise AssertionError("PRV was computed")

    monkeypatch.setattr(worst_case, "epsilon_prv", fail)
    record = spent("outsider", [Gaussian(0.03, 0.1)] * 30)
    assert record.accountant == "rdp" and number(record) > 50
    assert spent("outsider", [Gaussian(3.0), Laplace(3.0)]).accountant == "rdp"
    assert spent("outsider", [Gaussian(3.0)]).accountant == "exact"
    with pytest.raises(AssertionError):
        spent("outsider", [Gaussian(1.0, 0.1, T)])


def test_an_exact_client_may_be_worse_than_the_one_renyi_ranks_first():
    exact = epsilon_exact(1 / 0.345, DELTA)
    ledger = Ledger(2, DELTA)
    ledger.add([Release("server", Gaussian(1.0, 0.1, T), clients=(0,), sampling="poisson")])
    ledger.add([Release("server", Gaussian(0.345), clients=(1,))])
    quick = ledger.answer("server")
    record = ledger.answer("server", precise=True)
    assert quick.worst == 1 and quick.value == record.value == exact
    ledger = Ledger(2, DELTA)
    z = 0.405
    exact = epsilon_exact(1 / z, DELTA)
    assert outsider(1.0) < exact < outsider(1.0, precise=False)
    ledger.add([Release("server", Gaussian(1.0, 0.1, T), clients=(0,), sampling="poisson")])
    ledger.add([Release("server", Gaussian(z), clients=(1,))])
    quick = ledger.answer("server")
    record = ledger.answer("server", precise=True)
    assert (quick.worst, quick.accountant) == (0, "rdp")
    assert (record.worst, record.accountant, record.value) == (1, "exact", exact)
