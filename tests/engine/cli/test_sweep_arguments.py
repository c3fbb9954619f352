"""The question of `sweep`: its methods, what all its points have in common, and what is told of them beforehand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.cli.main import parser
from engine.cli.sweep import read
from engine.jobs.store import Store
from engine.results.report import report
from engine.specs.presets import cell_preset
from engine.specs.run import RunSpec
from engine.specs.sweep import SweepPoint
from tests.engine.makers import SMALL, ask

CELL = "table-1-emnist-noise-1-fedceo-growing-quick"


def todo(words: str) -> tuple[SweepPoint, ...]:
    return read(parser().parse_args(["sweep", *words.split()]))


def ids(words: str) -> set[str]:
    return {point.id for point in todo(words)}


# --- its methods -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", ["", "--methods fedceo"])
def test_a_preset_keeps_the_parameters_of_its_method(more: str) -> None:
    (point,) = todo(f"--preset {CELL} --noises 1 --seeds 1 {more}")
    assert point.spec == RunSpec(**cell_preset(CELL))


def test_what_a_preset_shares_reaches_the_other_methods() -> None:
    mine, other = todo(f"--preset {CELL} --methods fedceo,udp-fedavg --noises 1 --seeds 1")
    assert mine.spec == RunSpec(**cell_preset(CELL))
    assert other.step == mine.step != 1.0 and other.spec.rounds == mine.spec.rounds


def test_a_file_keeps_the_parameters_of_its_method(tmp_path: Path) -> None:
    file = tmp_path / "spec.json"
    file.write_text('{"method": {"name": "fedceo", "every": 3}, "rounds": 7}', encoding="utf-8")
    assert getattr(todo(f"--spec {file} --seeds 1")[0].spec.method, "every", None) == 3
    file.write_text('{"rounds": 7}', encoding="utf-8")
    (found,) = todo(f"--spec {file} --noises 1 --seeds 1 --methods fedceo --set every=4")
    assert (found.spec.rounds, getattr(found.spec.method, "every", None)) == (7, 4)


def test_without_methods_it_is_that_of_the_question_or_the_usual_one() -> None:
    assert {point.method for point in todo("")} == {"udp-fedavg"}
    assert {point.method for point in todo("--method dp-fedavg")} == {"dp-fedavg"}
    assert {point.method for point in todo("--method dp-fedavg --methods fedceo,fedavg")} == {"fedceo", "fedavg"}


@pytest.mark.parametrize("more", ["", "--delta 1e-5", "--sampling auto"])
def test_the_order_of_the_methods_decides_nothing(more: str) -> None:
    names = ("fedavg", "udp-fedavg", "dp-fedavg")
    found = ids(f"--methods {','.join(names)} --noises 1 {more}")
    assert found == ids(f"--methods {','.join(reversed(names))} --noises 1 {more}") and len(found) == 9
    assert {point.spec.sampling for point in todo(f"--methods {','.join(names)} --noises 1 {more}")} == {"poisson"}


def test_where_nobody_protects_or_it_is_said_the_sampling_stays() -> None:
    assert {point.spec.sampling for point in todo("--methods fedavg")} == {"fixed"}
    assert {point.spec.sampling for point in todo("--methods fedavg,udp-fedavg --sampling fixed")} == {"fixed"}


# --- what is varied is not said twice ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--of fedceo.noise=3", "must leave noise to --noises, got fedceo.noise=3"),
        ("--of fedceo.name=udp-fedavg", "must leave name to --methods, got fedceo.name=udp-fedavg"),
        ("--of fedceo.server_step=1 --server-steps 0.1,1", "must leave server-step to --server-steps"),
    ],
)
def test_a_field_that_is_varied_is_refused(home: Path, words: str, said: str) -> None:
    told = ask(f"sweep --methods fedceo {words}")
    assert told.code == 2 and f"sweep: --of: {said}" in told.sentence() and "name it there" in told.err
    assert not home.exists() or Store(home).runs() == []


def test_the_server_step_of_one_method_may_be_said_where_none_are_tried() -> None:
    found = todo("--methods fedceo,udp-fedavg --noises 1 --seeds 1 --of fedceo.server-step=0.3")
    assert {point.method: point.step for point in found} == {"fedceo": 0.3, "udp-fedavg": 0.1}


# --- before the first run ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--threads 0", "run: threads: must be a whole number between 1 and 256, got 0"),
        ("--device nonsense", "run: device: must be cpu, or cuda"),
    ],
)
@pytest.mark.parametrize("dry", ["", " --dry-run"])
def test_what_this_machine_has_not_is_refused(home: Path, words: str, said: str, dry: str) -> None:
    told = ask(f"sweep {SMALL} {words}{dry}")
    assert told.code == 2 and told.out == "" and said in told.sentence() and not home.exists()


def test_a_dry_run_runs_nothing_and_says_what_is_to_be_expected(home: Path) -> None:
    words = f"sweep {SMALL} --methods udp-fedavg,fedavg --noises 0.5,2 --seeds 2 --dry-run"
    told = ask(words)
    assert told.code == 0 and told.err == "" and not home.exists()
    assert re.search(
        r"^udp-fedavg +noise 2 +ε = \S+ in the outsider view \(per user, zero-out, δ = 1e-05, ", told.out, re.M
    )
    assert re.search(
        r"^fedavg +no noise +no finite ε in the outsider view: nothing is clipped or noised$", told.out, re.M
    )
    assert told.out.count("  udp-fedavg: guarantee: formal-other-view: ") == 1
    assert re.search(r"^6 runs, about [\d.]+ s in all; what is known already is not run again\.$", told.out, re.M)
    body = ask(f"{words} --json").json
    assert (body["view"], body["runs"], len(body["rows"])) == ("outsider", 6, 3) and body["seconds"] > 0
    runs = {(point.method, point.noise, point.seed): point.id for point in todo(words.removeprefix("sweep "))}
    for row in body["rows"]:
        assert row["runs"] == [runs[row["method"], row["noise"], seed] for seed in (0, 1)]
    assert "in the server view" in ask(f"{words} --view server").out and not home.exists()


def test_a_dry_run_says_what_stands_in_the_way(home: Path) -> None:
    words = "sweep --dataset cifar10 --clients 4000 --noises 1 --seeds 1 --dry-run"
    told = ask(words)
    assert told.code == 2 and re.search(r"^udp-fedavg +noise 1 +cannot be run$", told.out, re.M)
    assert re.search(r"^  udp-fedavg: .*4000", told.out, re.M) and "4000" in told.sentence() and "about" not in told.out
    body = ask(f"{words} --json").json
    assert body["seconds"] is None and body["rows"][0]["problems"][0]["fatal"] and not home.exists()


@pytest.mark.slow
def test_a_dry_run_promises_what_the_runs_then_spend(home: Path) -> None:
    words = f"sweep {SMALL} --methods udp-fedavg --noises 1 --seeds 2 --threads 1 --json"
    (row,) = ask(f"{words} --dry-run").json["rows"]
    (spot,) = ask(words).json["spots"]
    for name in ("epsilon", "adjacency", "delta", "accountant", "sampling", "bound"):
        assert row[name] == spot[name]["outsider"]
    runs = Store(home).runs()
    assert {one.id for one in runs} == set(row["runs"])
    assert [one.options for one in runs] == [{"device": "cpu", "threads": 1}] * 2
    ends = [report(event for _, event in Store(home).events(run)) for run in row["runs"]]
    assert row["epsilon"] == max(end["epsilon"]["outsider"] for end in ends)
