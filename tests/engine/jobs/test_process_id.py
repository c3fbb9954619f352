"""Who is alive: this very process, not one that has its number now."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

from engine.jobs.process_id import GRACE_S, ProcessId, cores, started

ME = ProcessId.me()


def test_this_process_is_alive() -> None:
    assert ME.alive(time.time())
    assert started(ME.pid) == ME.start != ""


def test_another_process_with_its_number_is_not_it() -> None:
    assert not replace(ME, start=ME.start + "1").alive(time.time())


def test_a_process_that_ended_is_dead_even_before_its_parent_looks() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    holder = ProcessId(ME.place, child.pid, started(child.pid))
    assert holder.alive(time.time())
    child.kill()
    last = time.monotonic() + 10
    while holder.alive(time.time()) and time.monotonic() < last:
        time.sleep(0.01)
    assert not holder.alive(time.time())
    child.communicate()
    assert not holder.alive(time.time())


def test_from_elsewhere_only_the_heartbeat_counts() -> None:
    elsewhere = ProcessId("another machine", ME.pid, "1")
    assert elsewhere.alive(time.time() - GRACE_S + 5)
    assert not elsewhere.alive(time.time() - GRACE_S - 1)


def test_a_process_that_no_longer_beats_holds_nothing() -> None:
    assert not ME.alive(time.time() - GRACE_S - 1)


def test_there_is_at_least_one_core() -> None:
    assert cores() >= 1
