"""The worker process, spoken to over its pipes, and what it says when a job goes wrong."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.environment import ROOT
from engine.errors import HomeFull
from engine.events import Cancelled, Event, Failed, Finished, Kept, Round, decode, encode
from engine.jobs import payloads, worker
from engine.jobs.home import Home
from engine.jobs.worker import Job, failure, perform
from tests.engine.jobs import fake
from tests.engine.jobs.conftest import until
from tests.engine.jobs.serve import FAKE

SCRIPTED: list[Event | BaseException] = []


def scripted(spec: Mapping[str, Any], resume: Kept | None, **how: Any) -> Iterator[Event]:
    for one in SCRIPTED:
        if isinstance(one, BaseException):
            raise one
        yield one


@pytest.fixture
def job(home: Path) -> Job:
    return Job("token", "one", FAKE, {"id": "one", "rounds": 6}, None, str(Home.find().path), 1, "cpu")


def told(job: Job, *script: Event | BaseException) -> list[Event]:
    if script:
        SCRIPTED[:] = script
        job = replace(job, entry=f"{__name__}:scripted")
    return [decode(json.loads(line.text)) for line in perform(job, set())]


def test_a_job_tells_what_the_run_tells_and_puts_payloads_aside(job: Job) -> None:
    assert told(job) == list(fake.run(job.spec, None))
    found = payloads.read(Home(Path(job.home)), "one", "checkpoint-6")
    assert found["x"].shape == (64,)


def test_a_job_goes_on_from_a_checkpoint_bit_for_bit(job: Job) -> None:
    whole = told(job)
    place = next(place for place, event in enumerate(whole) if isinstance(event, Kept) and event.kind == "checkpoint")
    assert told(replace(job, resume=encode(whole[place]))) == whole[place + 1 :]


def test_a_checkpoint_that_cannot_be_read_fails_by_name(job: Job) -> None:
    (event,) = told(replace(job, resume=encode(Kept("checkpoint", "checkpoint-3", 3))))
    assert isinstance(event, Failed)
    assert "checkpoint-3.npz: is missing" in event.reason
    assert event.remedy


@pytest.mark.parametrize(
    ("act", "reason", "remedy"),
    [
        ("refuse", "fake: seed: must be kind, got 7", "Choose another"),
        ("trip", "the run met an error of its own (ZeroDivisionError: division by zero)", "The trace"),
        ("memory", "the run needs more memory than this machine has left", "Choose a smaller model"),
    ],
)
def test_an_error_is_a_sentence_and_a_remedy(act: str, reason: str, remedy: str, job: Job) -> None:
    end = told(replace(job, spec={**job.spec, "act": {"kind": act, "round": 2}}))[-1]
    assert isinstance(end, Failed)
    assert end.reason == reason
    assert end.remedy.startswith(remedy)
    assert "Traceback" in end.trace
    assert "misbehave" in end.trace
    assert "Traceback" not in end.reason


def test_other_words_for_no_memory_and_no_space() -> None:
    torch_says = RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried")
    assert "more memory" in failure(torch_says).reason
    assert failure(OSError(errno.ENOSPC, "No space left on device")).reason == "no space is left on the disk"
    assert failure(HomeFull("home: is full", "Delete runs")).remedy == "Delete runs"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), RecursionError("deep")])
def test_no_error_gets_out_of_a_job(error: BaseException, job: Job) -> None:
    assert isinstance(told(job, Round(1, 2, 3), error)[-1], Failed)


def test_a_part_that_does_not_exist_fails_in_words(job: Job) -> None:
    (event,) = told(replace(job, entry="engine.jobs.nowhere:run"))
    assert isinstance(event, Failed)
    assert "nowhere" in event.reason


def test_a_run_without_an_ending_has_failed(job: Job) -> None:
    end = told(job, Round(1, 2, 3))[-1]
    assert isinstance(end, Failed)
    assert end.reason == "the run ended without a result"


def test_nothing_is_told_after_the_end(job: Job) -> None:
    assert told(job, Finished(1, 0.1), Round(2, 2, 3)) == [Finished(1, 0.1)]


def test_what_is_no_json_fails_instead_of_ending_the_worker(job: Job) -> None:
    end = told(job, Round(1, 2, 3, numbers={"loss": np.zeros(2)}))[-1]  # type: ignore[dict-item]
    assert isinstance(end, Failed)
    assert "JSON" in end.reason


def test_one_name_for_two_rounds_is_refused(job: Job) -> None:
    arrays = {"x": np.zeros(1)}
    end = told(job, *(Kept("checkpoint", "checkpoint", round, payload=arrays) for round in (1, 2)))[-1]
    assert isinstance(end, Failed)
    assert end.reason == "payload checkpoint: kept in two rounds under one name"


def test_a_cancelled_job_ends_where_its_run_stops_and_wins_over_an_error(job: Job) -> None:
    def polite(*_: Any, stop: Callable[[], bool], **__: Any) -> Iterator[Event]:
        yield Round(4, 9, 3)
        if stop():
            yield Kept("checkpoint", "checkpoint-4", 4, payload={"x": np.zeros(1)})
            return
        yield Round(5, 9, 3)

    fake.polite = polite  # type: ignore[attr-defined]
    cancelled: set[str] = set()
    lines = perform(replace(job, entry="tests.engine.jobs.fake:polite"), cancelled)
    assert decode(json.loads(next(lines).text)) == Round(4, 9, 3)
    cancelled.add("token")
    assert [decode(json.loads(line.text)) for line in lines] == [Kept("checkpoint", "checkpoint-4", 4), Cancelled(4)]
    SCRIPTED[:] = [ValueError("broke")]
    (line,) = perform(replace(job, entry=f"{__name__}:scripted"), {"token"})
    assert decode(json.loads(line.text)) == Cancelled(0)


def test_the_first_line_leaves_at_once_and_the_next_ones_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "GATHER_S", 3600.0)
    written: list[bytes] = []

    class Stream(io.BytesIO):
        def write(self, data: Any) -> int:
            written.append(bytes(data))
            return len(data)

    wire = worker.EventWriter(Stream())
    wire.tell("a")
    assert written == [b"a\n"]
    wire.tell("b")
    wire.tell("c")
    assert written == [b"a\n"]
    wire.tell("d", now=True)
    assert written == [b"a\n", b"b\nc\nd\n"]


def test_what_is_gathered_leaves_by_itself() -> None:
    stream = io.BytesIO()
    wire = worker.EventWriter(stream)
    for word in ("a", "b", "c"):
        wire.tell(word)
    assert until(lambda: stream.getvalue() == b"a\nb\nc\n")


def test_a_checkpoint_and_the_end_leave_at_once(job: Job) -> None:
    now = [line.now for line in perform(job, set())]
    assert now == [isinstance(event, Kept) or event.ends for event in fake.run(job.spec, None)]
    assert now[-1] and not all(now)


# --- the process -------------------------------------------------------------------------------------------


class Talk:
    """A worker process and everything it has said."""

    def __init__(self, *preload: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "engine.jobs.worker", *preload],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.said: list[dict[str, Any]] = []
        self.times: list[float] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.times.append(time.monotonic())
            self.said.append(json.loads(line))

    def order(self, order: Mapping[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()

    def heard(self, key: str, value: Any) -> bool:
        return any(line.get(key) == value for line in self.said)


@pytest.fixture
def talk() -> Iterator[Callable[..., Talk]]:
    begun: list[Talk] = []

    def talk(*preload: str) -> Talk:
        begun.append(Talk(*preload))
        return begun[-1]

    yield talk
    for one in begun:
        one.process.kill()
        one.process.wait()
        for pipe in (one.process.stdin, one.process.stderr):
            assert pipe
            pipe.close()


def test_one_worker_does_one_job_after_another(job: Job, talk: Callable[..., Talk]) -> None:
    one = talk("json")
    for token in ("a", "b"):
        one.order(asdict(replace(job, token=token)))
    until(lambda: one.heard("done", "b"))
    told = [encode(event) for event in fake.run(job.spec, None)]
    assert one.said == [{"ready": one.process.pid}, *told, {"done": "a"}, *told, {"done": "b"}]


def test_what_libraries_print_stays_out_of_the_events(job: Job, talk: Callable[..., Talk]) -> None:
    one = talk()
    one.order(asdict(replace(job, spec={**job.spec, "act": {"kind": "noise", "round": 2}})))
    until(lambda: one.heard("done", "token"))
    assert one.heard("event", "finished")
    one.process.kill()
    assert one.process.stderr
    noise = one.process.stderr.read()
    assert b"a library prints to the descriptor" in noise


def test_the_first_event_leaves_at_once(job: Job, talk: Callable[..., Talk], tmp_path: Path) -> None:
    one = talk()
    gate = tmp_path / "gate"
    act = {"kind": "wait", "round": 1, "until": str(gate)}
    one.order(asdict(replace(job, spec={**job.spec, "act": act})))
    until(lambda: one.heard("event", "round"))  # it would never come if it waited for the next one
    assert not one.heard("event", "measured")
    gate.touch()
    until(lambda: one.heard("done", "token"))


def test_a_worker_ends_with_its_supervisor_whatever_it_computes(job: Job, talk: Callable[..., Talk]) -> None:
    one = talk()
    one.order(asdict(replace(job, spec={**job.spec, "act": {"kind": "busy", "round": 2}})))
    until(lambda: any(line.get("round") == 2 for line in one.said))
    assert one.process.poll() is None
    assert one.process.stdin
    one.process.stdin.close()
    assert one.process.wait(10) == 0


def test_cancel_is_heard_while_a_job_runs(job: Job, talk: Callable[..., Talk]) -> None:
    one = talk()
    one.order(asdict(replace(job, spec={**job.spec, "rounds": 10**6, "pause": 0.001})))
    until(lambda: any(line.get("round") == 5 for line in one.said))
    one.order({"cancel": "another"})
    one.order({"cancel": "token"})
    until(lambda: one.heard("done", "token"))
    assert one.said[-2]["event"] == "cancelled"
    assert one.said[-2]["round"] == max(line["round"] for line in one.said if line.get("event") == "round")
    one.order(asdict(replace(job, token="next")))
    until(lambda: one.heard("done", "next"))
    assert one.said[-2]["event"] == "finished"


def test_ctrl_c_is_for_the_supervisor(job: Job, talk: Callable[..., Talk]) -> None:
    one = talk()
    until(lambda: one.heard("ready", one.process.pid))
    one.process.send_signal(signal.SIGINT)
    one.order(asdict(job))
    until(lambda: one.heard("done", "token"))
    assert one.heard("event", "finished")


def test_a_worker_that_cannot_warm_up_ends(talk: Callable[..., Talk]) -> None:
    one = talk("engine.jobs.nowhere")
    assert one.process.wait(20) == 1
    assert one.process.stderr
    assert b"nowhere" in one.process.stderr.read()


def test_nothing_here_forks() -> None:
    for path in (ROOT / "engine" / "runs").glob("*.py"):
        text = path.read_text()
        assert "multiprocessing" not in text
        assert "os.fork" not in text
        assert "preexec_fn" not in text
    assert os.name
