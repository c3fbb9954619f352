"""The tables of papers: every cell is a spec that can run, and it agrees with the words of its row."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from engine.cli.arguments import read_spec
from engine.cli.main import parser
from engine.errors import Damaged, MissingData, UnknownName
from engine.specs import paper_tables
from engine.specs.paper_tables import READINGS, SCALES, cells, table
from engine.specs.presets import cell_names, cell_preset
from engine.specs.run import RunSpec
from tests.engine.makers import run_command

FILE = paper_tables.FILES / "fedceo.toml"
SHIPS = {"fashion-mnist", "cifar10", "movie-reviews"}
CELLS = {cell.name: cell for cell in paper_tables.cells_by_name(paper_tables.FILES).values()}


@pytest.fixture
def damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str], str]], None]:
    """Put a file with one mistake in the place of the one that ships."""

    def put(damage: Callable[[str], str]) -> None:
        text = FILE.read_text(encoding="utf-8")
        assert damage(text) != text
        (tmp_path / "damaged.toml").write_text(damage(text), encoding="utf-8")
        monkeypatch.setattr(paper_tables, "FILES", tmp_path)

    return put


def test_every_table_has_its_cells() -> None:
    assert paper_tables.tables() == ("1", "5", "6")
    rows, noises, scales = 2, 3, 2
    columns = {"1": (5, 3), "5": (4, 2), "6": (4, 2)}  # as written, as released
    for name, (written, released) in columns.items():
        entry = table(name)
        assert [len(entry.columns_of(reading)) for reading in READINGS] == [written, released]
        presets = [preset for preset in cell_names() if preset.startswith(f"table-{name}-")]
        assert len(presets) == rows * noises * scales * (written + released)
    assert len(cell_names()) == 240


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("number", ["1", "5", "6"])
def test_every_preset_is_a_spec_that_can_run(number: str, reading: str, scale: str) -> None:
    """The only problem can be a data set that is not on this machine, and it has a remedy."""
    for cell in cells(table(number), scale, reading):
        spec = RunSpec(**cell_preset(cell.name))
        assert spec.method.values()["noise"] == cell.noise
        assert spec.method.unit() == {"written": "user", "released": "record"}[reading]
        assert spec.sampling == "poisson"
        fatal = [problem for problem in spec.problems() if problem.fatal]
        if scale == "quick":
            assert spec.dataset.name in SHIPS and not fatal, cell.name
        else:
            assert (spec.rounds, spec.clients, spec.sampled, spec.epochs, spec.batch) == (300, 100, 10, 30, 64)
            assert all(problem.remedy for problem in fatal)
            try:
                spec.dataset.facts()
            except MissingData:
                assert len(fatal) == 1
            else:
                assert not fatal


def test_the_two_readings_share_no_method() -> None:
    methods: dict[str, set[str]] = {reading: set() for reading in READINGS}
    for cell in CELLS.values():
        methods[cell.reading].add(cell.values()["method"]["name"])
    assert methods == {
        "written": {"udp-fedavg", "ppsgd", "centaur", "fedceo"},
        "released": {"dp-fedavg", "fedceo-released"},
    }


def test_no_two_cells_of_a_table_are_the_same_run() -> None:
    for number, reading, scale in product(paper_tables.tables(), READINGS, SCALES):
        of_table = cells(table(number), scale, reading)
        assert len({cell.point(seed).id for cell in of_table for seed in (0, 1)}) == 2 * len(of_table)


def test_two_versions_of_one_method_have_different_labels() -> None:
    row = cells(table("1"), "paper", "written", ["emnist"])
    labels = {cell.label: cell.point(0).spec.method.values() for cell in row}
    assert labels["FedCEO ϑ=1"]["growth"] == 1 and labels["FedCEO ϑ>1"]["growth"] > 1
    assert {"FedCEO ϑ=1", "FedCEO ϑ>1", "UDP-FedAvg", "PPSGD", "CENTAUR"} == labels.keys()


def test_the_parameters_of_table_2_are_used() -> None:
    presets = {noise: cell_preset(f"table-1-emnist-noise-{noise}-fedceo-growing-paper") for noise in ("1", "1.5", "2")}
    methods = [preset["method"] for preset in presets.values()]
    used = [(method["smoothing"], method["growth"], method["every"]) for method in methods]
    assert used == [(70.0, 1.08, 30), (0.5, 1.04, 20), (0.03, 1.06, 20)]
    assert presets["1"]["dataset"] == {"name": "emnist", "split": "letters"}


def test_fedceo_is_the_best_of_every_line_in_the_paper() -> None:
    for number in paper_tables.tables():
        entry = table(number)
        for row in entry.rows:
            for place in range(len(entry.noises)):
                line = {column: row.reported[column][place] for column in entry.columns}
                assert max(line, key=lambda column: line[column]) == list(entry.columns)[-1]
                assert all(10 < value < 90 for value in line.values())


def test_a_quick_row_on_other_data_has_a_reason() -> None:
    for name in cell_names():
        cell = CELLS[name]
        quick = cell.row.settings["quick"]
        paper = cell.row.settings["paper"]
        names_of = [RunSpec(**setting.fields).dataset.name for setting in (quick, paper)]
        assert all(setting.words[cell.reading].endswith(".") for setting in (quick, paper))
        assert ("because" in quick.words[cell.reading]) == (names_of[0] != names_of[1])


def test_the_clients_of_a_row_agree_with_its_words() -> None:
    for name, cell in CELLS.items():
        words = cell.row.settings[cell.scale].words[cell.reading]
        clients = cell_preset(name)["clients"]
        assert clients in (100, 300)
        assert ("300 clients, 30 of them" in words) == (clients == 300)
    assert {cell_preset(name)["clients"] for name in cell_names()} == {100, 300}


def test_a_preset_is_found_by_the_command_line() -> None:
    def read(*arguments: str) -> RunSpec:
        return read_spec(parser().parse_args(["run", *arguments]))

    name = "table-1-cifar10-noise-1.5-fedceo-growing-quick"
    assert read("--preset", name, "--seed", "4") == RunSpec(**cell_preset(name), seed=4)
    assert read("--preset", name.replace("-", "_")) == RunSpec(**cell_preset(name))


def test_an_unknown_preset_is_answered_with_similar_names() -> None:
    message = run_command("run --preset table-1-cifar10-noise-1.5-fedceo-growing").sentence()
    assert "Did you mean table-1-cifar10-noise-1.5-fedceo-growing-" in message
    assert "noise-1, " in message and "list tables" in message and message.count("table-") == 1 + 3
    with pytest.raises(UnknownName, match="preset: no table-9"):
        cell_preset("table-9")


@pytest.mark.parametrize("name", ["1", "table-1", "table_1"])
def test_a_table_is_found_by_its_number(name: str) -> None:
    assert table(name).name == "1"


def test_unknown_tables_and_rows_are_refused() -> None:
    with pytest.raises(UnknownName, match=r"table: no 9\. Known here: 1, 5, 6"):
        table("9")
    with pytest.raises(UnknownName, match=r"table 1: no row mnist\. Known here: emnist, cifar10"):
        cells(table("1"), "quick", "written", ["mnist"])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text.replace("udp-fedavg = [76.59, 69.91, 60.32]", "udp-fedavg = [76.59]"), "reported numbers"),
        (lambda text: text.replace("udp-fedavg = [76.59, 69.91, 60.32]", ""), "udp-fedavg is missing"),
        (lambda text: text.replace("smoothing = [70.0, 0.5, 0.03]", "smoothing = [70.0]"), "needs 3 values"),
        (lambda text: text.replace("centaur = { head-epochs = 15", "centor = { head-epochs = 15"), "called centor"),
        (lambda text: "]" + text, "damaged.toml"),
    ],
)
def test_a_mistake_in_the_file_is_reported(
    damaged_file: Callable[[Callable[[str], str]], None], damage: Callable[[str], str], message: str
) -> None:
    damaged_file(damage)
    with pytest.raises(Damaged, match=message):
        paper_tables.tables()


def test_the_file_repeats_nothing() -> None:
    """A row never repeats a value that its scale already has."""
    body: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    for row in body["rows"].values():
        for scale in SCALES:
            shared = body["scales"][scale]
            for block in ("both", *READINGS):
                for column, fields in row[scale].get(block, {}).items():
                    assert fields != shared.get(block, {}).get(column)
