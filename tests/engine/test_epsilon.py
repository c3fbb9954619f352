"""An ε never loses its terms on the way from the ledger to a report."""

from __future__ import annotations

from dataclasses import replace

from engine.epsilon import NO_EPSILON, Epsilon, of_report
from engine.events import Finished, Spent, Started
from engine.results.report import report

FULL = Epsilon(4.19, "outsider", "user", "zero-out", 1e-5, "prv", "poisson", "upper bound", "", 3, (1.0, 2.0, 4.19))
NONE = Epsilon(None, "server", "user", "zero-out", 1e-5, "none", "all", reason="it leaves without noise")


def test_the_event_of_an_epsilon_keeps_every_term() -> None:
    for epsilon in (FULL, NONE):
        assert Spent.of(7, epsilon).round == 7 and Spent.of(7, epsilon).total == epsilon


def test_flat_json_keeps_the_number_and_its_terms() -> None:
    assert Epsilon.from_json("server", NONE.json()) == NONE
    assert FULL.json().keys() == NO_EPSILON.keys()
    assert Epsilon.from_json("outsider", FULL.json()) == replace(FULL, worst=None, quantiles=())


def test_the_report_of_a_run_holds_the_terms_of_every_view() -> None:
    facts = {
        "unit": "user",
        "delta": 1e-5,
        "guarantee": {"status": "formal", "reason": "", "absent": {"client": "one"}},
    }
    body = report([Started("a", {}, facts), Spent.of(1, FULL), Spent.of(1, NONE), Finished(1, 0.1)])
    by_view = of_report(body)
    assert by_view["outsider"].sentence() == FULL.sentence()
    assert by_view["server"] == NONE
    assert (by_view["client"].value, by_view["client"].reason) == (None, "one")
