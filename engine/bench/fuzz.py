"""Damaged stores and specs: every answer is a result or a sentence, and every undamaged run stays in the list."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from engine.bench import BenchRow, Main, first_of
from engine.bench.damage import ODD_VALUES, changed_json, damage_store
from engine.errors import LeakLensError, refusal

ANSWERS = 20_000
SPECS_PER_ANSWER = 0.3
SEED = 1
SMALL = {"rounds": 2, "clients": 40, "sampled": 4, "epochs": 1, "batch": 100}
METHODS = ("fedavg", "udp-fedavg", "fedceo", "dp-fedavg", "scaffold")
COMMANDS = (
    "runs", "runs --json", "batches", "batches --json", "export {run} --out {out} --json", "cancel {run}",
    "cancel {run} --json",
)  # fmt: skip
RAW = ("Traceback", "should not happen", "KeyError", "TypeError", "AttributeError", "IndexError")


def measure(main: Main, count: int = ANSWERS, seed: int = SEED) -> BenchRow:
    """`count` answers of damaged stores, and three fuzzed specs for each ten of them."""
    if count < 1:
        raise refusal("bench fuzz: count", "must be at least 1", count, f"Try {ANSWERS}")
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        answers = 0
        original = _make_store(Path(folder) / "original")
        stores = 0
        while answers < count:
            answers += _ask_damaged(main, original, Path(folder) / "copy", seed + stores, wrong)
            stores += 1
    specs = max(1, round(count * SPECS_PER_ANSWER))
    wrong += fuzz_specs(specs, seed)
    ours = {"answers": answers, "stores": stores, "specs": specs, "wrong": len(wrong), **first_of(wrong)}
    return BenchRow("fuzz", ours, promise="no raw error, no other run hidden", kept=not wrong)


# --- stores ------------------------------------------------------------------------------------------------


def _make_store(home: Path) -> Path:
    """A home with two finished runs, a queued one and a queued attack."""
    from engine.jobs.batches import Batch, BatchMember
    from engine.jobs.leases import Lease
    from engine.jobs.process_id import ProcessId
    from engine.jobs.store import Store
    from engine.specs.attack import AttackSpec
    from engine.specs.run import RunSpec
    from engine.training.loop import run

    with closing(Store(home)) as store:
        for method in ("fedavg", "udp-fedavg"):
            spec = RunSpec(**SMALL, method=method)
            store.submit(spec.id, spec.canonical())
            lease = store.take(ProcessId.me(), 1)
            assert isinstance(lease, Lease)
            store.append(lease, [event for event in run(spec) if getattr(event, "payload", None) is None])
        waiting = RunSpec(**SMALL, seed=7)
        store.submit(waiting.id, waiting.canonical())
        attack = AttackSpec(run=spec, attack="dlg")
        members = (BatchMember(attack.id, attack.canonical()), BatchMember("", {}, "it cannot be requested"))
        store.batches.request(Batch("leak grid", "an attack", members), "visitor")
    return home


def _ask_damaged(main: Main, original: Path, home: Path, seed: int, wrong: list[str]) -> int:
    """Damage a copy, and ask about the damaged runs. Return the number of answers."""
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(original, home)
    with _home(home):
        known = {run["id"] for run in json.loads(answer(main, "runs --json")[1])}
        damaged = damage_store(home / "leaklens.db", seed, ODD_VALUES)
        out = home / "page.html"
        lines = dict.fromkeys(line.format(run=run, out=out) for run in sorted(damaged) for line in COMMANDS)
        answers = [*lines, *(f"delete {run}" for run in sorted(damaged)), "runs"]
        for line in answers:
            code, output = answer(main, line)
            wrong += [f"seed {seed}: {line}: {output.strip()[:200]}" for _ in _problems(code, output)]
            if line.startswith("runs"):
                hidden = [run for run in known - damaged if run not in output]
                wrong += [f"seed {seed}: {line}: run {run} is hidden" for run in hidden]
    return len(answers)


def answer(main: Main, line: str) -> tuple[int, str]:
    """The exit code and the output of a command in this process."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = main(line.split())
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue()


def _problems(code: int, output: str) -> Iterator[str]:
    """At most one problem of an answer."""
    if code not in (0, 1, 2):
        yield f"exit code {code}"
    elif any(word in output for word in RAW):
        yield "a raw error"


@contextmanager
def _home(home: Path) -> Iterator[None]:
    before = os.environ.get("LEAKLENS_HOME")
    os.environ["LEAKLENS_HOME"] = str(home)
    try:
        yield
    finally:
        if before is None:
            del os.environ["LEAKLENS_HOME"]
        else:
            os.environ["LEAKLENS_HOME"] = before


# --- specs -------------------------------------------------------------------------------------------------


def fuzz_specs(count: int, seed: int) -> list[str]:
    """What went wrong with specs of which one to three values were changed."""
    from engine.specs.attack import AttackSpec, attack_spec
    from engine.specs.run import RunSpec

    runs = [json.dumps(RunSpec(**SMALL, method=method).canonical()) for method in METHODS]
    attacks = [json.dumps(AttackSpec(run=RunSpec(**SMALL), attack=name).canonical()) for name in ("dlg", "map")]
    wrong = []
    for number in range(seed, seed + count):
        rng = random.Random(number)
        text = rng.choice([*runs, *attacks])
        for _ in range(rng.randint(1, 3)):
            text = changed_json(rng, text, ODD_VALUES)
        values = json.loads(text)
        if not isinstance(values, dict):
            continue
        try:
            _check_spec(attack_spec(values) if "attack" in values else RunSpec(**values))
        except LeakLensError:
            continue
        except Exception as error:
            wrong.append(f"spec {number}: {type(error).__name__}: {error}"[:300])
    return wrong


def _check_spec(spec: Any) -> None:
    """An accepted spec has an id, can be written, and lists its problems."""
    from engine.specs.run import RunSpec

    body = json.dumps(spec.canonical(), allow_nan=False)
    again = type(spec)(**json.loads(body))
    if again.id != spec.id:
        raise AssertionError("its id changes when it is written and read again")
    if isinstance(spec, RunSpec):
        spec.problems()
