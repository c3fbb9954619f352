"""The question of the Leak screen: its link, its columns, and the attacks it asks for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.screens.leak import settings as leak_settings
from app.screens.leak.settings import LeakSettings
from app.session import links, run_settings
from app.texts import attacks as attack_texts
from engine.leakage.compatibility import problem
from engine.specs import attack_grid
from engine.specs.attack import AttackSpec
from engine.specs.attack_grid import NONE, OF_RUN
from engine.specs.run import RunSpec


@pytest.fixture
def usual() -> LeakSettings:
    return leak_settings.usual()


def test_a_link_holds_everything(usual: LeakSettings) -> None:
    asked = replace(
        usual, whose="test-3", many=2, eyes="client", when="last", against=(NONE, "dp-fedavg:1"), attacks=("map",),
        restarts=3, iterations=40, chance=7, run={**usual.run, "epochs": 5, "model": "lenet5"},
    )  # fmt: skip
    asked = leak_settings.settled(asked)
    assert leak_settings.read_link(leak_settings.link(asked)) == (asked, [])
    assert leak_settings.read_link({}) == (usual, [])


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("whose", "cat.png", "whose = cat.png cannot be meant"),
        ("many", "9", "many = 9 cannot be meant"),
        ("many", "-1", "many = -1 cannot be meant"),
        ("eyes", "god", "eyes = god cannot be meant"),
        ("when", "yesterday", "when = yesterday cannot be meant"),
        ("against", "none,magic:1", "There is no protection magic:1 here"),
        ("against", "udp-fedavg:loud", "There is no protection udp-fedavg:loud here"),
        ("attacks", "map,hope", "There is no attack hope here"),
        ("restarts", "1000000", "restarts = 1000000 cannot be meant"),
        ("model", "brain", "There is no model brain here"),
        ("weather", "fine", "knows no setting weather"),
    ],
)
def test_nonsense_has_its_sentence(usual: LeakSettings, name: str, value: str, said: str) -> None:
    found, told = leak_settings.read_link({**leak_settings.link(usual), name: value})
    assert len(told) == 1 and said in told[0]
    assert leak_settings.cells(found)


def test_too_many_columns_are_cut(usual: LeakSettings) -> None:
    many = ",".join(f"udp-fedavg:{level}" for level in range(1, 20))
    found, told = leak_settings.read_link({**leak_settings.link(usual), "against": many})
    assert len(found.against) == leak_settings.MOST_COLUMNS and "at most" in told[0]


def test_a_round_may_be_named_by_its_number(usual: LeakSettings) -> None:
    found, told = leak_settings.read_link({**leak_settings.link(usual), "when": "3"})
    asked = leak_settings.cells(found)[0].spec
    assert not told and asked is not None and asked.round == 3


def test_the_control_is_always_there(usual: LeakSettings) -> None:
    shown = leak_settings.columns(replace(usual, against=("udp-fedavg:0.1",)))
    assert [one.key for one in shown] == [NONE, "udp-fedavg:0.1"]
    assert shown[0].spec.method.unit() is None
    assert shown[1].spec.method.noise == 0.1 and shown[1].spec.method.noise_split == "full-local"  # type: ignore[attr-defined]


def test_two_names_of_one_run_are_one_column(usual: LeakSettings) -> None:
    shown = leak_settings.columns(replace(usual, against=(NONE, OF_RUN, "fedavg", "udp-fedavg:1", "udp-fedavg:1.0")))
    assert [one.key for one in shown] == [NONE, "udp-fedavg:1"]


def test_only_the_protection_differs_between_columns(usual: LeakSettings) -> None:
    bare = [{**one.spec.canonical(), "method": ""} for one in leak_settings.columns(usual)]
    assert len(bare) == len(links.AGAINST) and all(one == bare[0] for one in bare)


def test_equal_questions_are_equal_attacks(usual: LeakSettings) -> None:
    fewer = replace(usual, against=(NONE, "udp-fedavg:0.001"), attacks=("map",))
    ids = {one.id for one in leak_settings.cells(usual)}
    assert {one.id for one in leak_settings.cells(fewer)} < ids
    other = replace(fewer, whose="test-1")
    assert not {one.id for one in leak_settings.cells(other)} & ids


def test_neighbours_come_in_the_same_upload(usual: LeakSettings) -> None:
    assert replace(usual, whose="test-3", many=3).pictures == ("test-3", "test-4", "test-5")
    own = "own-0123456789abcdef-2"
    assert replace(usual, whose=own, many=2).pictures == (own, "test-0")


def test_what_answers_at_once_comes_first_then_the_control(usual: LeakSettings) -> None:
    asked = leak_settings.in_order(leak_settings.cells(usual))
    order = [(one.attack, one.column) for one in asked]
    many = len(leak_settings.columns(usual))
    assert {attack for attack, _ in order[:many]} == {"analytic"}
    assert {column for _, column in order[many : many + 2]} == {NONE}
    assert len(order) == len(set(order)) == len(leak_settings.cells(usual))


def test_iterations_are_asked_of_searches_only(usual: LeakSettings) -> None:
    found = {one.attack: one.spec for one in leak_settings.cells(replace(usual, iterations=20))}
    assert found["map"] and found["map"].attack.iterations == 20  # type: ignore[attr-defined]
    assert found["analytic"] and "iterations" not in type(found["analytic"].attack).model_fields


def test_the_default_grid_fits_its_model() -> None:
    asked = leak_settings.default_cells()
    assert len(asked) >= 8 and len({one.id for one in asked}) == len(asked)
    assert asked[0].run.method.unit() is None
    assert all(problem(one) is None for one in asked)


def test_what_the_server_sees_of_a_run_is_that_run() -> None:
    spec = RunSpec(method="udp-fedavg", rounds=7, model="lenet5")
    found, told = leak_settings.read_link(links.leak_link_of_run(spec.canonical()))
    keys = {one.key: one.spec.id for one in leak_settings.columns(found)}
    twin = run_settings.baseline_of(spec)
    assert not told and twin and keys == {NONE: twin.id, OF_RUN: spec.id}


def test_an_undefended_run_is_shown_beside_protections() -> None:
    found, _ = leak_settings.read_link(links.leak_link_of_run(RunSpec(rounds=7).canonical()))
    assert [one.key for one in leak_settings.columns(found)] == list(links.AGAINST)


@pytest.mark.parametrize("method", ["fedavg", {"name": "udp-fedavg", "noise": 0.1, "noise-split": "full-local"}])
def test_an_attack_of_the_list_opens_as_itself(method: str | dict[str, object]) -> None:
    run = RunSpec(method=method, model="lenet5", rounds=5)
    spec = AttackSpec(run=run, attack={"name": "map", "iterations": 30}, pictures=("test-4", "test-5"), restarts=2)
    found, told = leak_settings.read_link(links.leak_link_of_attack(spec.canonical()))
    assert not told and spec.id in {one.id for one in leak_settings.cells(found)}


def test_old_links_are_told_from_new_ones(usual: LeakSettings) -> None:
    assert leak_settings.elsewhere({"method": "udp-fedavg"}) and leak_settings.elsewhere({"run": "0123456789ab"})
    assert not leak_settings.elsewhere({}) and not leak_settings.elsewhere(leak_settings.link(usual))


def test_titles_before_the_shelves_are_loaded_are_the_real_ones() -> None:
    for name, title in attack_texts.TITLES.items():
        found = (
            run_settings.attack_title(name)
            if name in run_settings.attack_names()
            else run_settings.part_class("method", name).title
        )
        assert title == found
    assert set(leak_settings.ATTACKS) | {attack_grid.NOISY} == set(attack_texts.TITLES)


def test_a_column_has_its_name_before_the_shelves_are_loaded(usual: LeakSettings) -> None:
    for one in leak_settings.columns(usual):
        assert leak_settings.key_of(one.spec.canonical()["method"]) == one.key
