"""The settings of the Leak screen: its link, its columns and its attacks."""

from __future__ import annotations

import pytest

from app.screens.leak import columns as leak_columns
from app.screens.leak import settings as leak_settings
from app.screens.leak.settings import LeakSettings
from app.session import links, run_settings
from app.texts import attacks as attack_texts
from engine.leakage.compatibility import problem
from engine.specs import attack_grid
from engine.specs.attack import AttackSpec
from engine.specs.attack_grid import NONE, OF_RUN
from engine.specs.run import RunSpec
from tests.app.screens.leak.makers import default_cells


@pytest.fixture
def default() -> LeakSettings:
    return LeakSettings.default()


def test_a_link_holds_everything(default: LeakSettings) -> None:
    leak = default.with_(
        whose="test-3", many=2, eyes="client", when="last", against=(NONE, "dp-fedavg:1"), attacks=("map",),
        restarts=3, iterations=40, chance=7, run={**default.run, "epochs": 5, "model": "lenet5"},
    )  # fmt: skip
    leak = leak.settled()
    assert LeakSettings.read_link(leak.link(), default) == (leak, [])
    assert LeakSettings.read_link({}, default) == (default, [])


@pytest.mark.parametrize(
    ("name", "value", "note"),
    [
        ("whose", "cat.png", "whose = cat.png. It must be"),
        ("many", "9", "many = 9. It must be a whole number between 1 and 8"),
        ("many", "-1", "many = -1. It must be"),
        ("eyes", "god", "eyes = god. It must be one of server"),
        ("when", "yesterday", "when = yesterday. It must be"),
        ("against", "none,magic:1", "magic:1 under against. It must be none, run, a method"),
        ("against", "udp-fedavg:loud", "against = udp-fedavg:loud. It must be none, run, a method"),
        ("against", "udp-fedavg@0", "against = udp-fedavg@0. It must be none, run, a method"),
        ("against", "none,udp-fedavg:nan", "udp-fedavg:nan under against. It must be none, run, a method"),
        ("attacks", "map,hope", "names hope under attacks"),
        ("attacks", "hope", "attacks = hope. It must have at least one name that this version knows"),
        ("restarts", "1000000", "restarts = 1000000. It must be"),
        ("model", "brain", "names the model brain"),
        ("weather", "fine", "has a setting weather"),
    ],
)
def test_each_invalid_value_has_a_note(default: LeakSettings, name: str, value: str, note: str) -> None:
    leak, notes = LeakSettings.read_link({**default.link(), name: value}, LeakSettings.default())
    assert len(notes) == 1 and note in notes[0]
    assert leak.grid.requests()


def test_too_many_columns_are_cut(default: LeakSettings) -> None:
    columns = ",".join(f"udp-fedavg:{level}" for level in range(1, 20))
    leak, notes = LeakSettings.read_link({**default.link(), "against": columns}, LeakSettings.default())
    assert len(leak.against) == leak_settings.MOST_COLUMNS and "at most" in notes[0]


def test_a_round_can_be_a_number(default: LeakSettings) -> None:
    leak, notes = LeakSettings.read_link({**default.link(), "when": "3"}, LeakSettings.default())
    spec = leak.grid.requests()[0].spec
    assert not notes and spec is not None and spec.round == 3


def test_the_baseline_is_always_shown(default: LeakSettings) -> None:
    columns = leak_columns.columns(default.with_(against=("udp-fedavg:0.1",)))
    assert [column.key for column in columns] == [NONE, "udp-fedavg:0.1"]
    assert columns[0].spec.method.unit() is None
    assert columns[1].spec.method.noise == 0.1 and columns[1].spec.method.noise_split == "full-local"  # type: ignore[attr-defined]


def test_two_keys_of_one_run_make_one_column(default: LeakSettings) -> None:
    columns = leak_columns.columns(default.with_(against=(NONE, OF_RUN, "fedavg", "udp-fedavg:1", "udp-fedavg:1.0")))
    assert [column.key for column in columns] == [NONE, "udp-fedavg:1"]


def test_only_the_protection_differs_between_columns(default: LeakSettings) -> None:
    runs = [{**column.spec.identity(), "method": ""} for column in leak_columns.columns(default)]
    assert len(runs) == len(links.AGAINST) and all(run == runs[0] for run in runs)


def test_equal_cells_are_equal_attacks(default: LeakSettings) -> None:
    fewer = default.with_(against=(NONE, "udp-fedavg:0.01"), attacks=("map",))
    ids = {cell.id for cell in default.grid.requests()}
    assert {cell.id for cell in fewer.grid.requests()} < ids
    other_picture = fewer.with_(whose="test-1")
    assert not {cell.id for cell in other_picture.grid.requests()} & ids


def test_neighbours_fill_the_same_upload(default: LeakSettings) -> None:
    assert default.with_(whose="test-3", many=3).pictures == ("test-3", "test-4", "test-5")
    own = "own-0123456789abcdef-2"
    assert default.with_(whose=own, many=2).pictures == (own, "test-0")


def test_attacks_without_a_search_come_first_then_the_baseline(default: LeakSettings) -> None:
    requests = attack_grid.in_order(default.grid.requests())
    order = [(request.attack, request.column) for request in requests]
    count = len(leak_columns.columns(default))
    assert {attack for attack, _ in order[:count]} == {"analytic"}
    assert {column for _, column in order[count : count + 2]} == {NONE}
    assert len(order) == len(set(order)) == len(default.grid.requests())


def test_only_searches_take_iterations(default: LeakSettings) -> None:
    specs = {cell.attack: cell.spec for cell in default.with_(iterations=20).grid.requests()}
    assert specs["map"] and specs["map"].attack.iterations == 20  # type: ignore[attr-defined]
    assert specs["analytic"] and "iterations" not in type(specs["analytic"].attack).model_fields


def test_the_default_grid_fits_its_model() -> None:
    specs = default_cells()
    assert len(specs) >= 8 and len({spec.id for spec in specs}) == len(specs)
    assert specs[0].run.method.unit() is None
    assert all(problem(spec) is None for spec in specs)


def test_a_link_to_the_view_of_the_server_opens_that_run() -> None:
    spec = RunSpec(method="udp-fedavg", rounds=7, model="lenet5")
    leak, notes = LeakSettings.read_link(links.leak_link_of_run(spec.canonical()), LeakSettings.default())
    runs = {column.key: column.spec.id for column in leak_columns.columns(leak)}
    baseline = attack_grid.baseline_of(spec)
    assert not notes and baseline and runs == {NONE: baseline.id, OF_RUN: spec.id}


def test_a_baseline_run_is_shown_next_to_protections() -> None:
    leak, _ = LeakSettings.read_link(links.leak_link_of_run(RunSpec(rounds=7).canonical()), LeakSettings.default())
    assert [column.key for column in leak_columns.columns(leak)] == list(links.AGAINST)


@pytest.mark.parametrize("method", ["fedavg", {"name": "udp-fedavg", "noise": 0.1, "noise-split": "full-local"}])
def test_a_listed_attack_opens_as_itself(method: str | dict[str, object]) -> None:
    run = RunSpec(method=method, model="lenet5", rounds=5)
    spec = AttackSpec(run=run, attack={"name": "map", "iterations": 30}, pictures=("test-4", "test-5"), restarts=2)
    leak, notes = LeakSettings.read_link(links.leak_link_of_attack(spec.canonical()), LeakSettings.default())
    assert not notes and spec.id in {cell.id for cell in leak.grid.requests()}


def test_titles_before_the_shelves_are_loaded_are_those_of_the_parts() -> None:
    for name, title in attack_texts.TITLES.items():
        if name in run_settings.attack_names():
            assert title == run_settings.attack_title(name)
        else:
            assert title == run_settings.part_class("method", name).title
    assert set(leak_settings.ATTACKS) | {attack_grid.NOISY} == set(attack_texts.TITLES)


def test_a_column_has_its_key_before_the_shelves_are_loaded(default: LeakSettings) -> None:
    for column in leak_columns.columns(default):
        assert leak_settings.key_of(column.spec.canonical()["method"]) == column.key


def test_a_link_to_a_server_that_cheats_has_the_attacks_that_can_read_it() -> None:
    assert LeakSettings.read_link({"upload": "cheat"}, LeakSettings.default())[0].attacks == ("imprint",)
    assert LeakSettings.read_link({"upload": "ordinary"}, LeakSettings.default())[0].attacks == leak_settings.ATTACKS
    assert leak_settings.fitting_attacks("ordinary", ("imprint", "map")) == ("map",)
    unknown, notes = LeakSettings.read_link({"upload": "cheat", "attacks": "foo"}, LeakSettings.default())
    assert unknown.attacks == ("imprint",) and len(notes) == 1
