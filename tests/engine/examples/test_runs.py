"""The examples that ship: they belong to their questions, teach what is true, and can be run again."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pytest

import engine.specs.run
from engine.__main__ import main
from engine.cli.arguments import read_spec
from engine.cli.main import parser
from engine.environment import ROOT
from engine.errors import Damaged, HomeUnwritable, UnknownName
from engine.events import Finished, Kept, Measured, Round, Spent, Started, Warned, decode, encode
from engine.examples import files, runs
from engine.examples.files import RunExample, example, examples, names, troubles
from engine.examples.runs import compact, make
from engine.results.report import report
from engine.specs.run import RunSpec
from engine.training.loop import run
from engine.training.plan import make_plan

pytestmark = pytest.mark.slow

PRESETS = sorted(path.stem for path in (ROOT / "assets/presets").glob("*.json"))
AGAIN = "make it again: python3 -m engine gallery"


def question(name: str) -> RunSpec:
    return RunSpec(**json.loads((ROOT / f"assets/presets/{name}.json").read_text(encoding="utf-8")))


def stored(name: str) -> RunExample:
    assert not troubles(), f"{troubles()}; {AGAIN}"
    found = example(question(name).id)
    assert found and found.name == name, f"{name}: no example has the id of its preset; {AGAIN} {name}"
    return found


def accuracy(name: str) -> float:
    return float(report(stored(name).events)["accuracy"])


def epsilon(name: str) -> dict[str, Any]:
    return dict(report(stored(name).events)["epsilon"])


def near(number: Any) -> Any:
    """The same number, but for what the order of a sum may change on another processor."""
    return number if number is None else pytest.approx(number, rel=1e-12)


# --- what ships --------------------------------------------------------------------------------------------


def test_every_preset_has_words_and_every_example_a_preset() -> None:
    assert sorted(names()) == PRESETS
    assert sorted(path.stem for path in (ROOT / "assets/gallery").iterdir()) == PRESETS
    assert 6 <= len(examples()) <= 8


def test_a_newcomer_sees_noise_beside_its_unprotected_twin() -> None:
    first, second = examples()[:2]
    assert report(first.events)["unit"] == "user"
    assert first.twin == second.id


@pytest.mark.parametrize("name", PRESETS)
def test_an_example_belongs_to_its_preset(name: str) -> None:
    one = stored(name)
    assert RunSpec(**one.spec).id == one.id
    assert one.title and one.lesson.endswith(".") and len(one.lesson) < 200
    for words in (shlex.split(one.command)[3:], ["run", "--preset", name]):
        assert read_spec(parser().parse_args(words)).id == one.id


@pytest.mark.parametrize("name", PRESETS)
def test_what_is_known_before_the_first_round_is_still_said(name: str) -> None:
    one = stored(name)
    opening = takewhile(lambda event: not isinstance(event, Round), run(question(name)))
    said = [event for event in opening if not isinstance(event, Kept)]
    kept = list(takewhile(lambda event: not isinstance(event, Round), one.events))
    assert kept == [decode(json.loads(json.dumps(encode(event)))) for event in said], f"{AGAIN} {name}"
    assert not [event for event in kept if isinstance(event, Warned)]


@pytest.mark.parametrize("name", PRESETS)
def test_an_example_is_one_whole_run(name: str) -> None:
    one = stored(name)
    rounds = one.spec["rounds"]
    assert isinstance(one.events[0], Started) and isinstance(one.events[-1], Finished)
    assert one.events[-1].seconds == one.seconds <= 30
    assert [event.round for event in one.events if isinstance(event, Round)] == [*range(1, rounds + 1)]
    curve = [event.round for event in one.events if isinstance(event, Measured) and event.who == "global"]
    assert sorted(curve) == sorted([*range(1, rounds + 1)] * 2)  # accuracy and loss
    assert not [event for event in one.events if isinstance(event, Kept)]


@pytest.mark.parametrize("name", PRESETS)
def test_its_epsilon_and_its_partition_follow_from_the_question(name: str) -> None:
    one, plan = stored(name), make_plan(question(name))
    told = {event.view: event for event in one.events if isinstance(event, Spent)}
    for answer in plan.answers(plan.ledger(plan.last), precise=True):
        words = told.pop(answer.view)
        assert words.epsilon == near(answer.epsilon), f"{AGAIN} {name}"
        assert (words.accountant, words.unit, words.worst) == (answer.accountant, answer.unit, answer.worst)
    assert not told
    assert [list(row) for row in one.partition] == plan.counts()["train"].tolist()


@pytest.mark.parametrize("name", [one.name for one in examples() if one.twin])
def test_a_twin_asks_the_same_without_protection(name: str) -> None:
    mine, twin = question(name), stored(name).twin
    beside = {key: value for key, value in mine.canonical().items() if key not in ("format", "method")}
    assert RunSpec(**beside, method=type(mine.method).unprotected).id == twin
    assert example(twin) is not None


def test_the_fastest_protected_example_is_run_again() -> None:
    one = stored("noise-1")
    again = list(run(question("noise-1"), threads=2))
    bills = [event for event in one.events if isinstance(event, Spent)]
    for mine, real in zip(bills, (event for event in again if isinstance(event, Spent)), strict=True):
        assert replace(mine, epsilon=0.0, quantiles=()) == replace(real, epsilon=0.0, quantiles=())
        assert mine.epsilon == near(real.epsilon) and mine.quantiles == near(real.quantiles), f"{AGAIN} noise-1"
    assert report(again)["accuracy"] == pytest.approx(accuracy("noise-1"), abs=0.005)


# --- the lessons are true ----------------------------------------------------------------------------------


def test_noise_costs_accuracy_and_half_of_it_more_than_doubles_epsilon() -> None:
    assert accuracy("noise-1") + 0.03 < accuracy("half-noise") < accuracy("no-protection") - 0.03
    assert all(epsilon("half-noise")[view] > 2 * value for view, value in epsilon("noise-1").items())
    assert set(epsilon("no-protection").values()) == {None}


def test_an_outsider_learns_little_and_the_server_a_lot() -> None:
    told = epsilon("noise-1")
    assert told["outsider"] < 5 and told["server"] > 10 * told["outsider"]


def test_without_trust_the_server_learns_less_and_the_model_too() -> None:
    assert epsilon("no-trust")["server"] < epsilon("noise-1")["server"] / 4
    assert accuracy("no-trust") < accuracy("noise-1") - 0.05


def test_in_a_crowd_the_same_noise_costs_little_and_the_server_sees_more() -> None:
    assert accuracy("many-clients") > accuracy("many-clients-open") - 0.03
    assert epsilon("many-clients")["outsider"] == pytest.approx(epsilon("noise-1")["outsider"])
    assert epsilon("many-clients")["server"] > 2 * epsilon("noise-1")["server"]


def test_noise_on_every_step_holds_against_the_server_for_one_picture() -> None:
    told = report(stored("dp-sgd").events)
    assert told["unit"] == "record" and told["epsilon"]["server"] < 5
    assert accuracy("dp-sgd") > accuracy("dp-sgd-open") - 0.1


def test_two_classes_each_learn_less_and_jump() -> None:
    def jumps(name: str) -> float:
        events = stored(name).events
        curve = [
            e.value or 0.0 for e in events if isinstance(e, Measured) and (e.name, e.who) == ("accuracy", "global")
        ]
        return sum(abs(after - before) for before, after in pairwise(curve))

    assert max(sum(count > 0 for count in row) for row in stored("non-iid").partition) <= 2
    assert accuracy("non-iid") < accuracy("no-protection") - 0.05
    assert jumps("non-iid") > 2 * jumps("no-protection")


def test_a_gradient_for_every_batch_learns_as_well() -> None:
    assert abs(accuracy("each-batch") - accuracy("no-protection")) < 0.02
    assert question("each-batch").batch == 10  # as the lesson says


# --- reading -----------------------------------------------------------------------------------------------


def test_reading_loads_no_torch() -> None:
    code = (
        "import sys; from engine.examples.runs import examples; assert len(examples()) > 5;"
        "assert not {'torch', 'numpy', 'pydantic'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of what ships, free to be damaged."""
    for folder in ("presets", "gallery"):
        shutil.copytree(ROOT / "assets" / folder, tmp_path / folder)
    monkeypatch.setattr(runs, "ASSETS", tmp_path)
    yield tmp_path
    files._gallery.cache_clear()


def change(file: Path, **values: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | values), encoding="utf-8")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"format": 99}, "was made by a newer LeakLens"),
        ({"spec": {"format": 99}}, "was made by a newer LeakLens"),
        ({"spec": {"format": 0}}, "holds what an older LeakLens answered"),
        ({"spec": None}, "'NoneType' object is not subscriptable"),
        ({"events": []}, "its events are not those of one finished run"),
        ({"id": "another"}, "its events are not those of one finished run"),
        ({"events": [{"event": "dreamt"}]}, "event: no kind 'dreamt'"),
        ({"partition": {}}, "train is missing"),
    ],
)
def test_a_damaged_example_is_left_out_and_told(assets: Path, values: dict[str, Any], reason: str) -> None:
    change(assets / "gallery/noise-1.json", **values)
    assert [one.name for one in examples()][:2] == ["no-protection", "half-noise"]
    (trouble,) = troubles()
    assert trouble.message == f"gallery: noise-1.json: {reason}"
    assert trouble.remedy


def test_a_missing_or_torn_file_is_left_out_and_told(assets: Path) -> None:
    (assets / "gallery/noise-1.json").unlink()
    torn = assets / "gallery/no-protection.json"
    torn.write_text(torn.read_text(encoding="utf-8")[:-100], encoding="utf-8")
    assert next(iter(examples())).name == "half-noise"
    assert next(iter(examples())).twin == ""
    missing, broken = (str(trouble) for trouble in troubles())
    assert "no such file" in missing and "python3 -m engine gallery noise-1" in missing
    assert "no-protection.json" in broken


@pytest.mark.parametrize("text", [None, "[noise-1", "[noise-1]\nheading = 'x'\n"])
def test_without_words_there_is_no_gallery_and_no_crash(assets: Path, text: str | None) -> None:
    words = assets / "presets/words.toml"
    words.unlink() if text is None else words.write_text(text, encoding="utf-8")
    assert examples() == () and example("x") is None
    assert str(troubles()[0]).startswith("gallery: words.toml: cannot be read: ")


def test_the_results_that_can_be_read_are_those_of_today() -> None:
    assert files.RESULTS == engine.specs.run.FORMAT, "raise it in engine/examples/runs.py, and " + AGAIN


# --- making ------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(assets: Path) -> Path:
    """A preset of a fraction of a second."""
    change(assets / "presets/noise-1.json", rounds=2, dataset="mnist", partition={"name": "dirichlet", "alpha": 5.0})
    return assets / "gallery/noise-1.json"


def test_what_is_made_is_what_the_run_told(tiny: Path) -> None:
    made = make("noise-1", threads=2)
    body = json.loads(tiny.read_text(encoding="utf-8"))
    spec = RunSpec(**body["spec"])
    told = [event for event in run(spec, threads=1) if not isinstance(event, Kept)]
    for mine, real in zip(made.events[:-1], told, strict=False):
        assert mine == decode(compact(real))
    assert len(told) == len(made.events)
    assert made.id == spec.id and examples()[0] == replace(made, twin=examples()[1].id)
    assert "--partition dirichlet --set partition.alpha=5.0" in made.command
    assert read_spec(parser().parse_args(shlex.split(made.command)[3:])).id == made.id


def test_made_twice_only_the_day_and_the_seconds_differ(tiny: Path) -> None:
    texts = []
    for threads in (1, 2):
        make("noise-1", threads)
        body = json.loads(tiny.read_text(encoding="utf-8"))
        texts.append(body | {"made": "", "seconds": 0, "events": [*body["events"][:-1], "the end"]})
    assert texts[0] == texts[1]


def test_what_ships_is_compact_and_loses_nothing() -> None:
    bill = Spent(1, "server", 24.381610883113673, "user", "zero-out", 1e-5, "exact", "all", worst=3)
    assert decode(compact(bill)) == bill and "reason" not in compact(bill)
    loss = Measured(1, "loss", 1.9633440971374512)
    assert decode(compact(loss)) == Measured(1, "loss", 1.96334)


def test_the_command_makes_what_is_named(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gallery", "noise_1", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["name"] == "noise-1" and row["bytes"] == tiny.stat().st_size
    assert row["epsilon"]["server"] > row["epsilon"]["outsider"] and 0 < row["accuracy"] < 1
    assert main(["gallery", "noise-1"]) == 0
    assert row["id"] in capsys.readouterr().out


def test_an_unknown_preset_is_refused_before_anything_is_run(tiny: Path) -> None:
    before = tiny.read_bytes()
    with pytest.raises(UnknownName, match=r"no half-a-noise\. Known here: noise-1, no-protection"):
        runs.chosen(["noise-1", "half-a-noise"])
    assert main(["gallery", "noise-1", "half-a-noise"]) == 2
    assert tiny.read_bytes() == before


def test_what_cannot_be_written_or_asked_is_said(tiny: Path) -> None:
    shutil.rmtree(tiny.parent)
    tiny.parent.write_text("a file where the folder should be", encoding="utf-8")
    with pytest.raises(HomeUnwritable, match=r"cannot be written: file exists"):
        make("noise-1", threads=1)
    (tiny.parent.parent / "presets/noise-1.json").write_text("[", encoding="utf-8")
    with pytest.raises(Damaged, match=r"preset noise-1\.json: .*Fetch LeakLens again"):
        make("noise-1", threads=1)
