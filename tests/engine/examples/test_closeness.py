"""The direction of each difference follows from stored pairs, from a paper, or is not known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.events import Judged
from engine.examples import closeness
from engine.examples.attacks import AttackExample, attack_examples
from engine.examples.closeness import RiskMove
from engine.examples.literature import LITERATURE
from engine.specs.run import RunSpec


def observed(view: str) -> AttackExample:
    """The stored attack on the unprotected run, as this observer sees it."""
    for example in attack_examples():
        part, run = example.spec["attack"], example.spec["run"]
        alone = example.spec["pictures"] == ["test-0"] and "upload" not in example.spec
        if part["name"] == "map" and run["method"]["name"] == "fedavg" and example.spec["view"] == view and alone:
            return example
    raise AssertionError(view)


def ending(example: AttackExample) -> Judged:
    return next(event for event in example.events if isinstance(event, Judged))


def with_ending(example: AttackExample, judged: Judged) -> AttackExample:
    events = tuple(judged if isinstance(event, Judged) else event for event in example.events)
    return replace(example, events=events)


def move(examples: list[AttackExample], choice: str, old: str, new: str) -> RiskMove:
    moves = closeness.moves(closeness.stored_uploads(examples))
    return next(each for each in moves if (each.choice, each.old, each.new) == (choice, old, new))


def test_a_direction_flips_with_the_verdicts_of_its_pair() -> None:
    single, summed = observed("server"), observed("aggregate")
    change = move([single, summed], "aggregation", "no", "yes")
    assert (change.direction, change.pairs, change.ids) == ("less", 1, ((single.id, summed.id),))
    swapped = [with_ending(single, ending(summed)), with_ending(summed, ending(single))]
    assert move(swapped, "aggregation", "no", "yes").direction == "more"
    equal = [single, with_ending(summed, ending(single))]
    assert move(equal, "aggregation", "no", "yes").direction == "same"


def test_pairs_that_disagree_are_mixed() -> None:
    both = RiskMove("noise", "none", "client", more=1, less=2)
    assert both.direction == "mixed" and both.pairs == 3


def test_every_stored_pair_differs_in_one_choice_only() -> None:
    by_id = {id: upload for upload in closeness.shipped_uploads() for id in upload.ids}
    counted = 0
    for change in closeness.shipped_moves():
        assert len(change.ids) == change.pairs
        for before, after in change.ids:
            first, second = by_id[before], by_id[after]
            assert first.choices.differences(second.choices) == (change.choice,)
            same_method = first.run["method"] == second.run["method"]
            assert same_method or change.choice == "noise"
            counted += 1
    assert counted > 100


def test_what_no_pair_measures_is_cited_or_unknown() -> None:
    for change in closeness.shipped_moves():
        if change.pairs == 0:
            cited = change.cited
            assert change.direction == (cited.direction if cited else "unknown")
            assert cited is None or "arXiv" in cited.citation


def test_a_paper_is_cited_only_where_no_pair_was_measured() -> None:
    measured = {(each.choice, each.old, each.new) for each in closeness.shipped_moves() if each.pairs}
    assert not measured & set(LITERATURE)


def test_papers_give_a_change_and_its_reverse_opposite_directions() -> None:
    opposite = {"more": "less", "less": "more", "same": "same"}
    for (choice, old, new), cited in LITERATURE.items():
        assert LITERATURE[choice, new, old].direction == opposite[cited.direction]


@pytest.mark.parametrize(
    ("change", "direction"),
    [
        (("steps", "one", "several"), "less"),  # harder from several local steps
        (("trained", "first", "later"), "less"),  # attacks recover most early in training
        (("noise", "client", "shared"), "more"),  # the server meets only a part of the noise
        (("noise", "client", "server"), "more"),  # its own view has none
        (("noise", "none", "server"), "same"),
    ],
)
def test_a_cited_direction_is_that_of_its_claim(change: tuple[str, str, str], direction: str) -> None:
    assert LITERATURE[change].direction == direction


def test_the_choices_of_a_run_are_those_of_its_ordinary_upload() -> None:
    shared = closeness.choices_of_run(RunSpec(method="udp-fedavg", rounds=3))
    assert shared.values == ("many", "several", "honest", "no", "shared", "later")
    single = closeness.choices_of_run(RunSpec(method="fedsgd", rounds=1))
    assert (single.steps, single.noise, single.trained) == ("one", "none", "first")
