"""The ranking of methods, compared with the paper's."""

from __future__ import annotations

import pytest

from engine.results.ranking import MethodScore, PaperOrder, lead, paper_order


def ranked(**accuracies: tuple[float, float]) -> PaperOrder:
    """The order of methods on one seed, each with its accuracy here and in the paper."""
    order = paper_order([MethodScore(label, {0: ours}, reported) for label, (ours, reported) in accuracies.items()])
    assert order is not None
    return order


def test_one_method_has_no_order() -> None:
    assert paper_order([]) is None and paper_order([MethodScore("a", {0: 0.5}, 0.5)]) is None


def test_the_order_appears_only_if_every_pair_keeps_it() -> None:
    same = ranked(a=(0.1, 0.5), b=(0.2, 0.6), c=(0.3, 0.7))
    assert (same.pairs, same.kept, same.first, same.champion) == (3, 3, "c", "c")
    assert same.words().startswith("The paper's order appears, on one seed: 3 of 3 pairs are in the paper's order. ")
    turned = ranked(a=(0.1, 0.5), b=(0.3, 0.6), c=(0.2, 0.7))
    assert (turned.kept, turned.first, turned.champion, turned.rival) == (2, "b", "c", "b")
    assert "does not appear, on one seed: 2 of 3 pairs" in turned.words()
    assert "c is 10.0 points behind b, in the paper 10.0 before b." in turned.words()


def test_a_tie_does_not_keep_the_order() -> None:
    order = ranked(a=(0.2, 0.5), b=(0.2, 0.6))
    assert order.kept == 0 and "b is level with a, in the paper 10.0 before a" in order.words()


def test_equal_accuracies_in_the_paper_are_not_a_pair() -> None:
    order = ranked(a=(0.1, 0.5), b=(0.3, 0.6), c=(0.2, 0.6))
    assert (order.pairs, order.kept) == (2, 2)
    assert paper_order([MethodScore("a", {0: 0.1}, 0.5), MethodScore("b", {0: 0.2}, 0.5)]) is None


def test_on_one_seed_no_lead_is_clear() -> None:
    order = ranked(a=(0.1, 0.5), b=(0.9, 0.6))
    assert (order.kept, order.clearly_kept, order.clearly_turned) == (1, 0, 0)
    assert "±" not in order.words() and "spread" not in order.words()


def test_a_lead_is_taken_seed_by_seed_on_the_common_seeds() -> None:
    steady = MethodScore("steady", {0: 0.50, 1: 0.70}, 0.6)
    behind = MethodScore("behind", {0: 0.48, 1: 0.68, 2: 0.90}, 0.5)
    gap, spread = lead(steady, behind, (0, 1))
    assert gap == pytest.approx(0.02) and spread == pytest.approx(0, abs=1e-12)
    order = paper_order([steady, behind])
    assert order is not None and (order.seeds, order.first) == (2, "steady")
    assert (order.clearly_kept, order.clearly_turned) == (1, 0)
    assert order.words().startswith(
        "The paper's order appears: 1 of 1 pairs are in the paper's order, 1 of them by more than"
    )
    assert "steady is 2.0 ± 0.0 points before behind" in order.words()


def test_a_lead_within_its_spread_is_not_clear() -> None:
    low = MethodScore("low", {0: 0.5, 1: 0.7}, 0.5)
    high = MethodScore("high", {0: 0.6, 1: 0.5}, 0.6)
    order = paper_order([low, high])
    assert order is not None and (order.kept, order.clearly_kept, order.clearly_turned) == (0, 0, 0)
    assert (
        "0 of 1 pairs are in the paper's order, 0 of them by more than the spread; 0 are in the opposite order"
        in order.words()
    )
    kept = paper_order([MethodScore("low", low.accuracies, 0.6), MethodScore("high", high.accuracies, 0.5)])
    assert kept is not None and kept.words().startswith("The paper's order appears, partly within the spread: 1 of 1")


def test_methods_that_did_not_finish_are_counted_and_not_ranked() -> None:
    order = paper_order([MethodScore("a", {0: 0.1}, 0.5), MethodScore("b", {0: 0.2}, 0.6), MethodScore("c", {}, 0.7)])
    assert order is not None and (order.asked, order.methods, order.champion) == (3, 2, "b")
    assert order.words().startswith(
        "The paper's order appears, on one seed, of the 2 of 3 methods that finished: 1 of 1"
    )


def test_methods_without_a_common_seed_are_not_compared() -> None:
    assert paper_order([MethodScore("a", {0: 0.5}, 0.1), MethodScore("b", {1: 0.2}, 0.2)]) is None
