"""Who is before whom, and whether that is the paper's order."""

from __future__ import annotations

import pytest

from engine.results.ranking import MethodScore, PaperOrder, lead, paper_order


def told(**both: tuple[float, float]) -> PaperOrder:
    """Every method by its accuracy here and in the paper, over one seed."""
    found = paper_order([MethodScore(label, {0: here}, there) for label, (here, there) in both.items()])
    assert found is not None
    return found


def test_one_alone_has_no_order() -> None:
    assert paper_order([]) is None and paper_order([MethodScore("a", {0: 0.5}, 0.5)]) is None


def test_the_paper_s_order_appears_only_where_every_pair_keeps_it() -> None:
    same = told(a=(0.1, 0.5), b=(0.2, 0.6), c=(0.3, 0.7))
    assert (same.pairs, same.kept, same.first, same.champion) == (3, 3, "c", "c")
    assert same.words().startswith("The paper's order appears, on one seed: 3 of 3 pairs stand as there. ")
    turned = told(a=(0.1, 0.5), b=(0.3, 0.6), c=(0.2, 0.7))
    assert (turned.kept, turned.first, turned.champion, turned.rival) == (2, "b", "c", "b")
    assert "does not appear, on one seed: 2 of 3 pairs" in turned.words()
    assert "c is 10.0 points behind b, in the paper 10.0 before b." in turned.words()


def test_a_tie_keeps_no_order() -> None:
    found = told(a=(0.2, 0.5), b=(0.2, 0.6))
    assert found.kept == 0 and "b is level with a, in the paper 10.0 before a" in found.words()


def test_what_the_paper_has_level_is_no_pair() -> None:
    found = told(a=(0.1, 0.5), b=(0.3, 0.6), c=(0.2, 0.6))
    assert (found.pairs, found.kept) == (2, 2)
    assert paper_order([MethodScore("a", {0: 0.1}, 0.5), MethodScore("b", {0: 0.2}, 0.5)]) is None


def test_one_seed_makes_nothing_clear() -> None:
    found = told(a=(0.1, 0.5), b=(0.9, 0.6))
    assert (found.kept, found.clearly_kept, found.clearly_turned) == (1, 0, 0)
    assert "±" not in found.words() and "spread" not in found.words()


def test_a_lead_is_taken_seed_by_seed_on_the_seeds_that_all_finished() -> None:
    steady = MethodScore("steady", {0: 0.50, 1: 0.70}, 0.6)
    behind = MethodScore("behind", {0: 0.48, 1: 0.68, 2: 0.90}, 0.5)
    gap, spread = lead(steady, behind, (0, 1))
    assert gap == pytest.approx(0.02) and spread == pytest.approx(0, abs=1e-12)
    found = paper_order([steady, behind])
    assert found is not None and (found.seeds, found.first) == (2, "steady")
    assert (found.clearly_kept, found.clearly_turned) == (1, 0)
    assert found.words().startswith("The paper's order appears: 1 of 1 pairs stand as there, 1 of them by more than")
    assert "steady is 2.0 ± 0.0 points before behind" in found.words()


def test_what_is_within_its_spread_is_not_clear() -> None:
    one, other = MethodScore("one", {0: 0.5, 1: 0.7}, 0.5), MethodScore("other", {0: 0.6, 1: 0.5}, 0.6)
    found = paper_order([one, other])
    assert found is not None and (found.kept, found.clearly_kept, found.clearly_turned) == (0, 0, 0)
    assert "0 of 1 pairs stand as there, 0 of them by more than the spread; 0 stand the other way" in found.words()
    kept = paper_order([MethodScore("one", one.accuracies, 0.6), MethodScore("other", other.accuracies, 0.5)])
    assert kept is not None and kept.words().startswith("The paper's order appears, partly within the spread: 1 of 1")


def test_methods_that_did_not_finish_are_counted_and_not_ranked() -> None:
    found = paper_order([MethodScore("a", {0: 0.1}, 0.5), MethodScore("b", {0: 0.2}, 0.6), MethodScore("c", {}, 0.7)])
    assert found is not None and (found.asked, found.methods, found.champion) == (3, 2, "b")
    assert found.words().startswith(
        "The paper's order appears, on one seed, of the 2 of 3 methods that finished: 1 of 1"
    )


def test_seeds_that_never_meet_are_not_compared() -> None:
    assert paper_order([MethodScore("a", {0: 0.5}, 0.1), MethodScore("b", {1: 0.2}, 0.2)]) is None
