"""A command that cannot run ends with exit code 2 and one sentence: where, the rule, the value and the fix."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.cli import main
from engine.jobs.migrations import MIGRATIONS
from engine.jobs.store import Store
from tests.engine.makers import SMALL, run_command

pytestmark = pytest.mark.slow

PLAN = "--rate 0.1 --steps 30 --delta 1e-5"
NOISY = "epsilon --noise 1"
UDP = "run --method udp-fedavg"


def refused(line: str, *parts: str) -> str:
    """The message of a refused command, which contains these parts."""
    answer = run_command(line)
    assert answer.code == 2 and answer.sentence().isprintable()
    if "--json" in line:
        assert answer.sentence() in (answer.json["error"], f"{answer.json['error']}. {answer.json['remedy']}.")
    else:
        assert answer.out == ""
    for part in parts:
        assert part in answer.sentence()
    return answer.err


# --- runs --------------------------------------------------------------------------------------------------

RUNS = [
    ("run --method fedavgg", "method: no fedavgg. Did you mean fedavg? Known here: "),
    ("run --dataset none", "dataset: no none. Known here: cifar10, "),
    ("run --model none", "model: no none. Known here: "),
    ("run --partition none", "partition: no none. Known here: "),
    ("run --preset none", "preset: no none. Known here: "),
    ("run --rounds -1", "run: rounds: must be a whole number between 0 and 10000, got -1"),
    ("run --rounds 10001", "run: rounds: must be a whole number between 0 and 10000, got 10001"),
    ("run --rounds true", "run: rounds: must be a whole number between 0 and 10000, got true"),
    ("run --rounds NaN", "run: rounds: must be a whole number between 0 and 10000, got nan"),
    ("run --rounds 1e999", "run: rounds: must be a whole number between 0 and 10000, got inf"),
    ("run --rounds 2.5", "run: rounds: must be a whole number between 0 and 10000, got 2.5"),
    ("run --rounds many", "run: rounds: must be a whole number between 0 and 10000, got many"),
    ("run --lr NaN", "run: lr: must be a number above 0 and at most 100, got nan"),
    ("run --lr Infinity", "run: lr: must be a number above 0 and at most 100, got inf"),
    ("run --lr=-Infinity", "run: lr: must be a number above 0 and at most 100, got -inf"),
    ("run --lr true", "run: lr: must be a number above 0 and at most 100, got true"),
    ("run --lr 0", "run: lr: must be a number above 0 and at most 100, got 0"),
    ("run --weight_decay 2", "run: weight-decay: must be a number between 0 and 1, got 2"),
    ("run --sampling some", "run: sampling: must be one of poisson, fixed, all, auto, got some"),
    ("run --view everyone", "run: view: must be one of server, aggregate, outsider, client, got everyone"),
    ("run --clients 5 --sampled 6", "run: sampled: must be at most the 5 clients there are, got 6"),
    ("run --threads 0", "run: threads: must be a whole number between 1 and 256, got 0"),
    ("run --threads true", "run: threads: must be a whole number between 1 and 256, got true"),
    ("run --device cuda:900", "run: device: must be cpu, or cuda where a GPU is found, got cuda:900. Leave"),
    ("run --device tpu", "run: device: must be cpu, or cuda where a GPU is found, got tpu. Leave --device out"),
    (
        "sweep --noises 1 --device cuda:900",
        "run: device: must be cpu, or cuda where a GPU is found, got cuda:900. Leave",
    ),
    ("table 1 --device cuda:900", "run: device: must be cpu, or cuda where a GPU is found, got"),
    ("attack a1b2 --device cuda:900", "run: device: must be cpu, or cuda where a GPU is found, got"),
    ("run --target-epsilon 3", "run: view: is missing"),
    ("run --target-epsilon 3 --view server", "fedavg: has no noise, so a target ε or a budget does not apply. Choose"),
    (f"{UDP} --target-epsilon Infinity --view server", "run: target-epsilon: must be a number above 0", "got inf"),
    (f"{UDP} --delta 0", "run: delta: must be a number at least 1e-100 and below 1, got 0"),
    (f"{UDP} --delta 1e-320", "run: delta: must be a number at least 1e-100 and below 1, got 1e-320"),
    (f"{UDP} --set noise=1e-320", "udp-fedavg: noise: must be 0 or at least 1e-12, got 1e-320"),
    ("run --lr 1e-320", "run: lr: must be at least 1e-12, got 1e-320"),
    ("run --lr 1e300", "run: lr: must be a number above 0 and at most 100, got 1e+300"),
    ("run --lr ''", 'run: lr: must be a number above 0 and at most 100, got ""'),
    ("run --lr [1]", "run: lr: must be a number above 0 and at most 100, got [1]"),
    ("run --set model.bias=null", "mlp: bias: must be true or false, got nothing"),
    ("run --set '\x1b[31m=1'", "fedavg: \\x1b[31m: no such parameter"),
    ("run --set '\udcff=1'", "fedavg: \\udcff: no such parameter"),
    ("run --method '\udcff'", "method: no \\udcff. Known here: "),
    ("run --method ''", 'method: no "". Known here: '),
    ("run --device '\x1b[31m'", "run: device: must be cpu, or cuda where a GPU is found, got \\x1b[31m"),
    ("run --spec '\x1b\udcff.json'", "spec: \\x1b\\udcff.json: No such file or directory"),
    ("run --partition dirichlet --set partition.alpha=1e-320", "dirichlet: alpha: must be at least 1e-12, got 1e-320"),
    (f"{UDP} --target-epsilon 1e7 --view server", "must be a number above 0 and at most 1000000, got 10000000"),
    (f"{UDP} --delta 0.01", "run: delta: must be below 1/n = 0.01 for 100 clients, got 0.01. A larger δ"),
    (f"{UDP} --delta 0.5", "run: delta: must be below 1/n = 0.01 for 100 clients, got 0.5"),
    (f"{UDP} --set noise=-1", "udp-fedavg: noise: must be a number between 0 and 1000, got -1"),
    (f"{UDP} --set noise=NaN", "udp-fedavg: noise: must be a number between 0 and 1000, got nan"),
    (f"{UDP} --set noise=true", "udp-fedavg: noise: must be a number between 0 and 1000, got true"),
    ("run --set noise=1", "fedavg: noise: no such parameter. Known here: "),
    ("run --set fog", "run: --set: must be NAME=VALUE, got fog"),
    ("run --set server.fog=1", "run: --set: must name a parameter of the method", "got server.fog"),
    ("run --dataset cifar10 --clients 4000", "clients: must be between 1 and the 3,000 training pictures, got 4000"),
    (
        "run --partition dirichlet --set partition.alpha=0.01 --dataset mnist",
        "would get no pictures: every client must get at least one",
        "Raise alpha, take fewer clients or more pictures",
    ),
    ("run --dataset cifar10 --set dataset.full=true", "cifar10: the full set is not on this machine (looked in "),
    ("run --spec nowhere.json", "spec: nowhere.json: No such file or directory. Name a file"),
]


@pytest.mark.parametrize("refusal", RUNS, ids=lambda refusal: refusal[0])
def test_a_run_that_is_refused_is_not_queued(refusal: tuple[str, ...], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("LEAKLENS_DATA", raising=False)
    monkeypatch.delenv("LEAKLENS_DOWNLOAD", raising=False)
    refused(*refusal)
    assert Store().runs() == []


def test_the_message_is_the_same_with_json():
    assert run_command("run --rounds -1 --json").json["error"].endswith("got -1")
    assert refused("run --rounds -1 --json") == refused("run --rounds -1")
    assert refused(f"epsilon --noise -1 {PLAN} --json") == refused(f"epsilon --noise -1 {PLAN}")


def test_a_missing_gpu_is_refused_for_a_dry_run_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    refused(f"run {SMALL} --device cuda --dry-run", "run: device: must be cpu", "got cuda")


def test_a_missing_gpu_of_the_environment_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LEAKLENS_DEVICE", "cuda:900")
    refused(f"run {SMALL}", "LEAKLENS_DEVICE: must be cpu", "got cuda:900", "Leave LEAKLENS_DEVICE out")
    refused(f"sweep --noises 1 {SMALL}", "LEAKLENS_DEVICE: must be cpu")
    assert Store().runs() == []


def test_a_spec_file_of_a_newer_format_is_refused(tmp_path: Path):
    (tmp_path / "spec.json").write_text('{"format": 99}')
    refused(f"run --spec {tmp_path / 'spec.json'}", "run: the spec has format 99", "Update LeakLens to open it")


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ('{"format": "1"}', 'run: format: must be a whole number at least 1, got "1"'),
        ('{"weight-decay": 0.1, "weight_decay": 0.2}', "run: weight-decay: is given twice. Leave one of them out."),
        ('{"lr": null}', "run: lr: must be a number above 0 and at most 100, got nothing"),
        ('{"method": [1]}', "method: must be a name, or an object with a name, got [1]"),
        ('{"\\udcff": 1}', "run: \\udcff: no such parameter. Known here: "),
    ],
)
def test_the_refusal_of_a_spec_file_quotes_its_names_and_values(tmp_path: Path, written: str, sentence: str):
    (tmp_path / "spec.json").write_text(written)
    assert refused(f"run --spec {tmp_path / 'spec.json'}").startswith(sentence)


ONE = "epsilon: noise and target-epsilon: exactly one of them must be given. Give --noise to get its ε"
RULES = {
    "noise": (
        "must be 0, or a number between 0.000001 and 1000000",
        ["NaN", "Infinity", "-1", "true", "loud", "[1]", "1e308", "1e-300"],
    ),
    "rate": ("must be a number between 0 and 1", ["NaN", "2", "-0.1", "true", "loud"]),
    "steps": ("must be a whole number between 0 and 1000000000", ["NaN", "Infinity", "-1", "1.5", "true", "9" * 400]),
    "delta": ("must be at least 1e-100 and below 1", ["1e-320", "NaN", "0", "1", "-1", "true"]),
    "target-epsilon": (
        "must be a number above 0 and at most 1000000",
        ["1e-320", "NaN", "Infinity", "0", "-1", "true"],
    ),
}
EPSILONS = [
    (f"epsilon {PLAN}", ONE),
    (f"epsilon --noise 1 --target-epsilon 1 {PLAN}", ONE),
    ("epsilon --noise 1 --steps 3 --delta 1e-5", "epsilon: rate: is missing. Give --noise"),
    ("epsilon --noise 1 --rate 1 --delta 1e-5", "epsilon: steps: is missing. Give --noise"),
    ("epsilon --noise 1 --rate 1 --steps 3", "epsilon: delta: is missing. Give --noise"),
    (
        f"epsilon --target-epsilon 1e-9 {PLAN}",
        "target ε: must be within reach (the noise 10000 gives ε = ",
        "Set a larger ε",
    ),
    *(
        (
            f"{'epsilon' if name == 'target-epsilon' else NOISY} {PLAN} --{name} {value}",
            f"epsilon: {name}: {rule}, got ",
        )
        for name, (rule, values) in RULES.items()
        for value in values
    ),
]


@pytest.mark.parametrize("refusal", EPSILONS, ids=lambda refusal: refusal[0])
def test_a_plan_without_an_epsilon_is_refused(refusal: tuple[str, ...]):
    refused(*refusal)


@pytest.mark.parametrize(
    "refusal",
    [
        ("cancel unknown", "run: no unknown. It was never submitted in this home, or it was deleted"),
        ("delete unknown", "run: no unknown. It was never submitted in this home, or it was deleted"),
        ("delete ../home", "run: no ../home."),
        ("attack x --attack map", "run: no x"),
        ("export x --out page.html", "run: no x. It was never submitted in this home, or it was deleted"),
        ("export x --out page.txt", "export: out: must end in .html, got page.txt"),
        ("bench nothing", "bench: no nothing. Known here: "),
    ],
    ids=lambda refusal: refusal[0],
)
def test_a_command_that_cannot_run_is_refused(refusal: tuple[str, ...]):
    refused(*refusal)


@pytest.mark.parametrize(
    "line",
    ["", "dance", "list", "list songs", "run --rounds", "run --loud", "run --json=yes", "cancel", "epsilon 3"],
)
def test_an_unknown_command_is_answered_with_where_to_find_help(line: str):
    answer = run_command(line)
    assert (answer.code, answer.out) == (2, "")
    assert answer.sentence().startswith("python3 -m engine")
    assert "--help` to see the options." in answer.sentence()


def test_a_mistyped_option_is_answered_with_the_nearest():
    answer = run_command("run --round 3")
    assert answer.sentence() == (
        "python3 -m engine run: there is no option --round. Did you mean `--rounds`? "
        "Run `python3 -m engine run --help` to see the options."
    )


def test_help_exits_with_code_0():
    assert (run_command("--help").code, run_command("run --help").code) == (0, 0)
    assert "--target-epsilon" in run_command("run --help").out


@pytest.mark.parametrize("line", ["--debug run --rounds -1", "run --rounds -1 --debug"])
def test_a_traceback_is_shown_on_demand(line: str):
    answer = run_command(line)
    assert answer.code == 2
    assert "Traceback" in answer.err
    assert answer.err.endswith("run: rounds: must be a whole number between 0 and 10000, got -1\n")


def test_an_unexpected_error_is_one_sentence_too(monkeypatch: pytest.MonkeyPatch):
    def breaks(arguments: object) -> int:
        raise KeyError("gone")

    monkeypatch.setattr(main, "list_runs", breaks)
    answer = run_command("runs")
    assert (answer.code, answer.out) == (1, "")
    assert answer.sentence() == "KeyError: 'gone'. This should not happen: --debug shows where."
    assert "Traceback" in run_command("runs --debug").err


# --- homes -------------------------------------------------------------------------------------------------


def a_file_in_its_place(home: Path) -> None:
    home.write_text("precious")


def garbage(home: Path) -> None:
    home.mkdir()
    (home / "leaklens.db").write_bytes(b"precious" * 1000)


def newer(home: Path) -> None:
    Store(home).close()
    with sqlite3.connect(home / "leaklens.db") as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 98}")
    connection.close()


HOMES = [
    (a_file_in_its_place, "must be in a folder that can be written", "Choose another folder with LEAKLENS_HOME"),
    (garbage, "cannot be read: file is not a database. Move leaklens.db", "nothing was overwritten"),
    (newer, f"has version {len(MIGRATIONS) + 98}, this LeakLens knows up to {len(MIGRATIONS)}", "Update LeakLens"),
]


@pytest.mark.parametrize("line", [f"run {SMALL}", "runs", "cancel x", "delete x"], ids=lambda line: line.split()[0])
@pytest.mark.parametrize(("damage", "rule", "remedy"), HOMES)
def test_a_home_that_cannot_be_used_is_refused_and_left_unchanged(
    home: Path, damage: Callable[[Path], None], rule: str, remedy: str, line: str
):
    damage(home)
    files = [home] if home.is_file() else [home / "leaklens.db"]
    before = [file.read_bytes() for file in files]
    assert str(home) in refused(line, rule, remedy)
    assert [file.read_bytes() for file in files] == before


def test_tables_of_another_program_are_refused_and_kept(home: Path):
    home.mkdir()
    with sqlite3.connect(home / "leaklens.db") as connection:
        connection.execute("CREATE TABLE songs AS SELECT 'Erlkönig' AS title")
    refused(f"run {SMALL}", "holds tables of another program", "Move leaklens.db")
    assert connection.execute("SELECT * FROM songs").fetchall() == [("Erlkönig",)]
    connection.close()


def test_a_full_home_takes_no_more_runs(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "1e-9")
    remedy = "Delete runs that are no longer needed, or raise LEAKLENS_QUOTA_GB"
    assert refused(f"run {SMALL} --json", f" of 1 B allowed. {remedy}").startswith(f"{home}: holds ")
    monkeypatch.delenv("LEAKLENS_QUOTA_GB")
    assert run_command("runs --json").json == []


def test_a_quota_that_is_not_a_number_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "much")
    refused(f"run {SMALL}", "LEAKLENS_QUOTA_GB: must be a number above 0, got much")
