"""The identity of the process that owns a lease, whether it is alive, and how many cores it may use."""

from __future__ import annotations

import math
import os
import platform
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

GRACE_S = 30.0  # a lease that was not renewed for this long is free, whichever process owns it
ALIVE = "?"  # the process exists, but this system does not report when it started


@dataclass(frozen=True)
class ProcessId:
    """One process. The start time and the machine keep a reused process number from being taken for it."""

    place: str
    pid: int
    start: str

    @classmethod
    def me(cls) -> ProcessId:
        """The current process."""
        return _process_id(os.getpid())

    def alive(self, beat: float) -> bool:
        """True if the last heartbeat is recent and, on this machine, the process itself still exists."""
        if time.time() - beat > GRACE_S:
            return False
        if self == ProcessId.me() or self.place != machine():
            return True
        return start_time(self.pid) == self.start


@cache
def _process_id(pid: int) -> ProcessId:
    """Cached: callers need it many times a second, and it never changes."""
    return ProcessId(machine(), pid, start_time(pid))


@cache
def machine() -> str:
    """Host name, boot and process namespace. Within these three a process number means one process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        boot = ""
        namespace = ""
    return f"{platform.node()}/{boot}/{namespace}"


def start_time(pid: int) -> str:
    """When a process started, as the kernel writes it. Empty if the process ended or is a zombie."""
    if not Path("/proc/self/stat").exists():
        return _probe(pid)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    state = fields[0]
    return "" if state in "ZX" else fields[19]


def cores() -> int:
    """Cores that this process may use: its affinity, limited by the CPU quota of a container."""
    count = _affinity()
    try:
        share, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count, math.ceil(int(share) / int(period)))
    except (OSError, ValueError):
        pass
    return max(1, count)


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _probe(pid: int) -> str:
    if os.name == "nt":  # on Windows, signal 0 does not test for existence
        return ALIVE
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return ALIVE
    return ALIVE
