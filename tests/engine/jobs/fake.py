"""A fake run that needs numpy only. Its result is always the same, and its spec can order it to misbehave."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import BadInput
from engine.events import Event, Finished, Kept, Measured, Round, Started
from engine.jobs import payloads

EVERY = 3  # rounds between two checkpoints


def run(spec: Mapping[str, Any], resume: Kept | None, **how: Any) -> Iterator[Event]:
    """`rounds` steps of a chaotic map. One wrong bit, or one round too many, changes every later number."""
    start = resume.round if resume else 0
    note_start(spec, f"{spec['id']} {os.getpid()} {start} {how.get('threads')} {how.get('device')}")
    fault = spec.get("fault")
    if fault:
        prepare_fault(fault)
    x = np.linspace(0.1, 0.9, 64) + spec.get("seed", 0) / 97
    if resume is None:
        yield Started(spec["id"], dict(spec), {"size": x.size})
    else:
        assert resume.payload is not None
        x = resume.payload["x"]
    for round in range(start + 1, spec["rounds"] + 1):
        if how and how["stop"]():
            return
        yield Round(round, spec["rounds"], 1)
        misbehave(spec, round)
        x = np.modf(np.sin(x * 1.7 + round) * 1e3)[0]
        time.sleep(spec.get("pause", 0.0))
        yield Measured(round, "accuracy", float(np.abs(x).mean()))
        if round % EVERY == 0:
            yield Kept("exposure", f"exposure-{round}", round, payload={"seen": x[:4]})
            yield Kept("checkpoint", f"checkpoint-{round}", round, payload={"x": x})
    answer = hashlib.sha256(x.tobytes()).hexdigest()
    yield Kept("state", "state", spec["rounds"], {"answer": answer}, {"x": x})
    try:
        yield Finished(spec["rounds"], 0.0)
    finally:
        if spec.get("lingers"):
            wait({"until": spec["lingers"]})


def misbehave(spec: Mapping[str, Any], round: int) -> None:
    act = spec.get("act", {})
    rounds = act.get("rounds", [act.get("round")])
    if round in rounds:
        ACTS[act["kind"]]({**act, "now": round})


def busy(act: Mapping[str, Any]) -> None:
    while True:
        pass


def wait(act: Mapping[str, Any]) -> None:
    while not Path(act["until"]).exists():
        time.sleep(0.01)


def refuse(act: Mapping[str, Any]) -> None:
    raise BadInput("fake: seed: must be kind, got 7", "Choose another")


def divide_by_zero(act: Mapping[str, Any]) -> None:
    raise ZeroDivisionError("division by zero")


def memory(act: Mapping[str, Any]) -> None:
    raise MemoryError


def print_text(act: Mapping[str, Any]) -> None:
    os.write(1, b"a library prints to the descriptor\n")
    print("a library prints")


def write_garbage(act: Mapping[str, Any]) -> None:
    if is_first(act):
        for line in (b"{half a line\n", b'{"event": "unknown"}\n', b"[]\n"):
            os.write(event_pipe(), line)


def kill_worker(act: Mapping[str, Any]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_once_per_round(act: Mapping[str, Any]) -> None:
    """Kill this process once in each of the rounds."""
    if is_first({"marker": f"{act['marker']}-{act['now']}"}):
        kill_worker(act)


KINDS = (
    busy, wait, refuse, divide_by_zero, memory, print_text, write_garbage, kill_worker, kill_once_per_round,
)  # fmt: skip
ACTS = {act.__name__: act for act in KINDS}


def prepare_fault(fault: Mapping[str, Any]) -> None:
    """End this process once, at one exact moment while it stores a payload."""
    original_write = payloads.write
    original_save = payloads._save

    def write(home: Any, run: str, name: str, payload: Any) -> None:
        original_write(home, run, name, payload)
        if fault["moment"] == "after-file" and name == fault["name"] and is_first(fault):
            os.kill(os.getpid(), signal.SIGKILL)  # the file exists, but its event was not written

    def save(path: Path, payload: Any) -> None:
        original_save(path, payload)
        if fault["moment"] == "inside-file" and fault["name"] in path.name and is_first(fault):
            os.truncate(path, 100)
            os.kill(os.getpid(), signal.SIGKILL)

    payloads.write = write
    payloads._save = save


def is_first(act: Mapping[str, Any]) -> bool:
    """True once, over all processes: the first caller creates the marker file."""
    try:
        Path(act["marker"]).open("x").close()
    except FileExistsError:
        return False
    return True


def event_pipe() -> int:
    """The worker's private pipe: the one pipe open for writing that is neither stdout nor stderr."""
    numbers = map(int, os.listdir("/proc/self/fd"))
    (pipe,) = [number for number in numbers if number > 2 and is_writable_pipe(number)]
    return pipe


def is_writable_pipe(number: int) -> bool:
    try:
        mode = os.fstat(number).st_mode
        flags = Path(f"/proc/self/fdinfo/{number}").read_text().split("flags:")[1]
    except OSError:  # the descriptor that listed the folder
        return False
    return stat.S_ISFIFO(mode) and int(flags.split()[0], 8) & os.O_ACCMODE == os.O_WRONLY


def note_start(spec: Mapping[str, Any], line: str) -> None:
    """Write one line per start, so that a test can count them."""
    path = spec.get("starts")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{line}\n")
