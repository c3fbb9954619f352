"""The identity of a process: it is alive only if the process with its number is still the same one."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

from engine.jobs.process_id import GRACE_S, ProcessId, cores, start_time

CURRENT = ProcessId.me()


def test_this_process_is_alive() -> None:
    assert CURRENT.alive(time.time())
    assert start_time(CURRENT.pid) == CURRENT.start != ""


def test_a_later_process_with_the_same_number_is_not_taken_for_it() -> None:
    assert not replace(CURRENT, start=CURRENT.start + "1").alive(time.time())


def test_an_ended_process_is_not_alive_even_before_its_parent_waits() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = ProcessId(CURRENT.place, child.pid, start_time(child.pid))
    assert owner.alive(time.time())
    child.kill()
    deadline = time.monotonic() + 10
    while owner.alive(time.time()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not owner.alive(time.time())
    child.communicate()
    assert not owner.alive(time.time())


def test_on_another_machine_only_the_heartbeat_counts() -> None:
    remote = ProcessId("another machine", CURRENT.pid, "1")
    assert remote.alive(time.time() - GRACE_S + 5)
    assert not remote.alive(time.time() - GRACE_S - 1)


def test_a_process_without_a_recent_heartbeat_is_not_alive() -> None:
    assert not CURRENT.alive(time.time() - GRACE_S - 1)


def test_there_is_at_least_one_core() -> None:
    assert cores() >= 1
