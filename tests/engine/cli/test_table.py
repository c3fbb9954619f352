"""The command `table`: a small table that runs, its three output formats, and its refusals."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.cli import table
from engine.errors import BadInput
from engine.jobs.store import Store
from engine.records import VIEWS
from engine.results.paper_report import as_markdown, as_words, table_body
from engine.results.report import report
from engine.results.summary import PointResult
from engine.specs import paper_tables
from engine.specs.presets import cell_preset
from engine.specs.run import RunSpec
from tests.engine.makers import run_command

SMALL = """
source = "A paper, 2025"
noises = [0.5, 2.0]
[readings.written]
words = "as written: by client"
view = "outsider"
[readings.released]
words = "as released: by record"
view = "server"
[columns]
plain = { written = "udp-fedavg", released = "dp-fedavg" }
personal = { written = "ppsgd" }
smooth = { written = "fedceo", released = "fedceo-released" }
[scales.quick]
words = "Tuned elsewhere."
[scales.quick.spec]
rounds = 2
clients = 40
sampled = 4
epochs = 1
batch = 100
sampling = "poisson"
[scales.paper]
words = "As reported."
[scales.paper.spec]
rounds = 300
[tables.1]
title = "a small one"
rows = ["clothes"]
columns = { plain = "Plain", personal = "Personal", smooth = "Smooth" }
[rows.clothes]
title = "Clothes, MLP"
[rows.clothes.reported]
plain = [60.0, 50.0]
personal = [61.0, 51.0]
smooth = [62.5, 52.0]
[rows.clothes.paper]
words = "On letters."
spec = { dataset = "emnist" }
[rows.clothes.quick]
words = "Here on clothes."
spec = { dataset = "fashion-mnist" }
[rows.clothes.quick.written]
all = { server-step = 0.3 }
[rows.clothes.quick.both]
smooth = { every = 1, smoothing = [2.0, 0.5] }
"""


@pytest.fixture(autouse=True)
def small_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    monkeypatch.setattr(paper_tables, "FILES", tmp_path)


@pytest.mark.slow
def test_each_cell_is_a_run_and_finished_runs_are_reused(home: Path) -> None:
    result = run_command("table 1 --seeds 2 --json")
    assert result.code == 0
    body = result.json
    assert (body["table"], body["scale"], body["reading"], body["view"]) == ("1", "quick", "written", "outsider")
    assert [(row["row"], row["noise"]) for row in body["rows"]] == [("clothes", 0.5), ("clothes", 2.0)]
    quiet, loud = ({cell["column"]: cell for cell in row["cells"]} for row in body["rows"])
    assert list(quiet) == ["plain", "personal", "smooth"] and quiet["smooth"]["reported"] == pytest.approx(0.625)
    for cell in (*quiet.values(), *loud.values()):
        specs = [RunSpec(**cell_preset(cell["preset"]), seed=seed) for seed in (0, 1)]
        assert cell["runs"] == [spec.id for spec in specs]
        reports = [report(event for _, event in Store(home).events(spec.id)) for spec in specs]
        assert cell["accuracy"] == pytest.approx(sum(body["accuracy"] for body in reports) / 2)
        assert cell["epsilon"] == max(body["epsilon"]["outsider"] for body in reports)
        assert (cell["unit"], cell["delta"], cell["seeds"]) == ("user", 1e-5, 2)
        assert (cell["accuracy-personal"] is None) == (cell["column"] != "personal")
    assert quiet["plain"]["epsilon"] > loud["plain"]["epsilon"]
    assert body["rows"][0]["order"]["pairs"] == 3 and body["rows"][0]["order"]["champion"] == "Smooth"
    assert any(note.startswith("Smooth: formal-other-view: ") for note in body["notes"])
    attempts = {row.id: row.attempt for row in Store(home).runs()}
    assert len(attempts) == 2 * 3 * 2
    assert run_command("table 1 --seeds 2").code == 0
    assert {row.id: row.attempt for row in Store(home).runs()} == attempts


@pytest.mark.slow
def test_the_table_as_text() -> None:
    text = run_command("table 1 --seeds 2").out
    assert text.count(" seed 1 ") == 6 and "Clothes, MLP. Here on clothes." in text
    terms = next(line for line in text.splitlines() if line.startswith("ε in the outsider view: "))
    how = "(exact|rdp|prv) for (poisson|all) sampling"
    assert re.fullmatch(rf".*: per user, zero-out, δ = 1e-05, {how}( or {how})*, worst user and seed\.", terms)
    assert "Quick scale, seeds 0 to 1. Tuned elsewhere." in text
    assert text.count("The paper's order ") == 2 and " ± " in text and "60.00 %" in text
    assert "personal" in next(line for line in text.splitlines() if line.startswith("    Personal"))
    alone = run_command("table 1 --seeds 1 --view server").out.split("\n\n", 1)[1]
    assert "seed 0." in alone and " ± 0" not in alone
    assert "Personal: no ε in the server view: the server adds the noise itself" in alone


@pytest.mark.slow
def test_the_readings_are_two_tables_with_two_units() -> None:
    result = run_command("table 1 --seeds 1 --reading released --json")
    cells = [cell for row in result.json["rows"] for cell in row["cells"]]
    assert {cell["column"] for cell in cells} == {"plain", "smooth"}
    assert {(cell["unit"], cell["adjacency"]) for cell in cells} == {("record", "add-remove")}
    assert result.json["view"] == "server"


@pytest.mark.slow
def test_markdown_has_one_line_for_each_noise_and_two_columns_for_a_personal_method() -> None:
    text = run_command("table 1 --seeds 1 --markdown").out
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows[0] == "| row | noise | Plain | Personal | Personal, personal | Smooth |"
    assert len(rows) == 3 and {line.count("|") for line in rows} == {7}
    assert rows[1].startswith("| Clothes, MLP | 0.5 | ") and "(60.00), ε " in rows[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("9", "table: no 9. Known here: 1"),
        ("1 --seeds 0", "table: seeds: must be a whole number between 1 and 100, got 0"),
        ("1 --seeds 1.5", "table: seeds: must be a whole number between 1 and 100, got 1.5"),
        ("1 --rows ,", "table: --rows: must name rows, with commas between, got ,. Leave it out for all of them"),
        ("1 --rows ''", "table: --rows: must name rows, with commas between"),
        ("1 --threads 0", "run: threads: must be a whole number between 1 and 256, got 0"),
        ("1 --device nonsense --dry-run", "run: device: must be cpu"),
        ("1 --rows hats", "table 1: no row hats. Known here: clothes"),
        ("1 --scale huge", "invalid choice"),
        ("1 --scale paper", "table 1: clothes: emnist: the full set is not on this machine"),
    ],
)
def test_wrong_options_are_refused(home: Path, monkeypatch: pytest.MonkeyPatch, options: str, message: str) -> None:
    monkeypatch.delenv("LEAKLENS_DATA", raising=False)
    monkeypatch.delenv("LEAKLENS_DOWNLOAD", raising=False)
    result = run_command(f"table {options}")
    assert result.code == 2 and result.out == "" and message in result.sentence()
    assert not home.exists() or Store(home).runs() == []


@pytest.mark.slow
def test_a_dry_run_forecasts_every_cell_and_runs_none(home: Path) -> None:
    result = run_command("table 1 --seeds 2 --dry-run --json")
    assert result.code == 0 and result.json["runs"] == 12 and result.json["seconds"] > 0 and not home.exists()
    rows = {(row["noise"], row["column"]): row for row in result.json["rows"]}
    assert set(rows) == {(noise, column) for noise in (0.5, 2.0) for column in ("plain", "personal", "smooth")}
    plain = rows[0.5, "plain"]
    assert plain["runs"] == [RunSpec(**cell_preset(plain["preset"]), seed=seed).id for seed in (0, 1)]
    assert (plain["view"], plain["unit"], plain["delta"]) == ("outsider", "user", 1e-5)
    assert plain["epsilon"] > rows[2.0, "plain"]["epsilon"] > 0
    text = run_command("table 1 --seeds 2 --dry-run --view server").out
    assert re.search(r"^clothes +noise 0\.5 +Personal +no finite ε in the server view: the server adds", text, re.M)
    assert re.search(r"^12 runs, about [\d.]+ s in all\. ", text, re.M) and not home.exists()


def test_unfinished_runs_are_counted_and_have_no_line() -> None:
    results: dict[paper_tables.PaperCell, list[PointResult]] = {
        cell: [] for cell in paper_tables.cells(paper_tables.table("1"), "quick", "written")
    }
    body = table_body(results, 2, None, [])
    assert body["failed"] == 2 * 3 * 2 and [row["cells"] for row in body["rows"]] == [[], []]
    assert "12 runs did not finish" in "\n".join(as_words(body))
    assert "| Clothes, MLP | 0.5 |" in "\n".join(as_markdown(body))


def test_every_view_is_an_option() -> None:
    assert table.VIEWS == VIEWS


def test_tables_are_listed() -> None:
    (body,) = run_command("list tables --json").json
    assert (body["name"], body["source"]) == ("1", "A paper, 2025") and len(body["presets"]) == 2 * 2 * (3 + 2)
    text = run_command("list tables").out
    assert "table 1" in text and "clothes" in text and "table-1-clothes-noise-0.5-plain-quick" in text


def test_c04_without_presets_the_tables_are_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.cli.table.tables", lambda: ())
    answer = run_command("list tables")
    assert answer.code in (1, 2) and "there are no presets in assets/presets/tables" in answer.sentence()


@pytest.mark.slow
def test_a_row_that_cannot_run_says_why_and_the_others_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One run that cannot be requested takes no other with it."""
    from engine.training import plan as plans

    make_plan = plans.make_plan

    def refuse_one(spec: RunSpec) -> object:
        if spec.method.name == "fedceo":
            raise BadInput("fedceo: is not possible here", "Choose another")
        return make_plan(spec)

    monkeypatch.setattr(plans, "make_plan", refuse_one)
    result = run_command("table 1 --seeds 1 --json")
    assert result.code == 2
    assert all("fedceo: is not possible here" in row["problem"] for row in result.json["refused"])
    columns = {cell["column"] for row in result.json["rows"] for cell in row["cells"]}
    assert columns == {"plain", "personal"} and result.json["failed"] == 0
    (batch,) = Store(home).batches.listed()
    assert len(batch.problems) == 2 and len(batch.runs) == 4
