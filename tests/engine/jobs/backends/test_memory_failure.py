"""c09: a run that lacks memory ends after the first death of its worker, and names the memory that it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine import memory
from engine.environment import ROOT
from engine.events import Failed
from engine.jobs.backends import memory_failure
from engine.jobs.store import Store
from engine.memory import MemoryLimit, lacks_memory
from tests.engine.jobs.conftest import SubmitRun, Supervise, wait_for_end
from tests.engine.jobs.test_supervisor import events_of, start_lines
from tests.engine.makers import SMALL, tiny_spec

SPEC = tiny_spec().canonical()


def limited(monkeypatch: pytest.MonkeyPatch, size: float, need: float | None = 1e9, shared: bool = False) -> None:
    monkeypatch.setattr(memory, "limit", lambda: MemoryLimit(size, shared, "the container"))
    monkeypatch.setattr(memory_failure, "needed", lambda spec, threads: need)


def test_c09_the_first_death_by_memory_ends_the_run(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, 0.6e9)
    supervise()
    submit_run(act={"kind": "kill_worker", "round": 8})
    assert wait_for_end(store, "one") == "failed"
    end = events_of(store)[-1]
    assert isinstance(end, Failed)
    assert end.reason == "the run needs about 1 GB of memory, and the limit of the container is 0.6 GB"
    assert end.remedy.startswith("Allow 1.2 GB, or choose a smaller model")
    assert len(start_lines(starts)) == 1


def test_c09_a_kill_within_the_limit_is_no_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, 2e9)
    assert memory_failure.of_exit(SPEC, 1, "SIGKILL", "", memory.oom_kills()) is None
    limited(monkeypatch, 2e9, need=None)
    assert memory_failure.of_exit({}, 1, "SIGKILL", "", memory.oom_kills()) is None
    limited(monkeypatch, 0.6e9)
    assert memory_failure.of_exit(SPEC, 1, "", "", memory.oom_kills()) is None  # it ended by itself
    assert memory_failure.of_exit(SPEC, 1, "SIGTERM", "", memory.oom_kills()) is None
    monkeypatch.setattr(memory, "limit", lambda: None)
    assert memory_failure.of_exit(SPEC, 1, "SIGKILL", "", memory.oom_kills()) is None


def test_c09_a_container_also_holds_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "resident", lambda: 0.3e9)
    limited(monkeypatch, 0.6e9, need=0.4e9, shared=True)
    failed = memory_failure.of_exit(SPEC, 1, "SIGKILL", "", memory.oom_kills())
    assert failed and failed.reason.startswith("the run needs about 0.7 GB of memory")


@pytest.mark.parametrize(
    "trace", ["MemoryError", "terminate called after throwing std::bad_alloc", "libtorch_cpu.so: failed to map segment"]
)
def test_c09_what_the_worker_wrote_is_evidence(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, 0.6e9, need=0.4e9)
    failed = memory_failure.of_exit(SPEC, 1, "", trace, 0)
    assert failed and failed.reason.endswith("its libraries more: the limit of the container is 0.6 GB")


def test_c09_a_kill_that_the_system_counts_is_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, 2e9, need=None)
    monkeypatch.setattr(memory, "oom_kills", lambda: 3)
    assert memory_failure.of_exit({}, 1, "SIGKILL", "", 2)
    assert memory_failure.of_exit({}, 1, "SIGKILL", "", 3) is None


def test_c09_the_forecast_of_a_run_and_of_an_attacked_run() -> None:
    need = memory_failure.needed(SPEC, 2)
    assert need and 0.3e9 < need < 1e9
    assert memory_failure.needed({"attack": {"name": "map"}, "run": SPEC}, 2) == need
    assert memory_failure.needed({"rounds": 3}, 2) is None


def test_c09_limits_of_containers_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = tmp_path / "memory" / "class"
    group.mkdir(parents=True)
    (group / "memory.limit_in_bytes").write_text("600000000\n")
    (group / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 4\n")
    (tmp_path / "memory.max").write_text("max\n")
    member = tmp_path / "cgroup"
    member.write_text("4:memory:/class\n3:cpu:/\n0::/\n")
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    monkeypatch.setattr(memory, "MEMBERSHIP", member)
    assert memory.limit() == MemoryLimit(600000000, True, "the container")
    assert memory.oom_kills() == 4
    (tmp_path / "memory.max").write_text("500000000\n")
    assert memory.limit() == MemoryLimit(500000000, True, "the container")


def test_c09_a_damaged_file_is_no_lack_of_memory() -> None:
    try:
        try:
            raise MemoryError
        except MemoryError:
            raise ValueError("damaged") from None
    except ValueError as error:
        assert not lacks_memory(error)
    assert lacks_memory(ImportError("libtorch_cpu.so: failed to map segment from shared object"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit of an address space")
def test_c09_a_run_in_a_small_address_space_names_the_memory(home: Path) -> None:
    command = f"ulimit -v 1000000; exec {sys.executable} -m engine run {SMALL}"
    answer = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 1
    assert "the limit of `ulimit -v` is 1 GB. " in answer.stderr
    assert "cannot be read" not in answer.stderr and "should not happen" not in answer.stderr
