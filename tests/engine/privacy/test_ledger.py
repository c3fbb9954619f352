"""The ledger compared with the composition of every client's history; its assumptions, budget and speed."""

from __future__ import annotations

import math
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opacus.accountants.analysis.rdp import compute_rdp, get_privacy_spent

from engine.errors import BadInput
from engine.privacy import worst_case
from engine.privacy.accountant import ORDERS, epsilon_exact
from engine.privacy.ledger import Ledger
from engine.privacy.prv import epsilon_prv
from engine.records import Gaussian, NoNoise, Release
from tests.engine.privacy.makers import DELTA, LAWS, N, T, number, outsider, recorded, schedule, spent

steady = settings(derandomize=True, deadline=None, max_examples=20)
STEP = {law: compute_rdp(q=law.rate, noise_multiplier=law.z, steps=law.steps, orders=ORDERS) for law in LAWS}


def composed(history: list[Gaussian]) -> float:
    """The ε of one client in the view of one observer, composed directly."""
    if not history:
        return 0.0
    if all(law.rate == 1 for law in history):
        return epsilon_exact(math.sqrt(sum(law.steps / law.z**2 for law in history)), DELTA)
    return float(get_privacy_spent(orders=ORDERS, rdp=sum(STEP[law] for law in history), delta=DELTA)[0])


def history_of(releases: list[Release], observer: int, client: int) -> list[Gaussian]:
    """The laws of the releases that charge the client in the view of the observer."""
    laws = []
    for release in releases:
        charged = release.clients is None or client in release.clients
        observed = release.observers is None or observer in release.observers
        if isinstance(release.mechanism, Gaussian) and charged and observed:
            laws.append(release.mechanism)
    return laws


def pairs_of(releases: list[Release], clients: int) -> dict[tuple[int, int], float]:
    """The ε of every pair of observer and another client."""
    pairs = {}
    for observer in range(clients):
        for client in range(clients):
            if client != observer:
                pairs[observer, client] = composed(history_of(releases, observer, client))
    return pairs


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("view", ["server", "outsider"])
def test_headline_is_the_largest_over_clients(view, seed):
    releases = schedule(seed, view, observed=False)
    ledger = Ledger(6, DELTA)
    ledger.add(releases)
    epsilons = [composed(history_of(releases, -1, client)) for client in range(6)]
    answer = ledger.answer(view, quantiles=True)
    assert answer.value == pytest.approx(max(epsilons), rel=1e-6)
    assert answer.worst is not None and epsilons[answer.worst] == pytest.approx(max(epsilons), rel=1e-6)
    np.testing.assert_allclose(answer.quantiles, np.quantile(epsilons, [0, 0.25, 0.5, 0.75, 1]), rtol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_headline_of_the_client_view_is_the_largest_over_pairs(seed):
    releases = schedule(seed, "client", observed=True)
    ledger = Ledger(6, DELTA)
    ledger.add(releases)
    pairs = pairs_of(releases, 6)
    answer = ledger.answer("client", quantiles=True)
    assert answer.value == pytest.approx(max(pairs.values()), rel=1e-6)
    observers = []
    for observer in range(6):
        observers.append(max(pairs[observer, client] for client in range(6) if client != observer))
    np.testing.assert_allclose(answer.quantiles, np.quantile(observers, [0, 0.25, 0.5, 0.75, 1]), rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_shortcut_for_gaussians_without_sampling_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    releases = schedule(seed, "client", observed=True, laws=LAWS[:2])
    for _ in range(5):
        observers = tuple(np.flatnonzero(rng.random(6) < 0.6).tolist())
        releases.append(Release("client", LAWS[2], None, observers))
    ledger = Ledger(6, DELTA)
    ledger.add(releases)
    pairs = pairs_of(releases, 6)
    assert ledger.answer("client").value == pytest.approx(max(pairs.values()), rel=1e-6)


def test_a_client_is_not_charged_in_its_own_view():
    ledger = Ledger(3, DELTA)
    ledger.add([Release("client", Gaussian(1.0), clients=(1,), observers=(1,))])
    assert ledger.answer("client").value == 0
    ledger.add([Release("client", NoNoise(), clients=(2,), observers=(2,))])
    assert ledger.answer("client").value == 0
    ledger.add([Release("client", Gaussian(3.0), clients=(1, 2), observers=(1, 2))])
    assert ledger.answer("client").value == pytest.approx(epsilon_exact(1 / 3, DELTA))


def test_a_lone_client_has_no_observers():
    assert spent("client", [Gaussian(1.0), NoNoise()], clients=1).value == 0


@steady
@given(st.permutations(range(12)), st.integers(0, 3))
def test_order_of_releases_does_not_matter(order, seed):
    releases = schedule(seed, "client", observed=True)
    first = Ledger(6, DELTA)
    second = Ledger(6, DELTA)
    first.add(releases)
    for index in order:
        second.add([releases[index]])
    assert second.answer("client").value == pytest.approx(first.answer("client").value, rel=1e-9)


@steady
@given(st.floats(0.5, 20), st.floats(0.01, 0.9), st.integers(1, 60))
def test_epsilon_grows_with_rounds_and_rate_and_falls_with_noise(sigma, rate, rounds):
    epsilon = outsider(sigma, False, rounds, rate)
    assert outsider(sigma, False, rounds + 5, rate) >= epsilon
    assert outsider(sigma, False, rounds, rate * 0.8) <= epsilon + 1e-9
    assert outsider(sigma * 1.2, False, rounds, rate) <= epsilon + 1e-9


def test_only_views_with_releases_are_answered():
    ledger = Ledger(5, DELTA)
    assert ledger.answers() == ()
    assert ledger.answer("server").value == 0
    ledger.add(
        [Release("outsider", Gaussian(1.0, 0.1), sampling="poisson"), Release("server", Gaussian(1.0), clients=())]
    )
    assert [answer.view for answer in ledger.answers()] == ["server", "outsider"]
    assert [answer.value for answer in ledger.answers()] == [0, pytest.approx(outsider(1.0, False, 1))]
    assert [answer.worst for answer in ledger.answers()] == [None, None]


def test_an_answer_names_its_assumptions():
    ledger = Ledger(5, DELTA)
    ledger.add([Release("outsider", Gaussian(1.0, 0.1), sampling="poisson", bound="upper bound")])
    ledger.add([Release("outsider", Gaussian(4.0), clients=(1, 3))])
    answer = ledger.answer("outsider")
    assert (answer.unit, answer.adjacency, answer.delta) == ("user", "zero-out", DELTA)
    assert (answer.sampling, answer.bound, answer.worst) == ("poisson", "upper bound", 1)


@pytest.mark.parametrize(("clients", "delta"), [(0, DELTA), (5, 0.0), (5, 1.0), (5, math.nan)])
def test_impossible_ledgers_are_refused(clients, delta):
    with pytest.raises(BadInput, match="ledger: "):
        Ledger(clients, delta)


def test_the_budget_needs_prv_only_if_renyi_exceeds_it(monkeypatch):
    calls: list = []
    monkeypatch.setattr(worst_case, "epsilon_prv", recorded(epsilon_prv, calls))
    ledger = Ledger(N, DELTA)
    ledger.add([Release("outsider", Gaussian(1.0, 0.1, T), sampling="poisson")])  # 13.60 by Rényi, 12.41 of record
    assert not ledger.exceeds("outsider", 13.7) and not calls
    assert not ledger.exceeds("outsider", 13.0) and len(calls) == 1
    assert ledger.exceeds("outsider", 12.3)
    assert not ledger.exceeds("server", 0.1)


def test_budget_without_prv():
    ledger = Ledger(3, DELTA)
    ledger.add([Release("server", Gaussian(1.0))])
    exact = epsilon_exact(1.0, DELTA)
    assert ledger.exceeds("server", exact * 0.999) and not ledger.exceeds("server", exact * 1.001)
    assert ledger.with_releases([Release("server", NoNoise())]).exceeds("server", 1e9)
    assert ledger.exceeds("server", math.nan)


def test_equal_charges_of_other_clients_are_computed_once(monkeypatch):
    calls: list = []
    monkeypatch.setattr(worst_case, "epsilon_prv", recorded(epsilon_prv, calls))
    answers = []
    for client in (2, 4):
        ledger = Ledger(N, DELTA)
        ledger.add([Release("server", Gaussian(1.25, 0.07, 3), clients=(client,), sampling="poisson")])
        answers.append(ledger.answer("server", precise=True))
    assert [answer.worst for answer in answers] == [2, 4] and answers[0].value == answers[1].value
    assert len(calls) == 2, "the two tables hold the charge in different rows"
    ledger.add([Release("server", Gaussian(1.25, 0.07, 0), clients=(1,), sampling="poisson")])
    assert ledger.answer("server", precise=True) == answers[1] and len(calls) == 2
    assert ledger.answer("server").accountant == "rdp"


def test_with_releases_does_not_change_the_ledger():
    ledger = Ledger(6, DELTA)
    ledger.add(schedule(1, "client", observed=True))
    before = ledger.answers()
    more = [Release("client", Gaussian(0.5)), Release("server", Gaussian(1.0))]
    after = ledger.with_releases(more)
    assert ledger.answers() == before
    assert number(after.answer("client")) > number(before[0]) and len(after.answers()) == 2
    ledger.add(more)
    assert ledger.answers() == after.answers()


def rounds_of(clients: int, sampled: int, rounds: int) -> list[list[Release]]:
    rng = np.random.default_rng(0)
    releases = []
    for _ in range(rounds):
        drawn = rng.random(clients) < sampled / clients
        cohort = tuple(np.flatnonzero(drawn).tolist())
        others = tuple(np.flatnonzero(~drawn).tolist())
        size = max(2, len(cohort))
        releases.append(
            [
                Release("server", Gaussian(1 / math.sqrt(size)), cohort),
                Release("aggregate", Gaussian(1.0), cohort),
                Release("outsider", Gaussian(1.0, sampled / clients), sampling="poisson"),
                Release("client", Gaussian(math.sqrt(1 - 1 / size)), cohort, cohort),
                Release("client", Gaussian(1.0, sampled / clients), None, others, sampling="poisson"),
            ]
        )
    return releases


def test_adding_is_fast():
    rounds = rounds_of(100, 30, 300)
    best = math.inf
    for _ in range(5):
        ledger = Ledger(100, DELTA)
        start = time.process_time()
        for releases in rounds:
            ledger.add(releases)
        best = min(best, time.process_time() - start)
    assert best < 0.05
    assert {answer.view for answer in ledger.answers()} == {"server", "aggregate", "outsider", "client"}


def test_a_thousand_clients_take_little_memory():
    rounds = rounds_of(1000, 100, 30)
    tracemalloc.start()
    ledger = Ledger(1000, DELTA)
    for releases in rounds:
        ledger.add(releases)
    answers = ledger.answers(quantiles=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    assert [answer.bound for answer in answers] == [""] * 4
