"""Every law adds to its sum, impossible releases are refused, and too many pairs are merged."""

from __future__ import annotations

import math

import pytest

from engine.errors import BadInput
from engine.privacy import charges
from engine.privacy.accountant import ORDERS, epsilon_exact
from engine.privacy.ledger import Ledger
from engine.records import AllBut, EpsilonDeltaPair, Gaussian, Laplace, NoNoise, Release, Renyi
from tests.engine.privacy.makers import DELTA, number, schedule, spent


def test_epsilon_delta_pairs_add_up_and_use_up_delta():
    ledger = Ledger(4, DELTA)
    ledger.add([Release("aggregate", EpsilonDeltaPair(0.5, 2e-6), clients=(0, 1))] * 3)
    ledger.add([Release("aggregate", EpsilonDeltaPair(0.25, 1e-6), clients=(2,))])
    answer = ledger.answer("aggregate")
    assert answer.value == pytest.approx(1.5) and answer.accountant == "composition"
    ledger.add([Release("aggregate", Gaussian(10.0))])
    assert ledger.answer("aggregate", precise=True).value == pytest.approx(1.5 + epsilon_exact(0.1, 4e-6))


def test_pairs_beyond_delta_have_no_epsilon():
    assert spent("server", [EpsilonDeltaPair(0.5, DELTA / 30)] * 30).value == pytest.approx(15)
    over = spent("server", [EpsilonDeltaPair(0.5, DELTA / 30)] * 31)
    assert over.value is None and over.accountant == "none" and "δ" in over.reason
    assert spent("server", [EpsilonDeltaPair(0.5, DELTA), Gaussian(1.0)]).value is None


def test_a_release_without_noise_has_its_reason():
    ledger = Ledger(3, DELTA)
    ledger.add(
        [Release("server", Gaussian(1.0)), Release("server", NoNoise("the mask is sent in clear"), clients=(2,))]
    )
    answer = ledger.answer("server", precise=True, quantiles=True)
    assert answer.value is None and answer.accountant == "none" and answer.quantiles == ()
    assert (answer.reason, answer.worst) == ("the mask is sent in clear", 2)


@pytest.mark.parametrize("law", [Gaussian(0.0), Gaussian(0.0, 0.1), Gaussian(1e-200), Laplace(0.0)])
def test_noise_of_size_0_has_no_epsilon(law):
    assert spent("server", [law]).value is None and spent("server", [law]).reason


def test_laplace_and_given_curves_use_renyi():
    answer = spent("server", [Laplace(2.0)] * 4)
    assert answer.accountant == "rdp" and 2 <= number(answer) <= 2.05
    gaussian = spent("server", [Gaussian(4.0, 0.99999999, 10)], precise=False).value
    given = spent("server", [Renyi(tuple(ORDERS), tuple(ORDERS / 32))] * 10)
    assert given.value == pytest.approx(gaussian, rel=1e-4)
    assert number(spent("server", [Renyi((1.33,), (1.0,))])) > 0
    assert spent("server", [Renyi((1.001,), (1.0,))]).value is None


@pytest.mark.parametrize("law", [Gaussian(1.0, 0.1, 0), Gaussian(1.0, 0.0), Gaussian(math.inf), Laplace(1.0, 0)])
def test_laws_that_release_nothing_cost_nothing(law):
    answer = spent("outsider", [law])
    assert answer.value == 0 and answer.reason == ""


def test_two_units_in_one_view_are_refused():
    ledger = Ledger(5, DELTA)
    ledger.add([Release("server", Gaussian(1.0))])
    with pytest.raises(BadInput, match="server: all releases of a view must protect the same"):
        ledger.add([Release("server", Gaussian(1.0), unit="record")])


@pytest.mark.parametrize(
    "release",
    [
        Release("server", Gaussian(-1.0)),
        Release("server", Gaussian(math.nan)),
        Release("server", Gaussian(1.0, 1.5)),
        Release("server", Gaussian(1.0, 0.1, -1)),
        Release("server", Laplace(-1.0)),
        Release("server", EpsilonDeltaPair(-1.0, 0.0)),
        Release("server", EpsilonDeltaPair(1.0, -1e-6)),
        Release("server", Renyi((0.5,), (1.0,))),
        Release("server", Renyi((3.0, 2.0), (1.0, 1.0))),
        Release("server", Renyi((2.0,), (-1.0,))),
        Release("server", Renyi((), ())),
        Release("server", Gaussian(1.0), clients=(5,)),
        Release("server", Gaussian(1.0), clients=(-1,)),
        Release("server", Gaussian(1.0), clients=(1, 1)),
        Release("client", Gaussian(1.0), observers=(5,)),
    ],
)
def test_impossible_releases_are_refused(release):
    with pytest.raises(BadInput, match="ledger: "):
        Ledger(5, DELTA).add([release])


def test_all_but_some_charges_what_the_others_would():
    ids = (1, 4)
    others = (0, 2, 3, 5)
    for observed in (True, False):
        short, long = Ledger(6, DELTA), Ledger(6, DELTA)
        for ledger, chosen in ((short, AllBut(ids)), (long, others)):
            fields = {"clients": (0, 1), "observers": chosen} if observed else {"clients": chosen}
            ledger.add([Release("client", Gaussian(2.0), **fields)])
        assert short.answer("client", quantiles=True) == long.answer("client", quantiles=True)
    ledger = Ledger(3, DELTA)
    ledger.add([Release("client", Gaussian(2.0), clients=AllBut((0, 1, 2)))])
    assert ledger.answer("client").value == 0
    ledger.add([Release("client", Gaussian(2.0), clients=AllBut(()))])
    assert ledger.answer("client").value == spent("client", [Gaussian(2.0)]).value


def round_releases(cohort, others, noise=2.0):
    """What one round releases: to participants, and to those who were absent."""
    return [
        Release("client", Gaussian(noise), cohort, cohort),
        Release("client", Gaussian(2 * noise), cohort, others),
        Release("client", Gaussian(noise, 0.3), None, others, sampling="poisson"),
    ]


def test_a_cohort_and_all_but_it_are_kept_apart_in_one_round():
    """Both are one tuple in the releases of a round. Confusing them charges participants for what others received."""
    cohorts = [(0, 1), (1, 2, 4), (0, 3), (2, 5), (0, 1)]
    short, long = Ledger(6, DELTA), Ledger(6, DELTA)
    for cohort in cohorts:
        others = tuple(client for client in range(6) if client not in cohort)
        short.add(round_releases(cohort, AllBut(cohort)))
        long.add(round_releases(cohort, others))
    assert short.answer("client", quantiles=True) == long.answer("client", quantiles=True)


def test_index_arrays_are_not_confused_when_tuples_are_collected():
    """The ledger finds arrays by the id of a tuple, which Python reuses once the tuple is gone."""
    made = Ledger(50, DELTA)
    kept = Ledger(50, DELTA)
    alive = []
    for round in range(200):
        clients = sorted({round % 50, (round * 7 + 1) % 50})
        alive.append(tuple(clients))
        made.add([Release("server", Gaussian(1.0 + round / 50), tuple(clients))])
        kept.add([Release("server", Gaussian(1.0 + round / 50), alive[-1])])
    assert made.answer("server", quantiles=True) == kept.answer("server", quantiles=True)


def test_a_ledger_with_other_noise_is_that_of_releases_with_other_noise():
    cohorts = [(0, 1), (1, 2, 4), (0, 3)]
    single, triple = Ledger(6, DELTA), Ledger(6, DELTA)
    for cohort in cohorts:
        single.add(round_releases(cohort, AllBut(cohort)))
        triple.add(round_releases(cohort, AllBut(cohort), 6.0))
    assert single.with_noise(3.0).answer("client").value == pytest.approx(triple.answer("client").value, rel=1e-12)
    assert number(single.answer("client")) > number(triple.answer("client"))
    without = Ledger(6, DELTA)
    without.add([Release("client", NoNoise("it leaves as it is"))])
    assert without.with_noise(5.0).answer("client") == without.answer("client")
    for law in (Laplace(1.0), EpsilonDeltaPair(0.1, 1e-7), Renyi((2.0,), (0.1,))):
        other = Ledger(6, DELTA)
        other.add([Release("client", law)])
        with pytest.raises(ValueError, match="not every release is Gaussian"):
            other.with_noise(2.0)


def test_too_many_pairs_are_charged_to_one_observer(monkeypatch):
    releases = schedule(2, "client", observed=True)
    full = Ledger(6, DELTA)
    merged = Ledger(6, DELTA)
    full.add(releases)
    monkeypatch.setattr(charges, "PAIR_LIMIT", 30)  # below six clients squared
    merged.add(releases)
    answer = merged.answer("client")
    assert answer.bound == "upper bound"
    monkeypatch.undo()
    assert number(answer) >= number(full.answer("client")) and full.answer("client").bound == ""
    monkeypatch.setattr(
        charges, "PAIR_LIMIT", 100
    )  # enough to store the pairs of one law, too little to compare all laws
    merged_late = full.answer("client")
    assert merged_late.bound == "upper bound" and number(merged_late) <= number(answer) * (1 + 1e-9)


def test_merged_pairs_are_an_upper_bound_even_if_observers_do_not_differ(monkeypatch):
    monkeypatch.setattr(charges, "PAIR_LIMIT", 30)
    ledger = Ledger(6, DELTA)
    ledger.add([Release("client", Gaussian(3.0), (1, 2), (3, 4)), Release("client", Gaussian(4.0), (1,), (5,))])
    answer = ledger.answer("client")
    assert (answer.bound, answer.worst) == ("upper bound", 1)
    assert answer.value == epsilon_exact((1 / 9 + 1 / 16) ** 0.5, DELTA)
