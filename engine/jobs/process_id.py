"""Who holds a lease, whether that process still lives, and how many cores it may use."""

from __future__ import annotations

import math
import os
import platform
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

GRACE_S = 30.0  # a lease not renewed for so long is free, whoever holds it
ALIVE = "?"  # a process is there, but this system does not say when it began


@dataclass(frozen=True)
class ProcessId:
    """A process, named so that a reused number or another machine is not taken for it."""

    place: str
    pid: int
    start: str

    @classmethod
    def me(cls) -> ProcessId:
        return _of(os.getpid())

    def alive(self, beat: float) -> bool:
        """From elsewhere only the heartbeat is seen; here the process itself must be there too."""
        if time.time() - beat > GRACE_S:
            return False
        return self == ProcessId.me() or self.place != place() or started(self.pid) == self.start


@cache
def _of(pid: int) -> ProcessId:
    """Asked many times a second; a process stays what it is."""
    return ProcessId(place(), pid, started(pid))


@cache
def place() -> str:
    """Machine, boot and process namespace: within one place a process number means one process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        boot = space = ""
    return f"{platform.node()}/{boot}/{space}"


def started(pid: int) -> str:
    """When a process began, in the words of the kernel; empty when it is gone or only its name is left."""
    if not Path("/proc/self/stat").exists():
        return _answers(pid)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def cores() -> int:
    """Cores this process may use: its affinity, and the share a container grants."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        share, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count, math.ceil(int(share) / int(period)))
    except (OSError, ValueError):
        pass
    return max(1, count)


def _answers(pid: int) -> str:
    if os.name == "nt":  # there, signal 0 is not a question
        return ALIVE
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return ALIVE
    return ALIVE
