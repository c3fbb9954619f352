"""The expected ε of every view, computed by a ledger."""

from __future__ import annotations

import math

import pytest

from engine.privacy.ledger import Ledger
from engine.records import Gaussian, Release
from tests.engine.privacy.makers import DELTA, K, N, T, outsider, spent

pytestmark = pytest.mark.slow

SIGMAS = (1.0, 1.5, 2.0)


def test_outsider():
    assert [outsider(sigma) for sigma in SIGMAS] == pytest.approx([12.41, 6.30, 4.19], abs=0.006)
    assert [outsider(sigma, precise=False) for sigma in SIGMAS] == pytest.approx([13.60, 6.87, 4.56], abs=0.006)


def test_aggregate_after_thirty_participations():
    answers = [spent("aggregate", [Gaussian(sigma)] * 30, clients=N) for sigma in SIGMAS]
    assert [answer.value for answer in answers] == pytest.approx([37.6, 21.6, 14.8], abs=0.05)
    assert {answer.accountant for answer in answers} == {"exact"}


@pytest.mark.parametrize(
    ("uploads", "expected", "within"),
    [(1, (17.86, 10.67, 7.51), 0.006), (30, (223, 115, 73.6), 0.5), (43, (302.5, 153.6, 97.1), 0.5)],
)
def test_server_with_split_noise(uploads, expected, within):
    uploaded = [[Gaussian(sigma / math.sqrt(10))] * uploads for sigma in SIGMAS]
    assert [spent("server", laws).value for laws in uploaded] == pytest.approx(expected, abs=within)


def test_replacing_a_user_halves_the_noise():
    uploaded = [[Gaussian(sigma / math.sqrt(10) / 2)] for sigma in SIGMAS]
    replaced = [spent("server", laws, adjacency="replace") for laws in uploaded]
    assert [answer.value for answer in replaced] == pytest.approx([46.2, 26.2, 17.9], abs=0.06)
    assert replaced[0].adjacency == "replace"


def test_full_local_noise():
    total = [sigma * math.sqrt(10) for sigma in SIGMAS]
    full = [spent("aggregate", [Gaussian(z)] * 30).value for z in total]
    assert full == pytest.approx([8.39, 5.17, 3.71], abs=0.006)
    assert [outsider(z) for z in total] == pytest.approx([2.35, 1.46, 1.06], abs=0.011)


def test_one_curious_participant_of_ten():
    z = [sigma * math.sqrt(0.9) for sigma in SIGMAS]
    assert [outsider(sigma) for sigma in z] == pytest.approx([13.7, 6.8, 4.5], abs=0.06)


def test_returned_slices():
    for sigma, prv, rdp in zip(SIGMAS, (41.4, 23.2, 15.8), (43.8, 24.7, 16.9), strict=True):
        ledger = Ledger(N, DELTA)
        for round_ in range(1, T + 1):
            smoothing = round_ % 10 == 0
            if not smoothing:
                ledger.add([Release("outsider", Gaussian(sigma, K / N), sampling="poisson")])
            elif round_ <= 30:  # three participations in smoothing rounds
                cohort = tuple(range(7, 17))
                ledger.add([Release("outsider", Gaussian(sigma / math.sqrt(len(cohort))), clients=cohort)])
        record = ledger.answer("outsider", precise=True)
        quick = ledger.answer("outsider")
        assert record.value == pytest.approx(prv, abs=0.06) and record.accountant == "prv"
        assert quick.value == pytest.approx(rdp, abs=0.06) and quick.accountant == "rdp"
        assert record.sampling == "poisson" and record.worst == 7


@pytest.mark.parametrize(("rounds", "expected"), [(1, 2.79), (7, 6.72), (15, 10.18), (17, 10.93), (27, 14.31)])
def test_two_hundred_steps_per_round(rounds, expected):
    laws = [Gaussian(1.0, 256 / 10_000, 200)] * rounds
    assumptions = {"unit": "record", "adjacency": "add-remove", "sampling": "poisson"}
    answer = spent("server", laws, clients=5, precise=False, **assumptions)
    assert answer.value == pytest.approx(expected, abs=0.011)
    assert (answer.unit, answer.adjacency, answer.sampling, answer.accountant) == (
        "record",
        "add-remove",
        "poisson",
        "rdp",
    )


@pytest.mark.parametrize(("claimed", "real"), [(0.1, 0.26), (0.2, 0.50), (0.5, 1.09)])
def test_the_noise_of_a_wrong_formula(claimed, real):
    z = math.sqrt(2 * math.log(1.25 / math.exp(-claimed))) / claimed  # e^-ε in place of δ
    assert spent("server", [Gaussian(z)], delta=1e-3).value == pytest.approx(real, abs=0.006)
