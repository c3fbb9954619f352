"""The attacks behind the grid: the same attacks as those of the grid, and questions that do not reveal the answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from engine.specs import attack_series
from engine.specs.attack_grid import NONE, AttackGrid
from engine.specs.attack_series import CHOICES, SET, SHOWN, VIEWS
from engine.specs.run import RunSpec

LABELS = [place % 10 for place in range(200)]
NOISY = ("udp-fedavg:0.1", "udp-fedavg:1")


@pytest.fixture
def grid() -> AttackGrid:
    run = RunSpec(method="fedavg", model={"name": "mlp", "bias": True}, dataset="cifar10", clients=10, sampled=10)
    return AttackGrid(run, NOISY, ("analytic", "map"), iterations=3)


# --- noises and observers ----------------------------------------------------------------------------------


def test_the_series_of_noises_has_the_attacks_of_the_grid(grid: AttackGrid) -> None:
    series = attack_series.cliff_grid(grid, (0.01, 0.1))
    assert tuple(series.runs()) == (NONE, "udp-fedavg:0.01", "udp-fedavg:0.1")
    shared = {request.id for request in grid.requests() if request.column in (NONE, "udp-fedavg:0.1")}
    assert len(shared) == 4 and shared < {request.id for request in series.requests()}


@pytest.mark.parametrize("column", [NONE, "udp-fedavg:1", "udp-fedavg@8"])
def test_the_ladder_differs_in_the_view_alone(grid: AttackGrid, column: str) -> None:
    grid = replace(grid, columns=(*NOISY, "udp-fedavg@8"))
    requests = attack_series.ladder_requests(grid, column, "map")
    assert {request.spec.run for request in requests if request.spec} == {grid.runs()[column]}  # the noise stays
    assert [request.spec.view for request in requests if request.spec] == list(VIEWS)
    assert {(request.column, request.attack) for request in requests} == {(column, "map")}
    of_grid = {(request.column, request.attack): request.id for request in grid.requests()}
    assert requests[VIEWS.index("server")].id == of_grid[column, "map"]


def test_the_attack_that_uses_the_noise_level_is_preferred() -> None:
    assert attack_series.main_attack(("analytic", "map")) == "map"
    assert attack_series.main_attack(("analytic", "look")) == "analytic"


# --- the blind test ----------------------------------------------------------------------------------------


def test_decoys_show_the_same_class() -> None:
    names = attack_series.choices("test-23", LABELS, "seed")
    assert len(set(names)) == CHOICES and "test-23" in names
    assert {LABELS[int(name[5:])] for name in names} == {3}
    assert names == attack_series.choices("test-23", LABELS, "seed") != attack_series.choices("test-23", LABELS, "x")


def test_a_small_class_is_filled_up() -> None:
    names = attack_series.choices("test-0", [7, 7, *[1] * 20], "seed")
    assert {"test-0", "test-1"} < set(names) and len(set(names)) == CHOICES


def test_the_place_of_the_original_is_random() -> None:
    places = Counter(attack_series.choices(f"test-{at}", LABELS, "seed").index(f"test-{at}") for at in range(200))
    assert set(places) == set(range(CHOICES)) and max(places.values()) < 60


def test_no_original_is_shown_on_the_page_and_sets_do_not_repeat(grid: AttackGrid) -> None:
    shown = replace(grid, pictures=("test-50",))
    sets = [attack_series.originals(shown, number, 100) for number in range(5)]
    names = [name for originals in sets for name in originals]
    assert len(set(names)) == len(names) == 5 * SET
    assert "test-50" not in names and all(SHOWN <= int(name[5:]) < 100 for name in names)


def test_no_original_is_offered_next_to_a_chosen_picture(grid: AttackGrid) -> None:
    chosen = replace(grid, pictures=("test-264",))
    offered = {f"test-{264 - SHOWN // 2 + offset}" for offset in range(SHOWN)}
    for number in range(40):
        assert not {*attack_series.originals(chosen, number, 500)} & offered


def test_half_of_a_set_is_without_protection_and_the_order_does_not_show_which(grid: AttackGrid) -> None:
    questions = attack_series.questions(grid, "map", 0)
    assert Counter(question.protected for question in questions) == {True: 4, False: 4}
    assert Counter(question.request.column for question in questions) == {NONE: 4, NOISY[0]: 2, NOISY[1]: 2}
    order = [question.protected for question in questions]
    assert order not in (sorted(order), sorted(order, reverse=True))
    baseline_only = attack_series.questions(replace(grid, columns=()), "map", 0)
    assert not any(question.protected for question in baseline_only) and len(baseline_only) == SET


def test_a_question_attacks_its_original_among_pictures_of_the_first_half(grid: AttackGrid) -> None:
    labels = attack_series.public_labels(grid)
    for question in attack_series.questions(replace(grid, pictures=("test-0", "test-1")), "map", 3):
        place = int(question.name[5:])
        assert question.request.spec and question.request.spec.pictures == (question.name, f"test-{place + 1}")
        assert place + 1 < len(labels) and all(int(name[5:]) < len(labels) for name in question.choices)
        assert question.choices[question.truth] == question.name


def test_questions_follow_from_the_settings_and_not_from_the_picture_or_from_how_a_grid_is_written(
    grid: AttackGrid,
) -> None:
    questions = attack_series.questions(grid, "map", 0)
    assert questions == attack_series.questions(replace(grid, pictures=("test-5",)), "map", 0)
    assert questions == attack_series.questions(replace(grid, columns=(NONE, *NOISY)), "map", 0)
    assert questions != attack_series.questions(replace(grid, seed=1), "map", 0)
    assert questions != attack_series.questions(grid, "map", 1)
