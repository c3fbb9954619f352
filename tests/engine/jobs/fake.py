"""A run made of numpy alone: the same answer every time, and misbehaviour to order."""

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
    """`rounds` of a chaotic map: one wrong bit, or one round too many, changes every later number."""
    note(spec, f"{spec['id']} {os.getpid()} {resume.round if resume else 0} {how.get('threads')} {how.get('device')}")
    if fault := spec.get("fault"):
        prepare(fault)
    x = np.linspace(0.1, 0.9, 64) + spec.get("seed", 0) / 97
    if resume is None:
        yield Started(spec["id"], dict(spec), {"size": x.size})
    else:
        assert resume.payload is not None
        x = resume.payload["x"]
    for round in range(resume.round + 1 if resume else 1, spec["rounds"] + 1):
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
    yield Kept("state", "state", spec["rounds"], {"answer": hashlib.sha256(x.tobytes()).hexdigest()}, {"x": x})
    try:
        yield Finished(spec["rounds"], 0.0)
    finally:
        if spec.get("lingers"):
            wait({"until": spec["lingers"]})


def misbehave(spec: Mapping[str, Any], round: int) -> None:
    act = spec.get("act", {})
    if round in act.get("rounds", [act.get("round")]):
        ACTS[act["kind"]]({**act, "now": round})


def busy(act: Mapping[str, Any]) -> None:
    while True:
        pass


def wait(act: Mapping[str, Any]) -> None:
    while not Path(act["until"]).exists():
        time.sleep(0.01)


def refuse(act: Mapping[str, Any]) -> None:
    raise BadInput("fake: seed: must be kind, got 7", "Choose another")


def trip(act: Mapping[str, Any]) -> None:
    raise ZeroDivisionError("division by zero")


def memory(act: Mapping[str, Any]) -> None:
    raise MemoryError


def noise(act: Mapping[str, Any]) -> None:
    os.write(1, b"a library prints to the descriptor\n")
    print("a library prints")


def garble(act: Mapping[str, Any]) -> None:
    if first(act):
        for line in (b"{half a line\n", b'{"event": "unheard"}\n', b"[]\n"):
            os.write(way_out(), line)


def die(act: Mapping[str, Any]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stumble(act: Mapping[str, Any]) -> None:
    """Die once in each of the rounds."""
    if first({"marker": f"{act['marker']}-{act['now']}"}):
        die(act)


ACTS = {act.__name__: act for act in (busy, wait, refuse, trip, memory, noise, garble, die, stumble)}


def prepare(fault: Mapping[str, Any]) -> None:
    """End this process at one exact moment of putting a payload aside, once."""
    whole = payloads.write
    saved = payloads._save

    def write(home: Any, run: str, name: str, payload: Any) -> None:
        whole(home, run, name, payload)
        if fault["moment"] == "after-file" and name == fault["name"] and first(fault):
            os.kill(os.getpid(), signal.SIGKILL)  # the file is there, its event was not told

    def save(path: Path, payload: Any) -> None:
        saved(path, payload)
        if fault["moment"] == "inside-file" and fault["name"] in path.name and first(fault):
            os.truncate(path, 100)
            os.kill(os.getpid(), signal.SIGKILL)

    payloads.write = write
    payloads._save = save


def first(act: Mapping[str, Any]) -> bool:
    """Only once, over all processes: the marker says whether it has happened."""
    try:
        Path(act["marker"]).open("x").close()
    except FileExistsError:
        return False
    return True


def way_out() -> int:
    """The worker's private pipe: the one pipe open for writing that is neither stdout nor stderr."""
    (number,) = [number for number in map(int, os.listdir("/proc/self/fd")) if number > 2 and writable_pipe(number)]
    return number


def writable_pipe(number: int) -> bool:
    try:
        mode, flags = os.fstat(number).st_mode, Path(f"/proc/self/fdinfo/{number}").read_text().split("flags:")[1]
    except OSError:  # the descriptor that listed the folder
        return False
    return stat.S_ISFIFO(mode) and int(flags.split()[0], 8) & os.O_ACCMODE == os.O_WRONLY


def note(spec: Mapping[str, Any], line: str) -> None:
    """One line per start, so that a test can count them."""
    if path := spec.get("starts"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{line}\n")
