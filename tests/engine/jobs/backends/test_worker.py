"""The worker process: its orders and events over the pipes, and how it reports a job that fails."""

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
from engine.jobs import payloads
from engine.jobs.backends import worker
from engine.jobs.backends.base import ENTRIES
from engine.jobs.backends.worker import Job, failure, perform
from engine.jobs.home import Home
from tests.engine.jobs import fake
from tests.engine.jobs.conftest import wait_until
from tests.engine.jobs.serve import FAKE

SCRIPTED: list[Event | BaseException] = []


def scripted(spec: Mapping[str, Any], resume: Kept | None, **how: Any) -> Iterator[Event]:
    for entry in SCRIPTED:
        if isinstance(entry, BaseException):
            raise entry
        yield entry


@pytest.fixture
def job(home: Path) -> Job:
    return Job("token", "one", FAKE, {"id": "one", "rounds": 6}, None, str(Home.find().path), 1, "cpu")


def perform_all(job: Job, *script: Event | BaseException) -> list[Event]:
    """The events of a job. With a script, the job yields these events and raises these errors instead."""
    if script:
        SCRIPTED[:] = script
        job = replace(job, entry=f"{__name__}:scripted")
    return [decode(json.loads(line.text)) for line in perform(job, set())]


def test_a_job_has_the_events_of_the_run_and_stores_its_payloads(job: Job) -> None:
    assert perform_all(job) == list(fake.run(job.spec, None))
    arrays = payloads.read(Home(Path(job.home)), "one", "checkpoint-6")
    assert arrays["x"].shape == (64,)


def test_a_job_resumes_from_a_checkpoint_bit_for_bit(job: Job) -> None:
    events = perform_all(job)
    checkpoints = [event for event in events if isinstance(event, Kept) and event.kind == "checkpoint"]
    rest = events[events.index(checkpoints[0]) + 1 :]
    assert perform_all(replace(job, resume=encode(checkpoints[0]))) == rest


@pytest.mark.parametrize("entry", ENTRIES.values())
def test_a_job_for_a_card_that_is_missing_fails_with_the_sentence(job: Job, entry: str) -> None:
    run = {"rounds": 1, "clients": 40, "sampled": 4}
    spec = {"run": run, "attack": {"name": "analytic"}} if "attack" in entry else run
    event = perform_all(replace(job, entry=entry, spec=spec, device="cuda:900"))[-1]
    assert isinstance(event, Failed)
    assert event.reason == "run: device: must be cpu, or cuda where a GPU is found, got cuda:900"
    assert event.remedy.startswith("Leave --device out")


def test_an_unreadable_checkpoint_fails_with_its_name(job: Job) -> None:
    (event,) = perform_all(replace(job, resume=encode(Kept("checkpoint", "checkpoint-3", 3))))
    assert isinstance(event, Failed)
    assert "checkpoint-3.npz: is missing" in event.reason
    assert event.remedy


@pytest.mark.parametrize(
    ("act", "reason", "remedy"),
    [
        ("refuse", "fake: seed: must be kind, got 7", "Choose another"),
        (
            "divide_by_zero",
            "the run stopped at an unexpected error (ZeroDivisionError: division by zero)",
            "See the traceback",
        ),
        ("memory", "the run needs more memory than this machine has left", "Choose a smaller model"),
    ],
)
def test_an_error_becomes_a_sentence_and_a_remedy(act: str, reason: str, remedy: str, job: Job) -> None:
    end = perform_all(replace(job, spec={**job.spec, "act": {"kind": act, "round": 2}}))[-1]
    assert isinstance(end, Failed)
    assert end.reason == reason
    assert end.remedy.startswith(remedy)
    assert "Traceback" in end.trace
    assert "misbehave" in end.trace
    assert "Traceback" not in end.reason


def test_other_errors_that_mean_no_memory_and_no_space() -> None:
    error = RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried")
    assert "more memory" in failure(error).reason
    assert failure(OSError(errno.ENOSPC, "No space left on device")).reason == "no space is left on the disk"
    assert failure(HomeFull("home: is full", "Delete runs")).remedy == "Delete runs"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), RecursionError("deep")])
def test_a_job_raises_no_error(error: BaseException, job: Job) -> None:
    assert isinstance(perform_all(job, Round(1, 2, 3), error)[-1], Failed)


def test_a_missing_entry_point_fails_with_its_name(job: Job) -> None:
    (event,) = perform_all(replace(job, entry="engine.jobs.nowhere:run"))
    assert isinstance(event, Failed)
    assert "nowhere" in event.reason


def test_a_run_without_a_final_event_has_failed(job: Job) -> None:
    end = perform_all(job, Round(1, 2, 3))[-1]
    assert isinstance(end, Failed)
    assert end.reason == "the run ended without a result"


def test_no_event_follows_the_end(job: Job) -> None:
    assert perform_all(job, Finished(1, 0.1), Round(2, 2, 3)) == [Finished(1, 0.1)]


def test_an_event_that_is_no_json_fails_the_run_and_not_the_worker(job: Job) -> None:
    end = perform_all(job, Round(1, 2, 3, numbers={"loss": np.zeros(2)}))[-1]  # type: ignore[dict-item]
    assert isinstance(end, Failed)
    assert "JSON" in end.reason


def test_a_payload_name_used_in_two_rounds_is_refused(job: Job) -> None:
    arrays = {"x": np.zeros(1)}
    checkpoints = [Kept("checkpoint", "checkpoint", round, payload=arrays) for round in (1, 2)]
    end = perform_all(job, *checkpoints)[-1]
    assert isinstance(end, Failed)
    assert end.reason == "payload checkpoint: two rounds use this name"


def test_a_cancelled_job_ends_where_its_run_stops_and_outranks_an_error(job: Job) -> None:
    def stop_when_cancelled(*_: Any, stop: Callable[[], bool], **__: Any) -> Iterator[Event]:
        yield Round(4, 9, 3)
        if stop():
            yield Kept("checkpoint", "checkpoint-4", 4, payload={"x": np.zeros(1)})
            return
        yield Round(5, 9, 3)

    fake.stop_when_cancelled = stop_when_cancelled  # type: ignore[attr-defined]
    cancelled: set[str] = set()
    lines = perform(replace(job, entry="tests.engine.jobs.fake:stop_when_cancelled"), cancelled)
    assert decode(json.loads(next(lines).text)) == Round(4, 9, 3)
    cancelled.add("token")
    assert [decode(json.loads(line.text)) for line in lines] == [Kept("checkpoint", "checkpoint-4", 4), Cancelled(4)]
    SCRIPTED[:] = [ValueError("broke")]
    (line,) = perform(replace(job, entry=f"{__name__}:scripted"), {"token"})
    assert decode(json.loads(line.text)) == Cancelled(0)


def test_the_first_line_is_written_at_once_and_the_next_ones_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "GATHER_S", 3600.0)
    written: list[bytes] = []

    class Stream(io.BytesIO):
        def write(self, data: Any) -> int:
            written.append(bytes(data))
            return len(data)

    writer = worker.EventWriter(Stream())
    writer.write("a")
    assert written == [b"a\n"]
    writer.write("b")
    writer.write("c")
    assert written == [b"a\n"]
    writer.write("d", now=True)
    assert written == [b"a\n", b"b\nc\nd\n"]


def test_collected_lines_are_written_after_a_moment() -> None:
    stream = io.BytesIO()
    writer = worker.EventWriter(stream)
    for word in ("a", "b", "c"):
        writer.write(word)
    assert wait_until(lambda: stream.getvalue() == b"a\nb\nc\n")


def test_a_checkpoint_and_the_end_are_written_at_once(job: Job) -> None:
    now = [line.now for line in perform(job, set())]
    assert now == [isinstance(event, Kept) or event.ends for event in fake.run(job.spec, None)]
    assert now[-1] and not all(now)


# --- the process -------------------------------------------------------------------------------------------


class WorkerProcess:
    """A worker process and every line it has written."""

    def __init__(self, *preload: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "engine.jobs.backends.worker", *preload],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.messages: list[dict[str, Any]] = []
        self.times: list[float] = []
        threading.Thread(target=self._read_lines, daemon=True).start()

    def _read_lines(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.times.append(time.monotonic())
            self.messages.append(json.loads(line))

    def send(self, order: Mapping[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()

    def has(self, key: str, value: Any) -> bool:
        return any(line.get(key) == value for line in self.messages)


@pytest.fixture
def start_worker() -> Iterator[Callable[..., WorkerProcess]]:
    """Start workers that end with the test."""
    workers: list[WorkerProcess] = []

    def start_worker(*preload: str) -> WorkerProcess:
        workers.append(WorkerProcess(*preload))
        return workers[-1]

    yield start_worker
    for started in workers:
        started.process.kill()
        started.process.wait()
        for pipe in (started.process.stdin, started.process.stderr):
            assert pipe
            pipe.close()


def test_a_worker_runs_one_job_after_another(job: Job, start_worker: Callable[..., WorkerProcess]) -> None:
    started = start_worker("json")
    for token in ("a", "b"):
        started.send(asdict(replace(job, token=token)))
    wait_until(lambda: started.has("done", "b"))
    events = [encode(event) for event in fake.run(job.spec, None)]
    assert started.messages == [{"ready": started.process.pid}, *events, {"done": "a"}, *events, {"done": "b"}]


def test_output_of_libraries_stays_out_of_the_events(job: Job, start_worker: Callable[..., WorkerProcess]) -> None:
    started = start_worker()
    started.send(asdict(replace(job, spec={**job.spec, "act": {"kind": "print_text", "round": 2}})))
    wait_until(lambda: started.has("done", "token"))
    assert started.has("event", "finished")
    started.process.kill()
    assert started.process.stderr
    output = started.process.stderr.read()
    assert b"a library prints to the descriptor" in output


def test_the_first_event_is_written_at_once(
    job: Job, start_worker: Callable[..., WorkerProcess], tmp_path: Path
) -> None:
    started = start_worker()
    gate = tmp_path / "gate"
    act = {"kind": "wait", "round": 1, "until": str(gate)}
    started.send(asdict(replace(job, spec={**job.spec, "act": act})))
    wait_until(lambda: started.has("event", "round"))  # it would never arrive if it waited for the next one
    assert not started.has("event", "measured")
    gate.touch()
    wait_until(lambda: started.has("done", "token"))


def test_a_busy_worker_ends_with_its_supervisor(job: Job, start_worker: Callable[..., WorkerProcess]) -> None:
    started = start_worker()
    started.send(asdict(replace(job, spec={**job.spec, "act": {"kind": "busy", "round": 2}})))
    wait_until(lambda: any(line.get("round") == 2 for line in started.messages))
    assert started.process.poll() is None
    assert started.process.stdin
    started.process.stdin.close()
    assert started.process.wait(10) == 0


def test_a_cancel_takes_effect_while_a_job_runs(job: Job, start_worker: Callable[..., WorkerProcess]) -> None:
    started = start_worker()
    started.send(asdict(replace(job, spec={**job.spec, "rounds": 10**6, "pause": 0.001})))
    wait_until(lambda: any(line.get("round") == 5 for line in started.messages))
    started.send({"cancel": "another"})
    started.send({"cancel": "token"})
    wait_until(lambda: started.has("done", "token"))
    assert started.messages[-2]["event"] == "cancelled"
    rounds = [line["round"] for line in started.messages if line.get("event") == "round"]
    assert started.messages[-2]["round"] == max(rounds)
    started.send(asdict(replace(job, token="next")))
    wait_until(lambda: started.has("done", "next"))
    assert started.messages[-2]["event"] == "finished"


def test_ctrl_c_is_for_the_supervisor(job: Job, start_worker: Callable[..., WorkerProcess]) -> None:
    started = start_worker()
    wait_until(lambda: started.has("ready", started.process.pid))
    started.process.send_signal(signal.SIGINT)
    started.send(asdict(job))
    wait_until(lambda: started.has("done", "token"))
    assert started.has("event", "finished")


def test_pages_come_before_runs(start_worker: Callable[..., WorkerProcess]) -> None:
    started = start_worker()
    wait_until(lambda: started.has("ready", started.process.pid))
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, started.process.pid) == min(19, own + worker.NICE)


def test_a_worker_that_cannot_warm_up_ends(start_worker: Callable[..., WorkerProcess]) -> None:
    started = start_worker("engine.jobs.nowhere")
    assert started.process.wait(20) == 1
    assert started.process.stderr
    assert b"nowhere" in started.process.stderr.read()


def test_no_module_of_the_jobs_forks() -> None:
    modules = list((ROOT / "engine" / "jobs").glob("*.py"))
    assert len(modules) > 10
    for path in modules:
        text = path.read_text()
        assert "multiprocessing" not in text
        assert "os.fork" not in text
        assert "preexec_fn" not in text


def test_a_full_graphics_card_is_not_a_full_machine() -> None:
    failed = failure(RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ..."))
    assert failed.reason == "the GPU has too little memory for this run"
    assert failed.remedy.startswith("Leave --device out, or choose a smaller model")
