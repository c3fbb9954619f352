"""The tables of papers: every cell is a question that can be asked, true to what its row says."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
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
from tests.engine.makers import ask

FILE = paper_tables.FILES / "fedceo.toml"
SHIPS = {"fashion-mnist", "cifar10", "movie-reviews"}
CELLS = {cell.name: cell for cell in paper_tables.cells_by_name(paper_tables.FILES).values()}


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str], str]], None]:
    """The file with a slip in it, in the place of the one that ships."""

    def put(slip: Callable[[str], str]) -> None:
        text = FILE.read_text(encoding="utf-8")
        assert slip(text) != text
        (tmp_path / "slip.toml").write_text(slip(text), encoding="utf-8")
        monkeypatch.setattr(paper_tables, "FILES", tmp_path)

    return put


def test_every_table_has_its_cells() -> None:
    assert paper_tables.tables() == ("1", "5", "6")
    rows, noises, scales = 2, 3, 2
    of = {"1": (5, 3), "5": (4, 2), "6": (4, 2)}  # columns as written and as released
    for name, (written, released) in of.items():
        one = table(name)
        assert [len(one.columns_of(reading)) for reading in READINGS] == [written, released]
        found = [known for known in cell_names() if known.startswith(f"table-{name}-")]
        assert len(found) == rows * noises * scales * (written + released)
    assert len(cell_names()) == 240


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("number", ["1", "5", "6"])
def test_every_preset_is_a_question(number: str, reading: str, scale: str) -> None:
    """What stands in its way is at most a data set that is not on this machine, which has a remedy."""
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
    by = {reading: {CELLS[name].question()["method"]["name"] for name in cell_names() if CELLS[name].reading == reading}
          for reading in READINGS}  # fmt: skip
    assert by == {
        "written": {"udp-fedavg", "ppsgd", "centaur", "fedceo"},
        "released": {"dp-fedavg", "fedceo-released"},
    }


def test_no_two_cells_of_a_table_ask_the_same() -> None:
    for number in paper_tables.tables():
        for reading in READINGS:
            for scale in SCALES:
                found = cells(table(number), scale, reading)
                assert len({cell.point(seed).id for cell in found for seed in (0, 1)}) == 2 * len(found)


def test_two_versions_of_one_method_are_told_apart() -> None:
    found = cells(table("1"), "paper", "written", ["emnist"])
    labels = {cell.label: cell.point(0).spec.method.values() for cell in found}
    assert labels["FedCEO ϑ=1"]["growth"] == 1 and labels["FedCEO ϑ>1"]["growth"] > 1
    assert {"FedCEO ϑ=1", "FedCEO ϑ>1", "UDP-FedAvg", "PPSGD", "CENTAUR"} == labels.keys()


def test_what_table_2_reports_is_asked() -> None:
    found = {noise: cell_preset(f"table-1-emnist-noise-{noise}-fedceo-growing-paper") for noise in ("1", "1.5", "2")}
    told = [(one["method"]["smoothing"], one["method"]["growth"], one["method"]["every"]) for one in found.values()]
    assert told == [(70.0, 1.08, 30), (0.5, 1.04, 20), (0.03, 1.06, 20)]
    assert found["1"]["dataset"] == {"name": "emnist", "split": "letters"}


def test_the_best_of_every_line_is_fedceo_as_the_paper_says() -> None:
    for number in paper_tables.tables():
        one = table(number)
        for row in one.rows:
            for place in range(len(one.noises)):
                line = {column: row.reported[column][place] for column in one.columns}
                assert max(line, key=lambda column: line[column]) == list(one.columns)[-1]
                assert all(10 < value < 90 for value in line.values())


def test_where_a_quick_row_is_on_other_data_it_says_so() -> None:
    for name in cell_names():
        cell = CELLS[name]
        quick, paper = (cell.row.settings[scale] for scale in ("quick", "paper"))
        names_of = [RunSpec(**setting.fields).dataset.name for setting in (quick, paper)]
        assert all(setting.words[cell.reading].endswith(".") for setting in (quick, paper))
        assert ("because" in quick.words[cell.reading]) == (names_of[0] != names_of[1])


def test_the_clients_of_a_row_are_those_that_its_words_tell() -> None:
    told = {name: CELLS[name].row.settings[CELLS[name].scale].words[CELLS[name].reading] for name in cell_names()}
    many = {name: cell_preset(name)["clients"] for name in cell_names()}
    assert {name for name, words in told.items() if "300 clients, 30 of them" in words} == {
        name for name, clients in many.items() if clients == 300
    }
    assert set(many.values()) == {100, 300}


def test_a_preset_is_found_by_the_command_line() -> None:
    def read(*words: str) -> RunSpec:
        return read_spec(parser().parse_args(["run", *words]))

    name = "table-1-cifar10-noise-1.5-fedceo-growing-quick"
    assert read("--preset", name, "--seed", "4") == RunSpec(**cell_preset(name), seed=4)
    assert read("--preset", name.replace("-", "_")) == RunSpec(**cell_preset(name))


def test_an_unknown_preset_is_answered_with_the_nearest_ones_and_not_with_all() -> None:
    said = ask("run --preset table-1-cifar10-noise-1.5-fedceo-growing").sentence()
    assert "Did you mean table-1-cifar10-noise-1.5-fedceo-growing-" in said
    assert "noise-1, " in said and "list tables" in said and said.count("table-") == 1 + 3
    with pytest.raises(UnknownName, match="preset: no table-9"):
        cell_preset("table-9")


@pytest.mark.parametrize("name", ["1", "table-1", "table_1"])
def test_a_table_by_its_name(name: str) -> None:
    assert table(name).name == "1"


def test_unknown_tables_and_rows_are_refused() -> None:
    with pytest.raises(UnknownName, match=r"table: no 9\. Known here: 1, 5, 6"):
        table("9")
    with pytest.raises(UnknownName, match=r"table 1: no row mnist\. Known here: emnist, cifar10"):
        cells(table("1"), "quick", "written", ["mnist"])


@pytest.mark.parametrize(
    ("slip", "said"),
    [
        (lambda text: text.replace("udp-fedavg = [76.59, 69.91, 60.32]", "udp-fedavg = [76.59]"), "reported numbers"),
        (lambda text: text.replace("udp-fedavg = [76.59, 69.91, 60.32]", ""), "udp-fedavg is missing"),
        (lambda text: text.replace("smoothing = [70.0, 0.5, 0.03]", "smoothing = [70.0]"), "needs 3 values"),
        (lambda text: text.replace("centaur = { head-epochs = 15", "centor = { head-epochs = 15"), "called centor"),
        (lambda text: "]" + text, "slip.toml"),
    ],
)
def test_a_slip_in_the_file_is_found(
    elsewhere: Callable[[Callable[[str], str]], None], slip: Callable[[str], str], said: str
) -> None:
    elsewhere(slip)
    with pytest.raises(Damaged, match=said):
        paper_tables.tables()


def test_the_file_repeats_nothing() -> None:
    """Every key of a method stands where it is first true: none is told again with the same value below."""
    body: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    for row in body["rows"].values():
        for scale in SCALES:
            shared = body["scales"][scale]
            for block in ("both", *READINGS):
                for column, fields in row[scale].get(block, {}).items():
                    assert fields != shared.get(block, {}).get(column)
