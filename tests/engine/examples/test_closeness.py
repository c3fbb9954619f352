"""The direction of each difference follows from stored pairs, from a paper, or is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from engine.events import Judged
from engine.examples import closeness
from engine.examples.attacks import AttackExample, attack_examples
from engine.examples.closeness import MeasuredUpload, RiskMove
from engine.examples.literature import LITERATURE
from engine.results.attack_summary import AttackCell, AttackEvents, collect_cell
from engine.results.verdict import Verdict, rank
from engine.specs.attack_grid import RequestedAttack
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
    return move_of(closeness.stored_uploads(examples), choice, old, new)


def move_of(uploads: Sequence[MeasuredUpload], choice: str, old: str, new: str) -> RiskMove:
    moves = closeness.moves(uploads)
    return next(each for each in moves if (each.choice, each.old, each.new) == (choice, old, new))


def method_without_noise(run: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in run["method"].items() if name not in ("noise", "noise-split")}


def ordinary_cell(works: bool, more_in_others: bool) -> AttackCell:
    """A stored attack on an ordinary upload in which another picture came back better than the chosen one, or not."""
    for example in (example for examples in closeness.SHIPPED for example in examples()):
        request = RequestedAttack("", str(example.spec["attack"]["name"]), None)
        cell = collect_cell(request, AttackEvents("stored", example.events))
        if cell.judged is None or not cell.ordinary or cell.works != works:
            continue
        best = max(rank(cell.verdict(place)) for place in cell.judged.places)
        if more_in_others == (best > rank(cell.best_verdict)):
            return cell
    raise AssertionError(works, more_in_others)


def upload(verdict: Verdict, run: Mapping[str, Any], noise: str, **changes: str) -> MeasuredUpload:
    """An upload with one attack that gave this verdict away."""
    single = closeness.stored_uploads([observed("server")])[0]
    outcome = replace(single.attacks[0], id=f"{noise}-{verdict}", verdict=verdict)
    choices = replace(single.choices, noise=noise, **changes)
    return replace(single, choices=choices, run={**single.run, **run}, attacks=(outcome,))


UDP = {"name": "udp-fedavg", "server-step": 1.0, "noise": 0.0, "clip": 1.0, "noise-split": "full-local"}


@pytest.mark.parametrize(
    ("changes", "pairs"),
    [
        ({"noise": 0.1}, 1),
        ({"noise": 0.1, "server-step": 0.1}, 0),
        ({"noise": 0.1, "clip": 2.0}, 0),
        ({"noise": 0.1, "name": "dp-fedavg"}, 0),
    ],
)
def test_a_pair_without_and_with_noise_is_of_one_method_and_server_step(changes: dict[str, Any], pairs: int) -> None:
    without = upload("comes back", {"method": UDP}, "none")
    noisy = upload("not recognised", {"method": {**UDP, **changes}}, "client")
    change = move_of([without, noisy], "noise", "none", "client")
    assert change.pairs == pairs
    assert change.direction == ("less" if pairs else "unknown")


def test_a_pair_with_noise_at_two_places_has_equal_noise() -> None:
    at_clients = upload("comes back", {"method": {**UDP, "noise": 0.1}}, "client")
    for noise, pairs in ((0.1, 1), (0.2, 0)):
        method = {**UDP, "noise": noise, "noise-split": "paper"}
        shared = upload("not recognised", {"method": method}, "shared")
        assert move_of([at_clients, shared], "noise", "client", "shared").pairs == pairs


def test_a_server_that_changes_the_model_cheats() -> None:
    spec = observed("server").spec
    assert closeness.choices_of(spec, {}).server == "honest"
    assert closeness.choices_of(spec, {"tampered": True}).server == "cheats"
    assert closeness.choices_of({**spec, "upload": "cheat"}, {}).server == "cheats"


@pytest.mark.parametrize("view", ["client", "outsider"])
def test_what_other_participants_and_outsiders_see_is_left_out(view: str) -> None:
    example = observed("server")
    seen = replace(example, spec={**example.spec, "view": view})
    assert closeness.stored_uploads([seen]) == ()
    assert closeness.stored_uploads([seen, example]) == closeness.stored_uploads([example])


def test_another_picture_of_an_ordinary_upload_counts_only_if_more_than_chance_come_back() -> None:
    working = ordinary_cell(works=True, more_in_others=True)
    assert working.judged is not None
    best = max(rank(working.verdict(place)) for place in working.judged.places)
    assert rank(closeness.given_away(working)) == best > rank(working.best_verdict)
    by_chance = ordinary_cell(works=False, more_in_others=True)
    assert closeness.given_away(by_chance) == by_chance.best_verdict


def test_a_pair_is_of_the_best_attacks_on_both_uploads() -> None:
    strong, weak = upload("comes back", {"method": UDP}, "none"), upload("not recognised", {"method": UDP}, "none")
    attacks = (replace(strong.attacks[0], key="first"), replace(weak.attacks[0], key="second"))
    for ordered in (attacks, attacks[::-1]):
        without = replace(strong, attacks=ordered)
        noisy = upload("outlines come back", {"method": {**UDP, "noise": 0.1}}, "client")
        same = tuple(replace(noisy.attacks[0], key=attack.key) for attack in attacks)
        change = move_of([without, replace(noisy, attacks=same)], "noise", "none", "client")
        assert change.direction == "less" and change.ids[0][0] == strong.ids[0]


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
            differing = {name for name in first.run if first.run[name] != second.run.get(name)}
            assert differing <= {"noise": {"format", "method"}, "steps": {"epochs"}}.get(change.choice, set())
            assert method_without_noise(first.run) == method_without_noise(second.run)
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
