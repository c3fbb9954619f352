"""The memory that this process may use, and whether an error or the end of a process comes from the lack of it."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
RESIDENT = re.compile(r"^VmRSS:\s+(\d+) kB", re.MULTILINE)
OOM_KILLS = re.compile(r"^oom_kill (\d+)", re.MULTILINE)
NO_LIMIT = 1 << 50  # cgroups of version 1 write a number of this size in place of "none"
# How Python, C++, torch, glibc and the loader of libraries report it.
SHORTAGE = re.compile(
    r"MemoryError|bad_alloc|an(no|')t allocate memory|failed to map segment|not enough memory|out of memory", re.I
)
CARD_SHORTAGE = re.compile(r"(CUDA|HIP) out of memory")  # torch, of a graphics card


@dataclass(frozen=True)
class MemoryLimit:
    """A limit below the memory of the machine."""

    bytes: float
    shared: bool  # by all processes of a container; otherwise it holds for each process
    source: str


def limit() -> MemoryLimit | None:
    """The smallest limit of this process; None if there is none."""
    return min([*_process_limits(), *_container_limits()], key=lambda limit: limit.bytes, default=None)


def _process_limits() -> Iterator[MemoryLimit]:
    with suppress(ImportError):  # Windows has no such module
        import resource

        for number, option in ((resource.RLIMIT_AS, "v"), (resource.RLIMIT_DATA, "d")):
            allowed = resource.getrlimit(number)[0]
            if allowed != resource.RLIM_INFINITY:
                yield MemoryLimit(allowed, False, f"`ulimit -{option}`")


def _container_limits() -> Iterator[MemoryLimit]:
    for folder in _cgroup_folders():
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _read(folder / name).strip()
            if text.isdigit() and int(text) < NO_LIMIT:
                yield MemoryLimit(int(text), True, "the container")


def oom_kills() -> int:
    """How many processes the system has ended in this container for lack of memory."""
    counts = [0]
    for folder in _cgroup_folders():
        for name in ("memory.events", "memory.oom_control"):
            match = OOM_KILLS.search(_read(folder / name))
            if match:
                counts.append(int(match[1]))
    return max(counts)


def _cgroup_folders() -> Iterator[Path]:
    """The folders of this process' memory group and of the groups around it, as far as they are visible."""
    for line in _read(MEMBERSHIP).splitlines():
        _, controllers, place = [*line.split(":", 2), "", ""][:3]
        root = CGROUPS / "memory" if "memory" in controllers.split(",") else CGROUPS
        if controllers and root == CGROUPS:
            continue
        folder = root / place.strip("/")
        yield folder
        yield from (parent for parent in folder.parents if parent.is_relative_to(root))


def resident() -> float:
    """The bytes that this process holds; 0 where the system does not report them."""
    match = RESIDENT.search(_read(Path("/proc/self/status")))
    return int(match[1]) * 1024 if match else 0.0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def lacks_memory(error: BaseException | None) -> bool:
    """Whether the error, or one that it follows from, is a lack of memory."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        if isinstance(error, RuntimeError | ImportError) and SHORTAGE.search(str(error)):
            return True
        if "start new thread" in str(error) and any(_process_limits()):  # its stack needs memory
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False
