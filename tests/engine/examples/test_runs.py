"""The examples that ship: they match their presets, their lessons are true, and they can be run again."""

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

import engine.specs.base
from engine.__main__ import main
from engine.cli.arguments import read_spec
from engine.cli.main import parser
from engine.environment import ROOT
from engine.errors import Damaged, HomeUnwritable, UnknownName
from engine.events import Finished, Kept, Measured, Round, Spent, Started, Warned, decode, encode
from engine.examples import files, runs
from engine.examples.files import RunExample, example, examples, load_errors, names
from engine.examples.publishing import compact
from engine.examples.runs import make
from engine.results.report import report
from engine.specs.run import RunSpec
from engine.training.loop import run
from engine.training.plan import make_plan
from tests.engine.makers import accuracies

pytestmark = pytest.mark.slow

PRESETS = sorted(path.stem for path in (ROOT / "assets/presets").glob("*.json"))
AGAIN = "make it again: python3 -m engine gallery"


def preset_spec(name: str) -> RunSpec:
    return RunSpec(**json.loads((ROOT / f"assets/presets/{name}.json").read_text(encoding="utf-8")))


def stored(name: str) -> RunExample:
    assert not load_errors(), f"{load_errors()}; {AGAIN}"
    shipped = example(preset_spec(name).id)
    assert shipped and shipped.name == name, f"{name}: no example has the id of its preset; {AGAIN} {name}"
    return shipped


def accuracy(name: str) -> float:
    return float(report(stored(name).events)["accuracy"])


def epsilon(name: str) -> dict[str, Any]:
    return dict(report(stored(name).events)["epsilon"])


def near(number: Any) -> Any:
    """The same number, up to the rounding of another processor."""
    return number if number is None else pytest.approx(number, rel=1e-12)


# --- what ships --------------------------------------------------------------------------------------------


def test_every_preset_has_words_and_every_example_a_preset() -> None:
    assert sorted(names()) == PRESETS
    assert sorted(path.stem for path in (ROOT / "assets/gallery").iterdir()) == PRESETS
    assert 6 <= len(examples()) <= 8


def test_the_first_example_has_noise_and_its_baseline_is_the_second() -> None:
    first, second = examples()[:2]
    assert report(first.events)["unit"] == "user"
    assert first.baseline == second.id


@pytest.mark.parametrize("name", PRESETS)
def test_an_example_belongs_to_its_preset(name: str) -> None:
    shipped = stored(name)
    assert RunSpec(**shipped.spec).id == shipped.id
    assert shipped.title and shipped.lesson.endswith(".") and len(shipped.lesson) < 200
    for arguments in (shlex.split(shipped.command)[3:], ["run", "--preset", name]):
        assert read_spec(parser().parse_args(arguments)).id == shipped.id


@pytest.mark.parametrize("name", PRESETS)
def test_the_events_before_the_first_round_are_still_the_same(name: str) -> None:
    first = takewhile(lambda event: not isinstance(event, Round), run(preset_spec(name)))
    actual = [event for event in first if not isinstance(event, Kept)]
    shipped = list(takewhile(lambda event: not isinstance(event, Round), stored(name).events))
    assert shipped == [decode(json.loads(json.dumps(encode(event)))) for event in actual], f"{AGAIN} {name}"
    assert not [event for event in shipped if isinstance(event, Warned)]


@pytest.mark.parametrize("name", PRESETS)
def test_an_example_is_one_whole_run(name: str) -> None:
    shipped = stored(name)
    rounds = shipped.spec["rounds"]
    assert isinstance(shipped.events[0], Started) and isinstance(shipped.events[-1], Finished)
    assert shipped.events[-1].seconds == shipped.seconds <= 30
    assert [event.round for event in shipped.events if isinstance(event, Round)] == [*range(1, rounds + 1)]
    curve = [event.round for event in shipped.events if isinstance(event, Measured) and event.who == "global"]
    assert sorted(curve) == sorted([*range(1, rounds + 1)] * 2)  # accuracy and loss
    assert not [event for event in shipped.events if isinstance(event, Kept)]


@pytest.mark.parametrize("name", PRESETS)
def test_the_epsilon_and_the_partition_follow_from_the_preset(name: str) -> None:
    shipped = stored(name)
    plan = make_plan(preset_spec(name))
    spent = {event.view: event for event in shipped.events if isinstance(event, Spent)}
    for answer in plan.answers(plan.ledger(plan.last_round), precise=True):
        event = spent.pop(answer.view)
        assert event.epsilon == near(answer.value), f"{AGAIN} {name}"
        assert (event.accountant, event.unit, event.worst) == (answer.accountant, answer.unit, answer.worst)
    assert not spent
    assert [list(row) for row in shipped.partition] == plan.counts()["train"].tolist()


@pytest.mark.parametrize("name", [shipped.name for shipped in examples() if shipped.baseline])
def test_a_baseline_is_the_same_run_without_protection(name: str) -> None:
    spec = preset_spec(name)
    baseline = stored(name).baseline
    others = {key: value for key, value in spec.canonical().items() if key not in ("format", "method")}
    assert RunSpec(**others, method=spec.method.baseline()).id == baseline
    assert example(baseline) is not None


def test_a_protected_example_gives_the_same_results_today() -> None:
    actual = list(run(preset_spec("noise-1"), threads=2))
    shipped = [event for event in stored("noise-1").events if isinstance(event, Spent)]
    spent = [event for event in actual if isinstance(event, Spent)]
    for expected, event in zip(shipped, spent, strict=True):
        assert replace(expected, epsilon=0.0, quantiles=()) == replace(event, epsilon=0.0, quantiles=())
        assert expected.epsilon == near(event.epsilon), f"{AGAIN} noise-1"
        assert expected.quantiles == near(event.quantiles), f"{AGAIN} noise-1"
    assert report(actual)["accuracy"] == pytest.approx(accuracy("noise-1"), abs=0.005)


# --- the lessons are true ----------------------------------------------------------------------------------


def test_noise_costs_accuracy_and_half_of_it_more_than_doubles_epsilon() -> None:
    assert accuracy("noise-1") + 0.03 < accuracy("half-noise") < accuracy("no-protection") - 0.03
    assert all(epsilon("half-noise")[view] > 2 * value for view, value in epsilon("noise-1").items())
    assert set(epsilon("no-protection").values()) == {None}


def test_epsilon_is_small_for_an_outsider_and_large_for_the_server() -> None:
    by_view = epsilon("noise-1")
    assert by_view["outsider"] < 5 and by_view["server"] > 10 * by_view["outsider"]


def test_without_trust_in_the_server_epsilon_and_accuracy_are_lower() -> None:
    assert epsilon("no-trust")["server"] < epsilon("noise-1")["server"] / 4
    assert accuracy("no-trust") < accuracy("noise-1") - 0.05


def test_with_many_clients_the_same_noise_costs_little_accuracy() -> None:
    assert accuracy("many-clients") > accuracy("many-clients-open") - 0.03
    assert epsilon("many-clients")["outsider"] == pytest.approx(epsilon("noise-1")["outsider"])
    assert epsilon("many-clients")["server"] > 2 * epsilon("noise-1")["server"]


def test_noise_on_every_step_protects_a_picture_from_the_server() -> None:
    body = report(stored("dp-sgd").events)
    assert body["unit"] == "record" and body["epsilon"]["server"] < 5
    assert accuracy("dp-sgd") > accuracy("dp-sgd-open") - 0.1


def test_with_two_classes_per_client_accuracy_is_lower_and_jumps() -> None:
    def jumps(name: str) -> float:
        curve = [value or 0.0 for value in accuracies(stored(name).events)]
        return sum(abs(after - before) for before, after in pairwise(curve))

    assert max(sum(count > 0 for count in row) for row in stored("non-iid").partition) <= 2
    assert accuracy("non-iid") < accuracy("no-protection") - 0.05
    assert jumps("non-iid") > 2 * jumps("no-protection")


def test_a_gradient_for_every_batch_reaches_the_same_accuracy() -> None:
    assert abs(accuracy("each-batch") - accuracy("no-protection")) < 0.02
    assert preset_spec("each-batch").batch == 10  # as the lesson says


# --- reading -----------------------------------------------------------------------------------------------


def test_reading_loads_no_torch() -> None:
    code = (
        "import sys, engine.examples.runs; from engine.examples.files import examples; assert len(examples()) > 5;"
        "assert not {'torch', 'numpy', 'pydantic'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the files that ship, for tests that damage them."""
    for folder in ("presets", "gallery"):
        shutil.copytree(ROOT / "assets" / folder, tmp_path / folder)
    for module in (files, runs):
        monkeypatch.setattr(module, "ASSETS", tmp_path)
    yield tmp_path
    files.load_gallery.cache_clear()


def change(file: Path, **values: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | values), encoding="utf-8")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"format": 99}, "was made by a newer LeakLens"),
        ({"spec": {"format": 99}}, "was made by a newer LeakLens"),
        ({"spec": None}, "a value has another shape than this program writes"),
        ({"events": []}, "its events are not those of one finished run"),
        ({"id": "another"}, "its events are not those of one finished run"),
        ({"events": [{"event": "dreamt"}]}, "event: no kind 'dreamt'"),
        ({"partition": {}}, "train is missing"),
    ],
)
def test_a_damaged_example_is_left_out_and_reported(assets: Path, values: dict[str, Any], reason: str) -> None:
    change(assets / "gallery/noise-1.json", **values)
    assert [shipped.name for shipped in examples()][:2] == ["no-protection", "half-noise"]
    (error,) = load_errors()
    assert error.message == f"gallery: noise-1.json: {reason}"
    assert error.remedy


def test_a_missing_or_incomplete_file_is_left_out_and_reported(assets: Path) -> None:
    (assets / "gallery/noise-1.json").unlink()
    incomplete = assets / "gallery/no-protection.json"
    incomplete.write_text(incomplete.read_text(encoding="utf-8")[:-100], encoding="utf-8")
    assert next(iter(examples())).name == "half-noise"
    assert next(iter(examples())).baseline == ""
    missing, broken = (str(error) for error in load_errors())
    assert "no such file" in missing and "python3 -m engine gallery noise-1" in missing
    assert "no-protection.json" in broken


@pytest.mark.parametrize("text", [None, "[noise-1", "[noise-1]\nheading = 'x'\n"])
def test_without_words_there_is_no_gallery_and_no_crash(assets: Path, text: str | None) -> None:
    words = assets / "presets/words.toml"
    words.unlink() if text is None else words.write_text(text, encoding="utf-8")
    assert examples() == () and example("x") is None
    assert str(load_errors()[0]).startswith("gallery: words.toml: cannot be read: ")


def test_the_result_format_is_the_same_in_both_places() -> None:
    assert files.RESULT_FORMAT == engine.specs.base.FORMAT, "raise it in engine/examples/files.py, and " + AGAIN


# --- making ------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(assets: Path) -> Path:
    """A preset that runs in a fraction of a second; the fixture is the path of its example."""
    change(assets / "presets/noise-1.json", rounds=2, dataset="mnist", partition={"name": "dirichlet", "alpha": 5.0})
    return assets / "gallery/noise-1.json"


def test_a_made_example_has_the_events_of_its_run(tiny: Path) -> None:
    made = make("noise-1", threads=2)
    body = json.loads(tiny.read_text(encoding="utf-8"))
    spec = RunSpec(**body["spec"])
    events = [event for event in run(spec, threads=1) if not isinstance(event, Kept)]
    for shipped, event in zip(made.events[:-1], events, strict=False):
        assert shipped == decode(compact(event))
    assert len(events) == len(made.events)
    assert made.id == spec.id and examples()[0] == replace(made, baseline=examples()[1].id)
    assert "--partition dirichlet --set partition.alpha=5.0" in made.command
    assert read_spec(parser().parse_args(shlex.split(made.command)[3:])).id == made.id


def test_two_examples_differ_only_in_their_day_and_seconds(tiny: Path) -> None:
    bodies = []
    for threads in (1, 2):
        make("noise-1", threads)
        body = json.loads(tiny.read_text(encoding="utf-8"))
        bodies.append(body | {"made": "", "seconds": 0, "events": [*body["events"][:-1], "the end"]})
    assert bodies[0] == bodies[1]


def test_the_compact_form_loses_nothing() -> None:
    spent = Spent(1, "server", 24.381610883113673, "user", "zero-out", 1e-5, "exact", "all", worst=3)
    assert decode(compact(spent)) == spent and "reason" not in compact(spent)
    loss = Measured(1, "loss", 1.9633440971374512)
    assert decode(compact(loss)) == Measured(1, "loss", 1.96334)


def test_the_command_makes_the_named_example(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_a_refused_name_is_answered_with_the_names_of_all_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gallery", "leaks", "nonsense"]) == 2  # before the grid of attacks is run
    assert capsys.readouterr().err.rstrip().endswith(", leaks, frontier, start.")


def test_an_unwritable_file_and_an_unreadable_preset_are_reported(tiny: Path) -> None:
    shutil.rmtree(tiny.parent)
    tiny.parent.write_text("a file where the folder should be", encoding="utf-8")
    with pytest.raises(HomeUnwritable, match=r"cannot be written: file exists"):
        make("noise-1", threads=1)
    (tiny.parent.parent / "presets/noise-1.json").write_text("[", encoding="utf-8")
    with pytest.raises(Damaged, match=r"preset noise-1\.json: .*Download LeakLens again"):
        make("noise-1", threads=1)
