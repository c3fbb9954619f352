"""The largest of many rows, and the number of record."""

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
    ledger, sizes = Ledger(200, DELTA), np.random.default_rng(3).permutation(np.arange(300, 3300, 15))
    laws = [Gaussian(1.0, 64 / int(size), 40) for size in sizes]
    ledger.add([Release("server", law, clients=(one,), unit="record") for one, law in enumerate(laws)])
    asked: list = []
    monkeypatch.setattr(worst_case, "curve", recorded(curve, asked))
    answer = ledger.answer("server")
    assert answer.worst == sizes.argmin()
    assert answer.epsilon == spent("server", [laws[sizes.argmin()]], precise=False, unit="record").epsilon
    assert len(set(asked)) < 20
    quantiles = ledger.answer("server", quantiles=True).quantiles
    assert quantiles[-1] == answer.epsilon and list(quantiles) == sorted(quantiles)


def test_the_number_of_record_is_the_largest_of_near_ties():
    ledger, laws = Ledger(9, DELTA), [Gaussian(1.0, 0.05 + one / 500, 60 - 4 * one) for one in range(9)]
    ledger.add([Release("server", law, clients=(one,), sampling="poisson") for one, law in enumerate(laws)])
    each = [epsilon_prv([(law.z, law.rate, law.steps)], DELTA) for law in laws]
    answer = ledger.answer("server", precise=True)
    assert answer.accountant == "prv" and answer.epsilon == max(one for one in each if one is not None)
    assert each[answer.worst or 0] == answer.epsilon


@pytest.mark.parametrize("answer", [None, 99.0])
def test_prv_never_overrides_a_finite_renyi(monkeypatch, answer):
    monkeypatch.setattr(worst_case, "epsilon_prv", lambda *_: answer)
    record = spent("outsider", [Gaussian(1.0, 0.1, T)])
    assert record.epsilon == outsider(1.0, precise=False) and record.accountant == "rdp"


def test_prv_is_not_asked_above_its_limit(monkeypatch):
    def hang(*_):
        raise AssertionError("PRV was asked")

    monkeypatch.setattr(worst_case, "epsilon_prv", hang)
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
    quick, record = ledger.answer("server"), ledger.answer("server", precise=True)
    assert quick.worst == 1 and quick.epsilon == record.epsilon == exact
    ledger = Ledger(2, DELTA)
    z = 0.405
    exact = epsilon_exact(1 / z, DELTA)
    assert outsider(1.0) < exact < outsider(1.0, precise=False)
    ledger.add([Release("server", Gaussian(1.0, 0.1, T), clients=(0,), sampling="poisson")])
    ledger.add([Release("server", Gaussian(z), clients=(1,))])
    quick, record = ledger.answer("server"), ledger.answer("server", precise=True)
    assert (quick.worst, quick.accountant) == (0, "rdp")
    assert (record.worst, record.accountant, record.epsilon) == (1, "exact", exact)
