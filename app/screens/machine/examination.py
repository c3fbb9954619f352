"""What the Machine screen shows of the doctor: the quick looks at once, the slow ones by a thread that looks once."""

from __future__ import annotations

import gc
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from app.session import limits as class_limits
from engine import doctor
from engine.doctor import Finding
from engine.errors import LeakLensError

GROUPS = {
    "Program": ("python", "packages", "torch"),
    "Home": ("home", "disk", "store", "payloads"),
    "Processor": ("threads", "gpu", "denormals"),
    "Data and measures": ("torchvision", "lpips"),  # and every data set, whatever its name
}
REST = "Data and measures"
QUICK: dict[str, Callable[[], Finding]] = {
    "python": doctor.python,
    "home": doctor.home_folder,
    "disk": doctor.disk,
    "threads": doctor.threads,
}
PATH = re.compile(r"(?<![\w/])/(?:[^\s/:;,]+/)+([^\s/:;,]+)")
OK, LOOK, LOOKING = "ok", "look", "looking"


class Examination:
    """The doctor's findings: looked for by one thread for all visitors, kept until somebody asks anew."""

    def __init__(self, examine: Callable[[], Sequence[Finding]] = doctor.examine) -> None:
        self._examine = examine
        self._lock = threading.Lock()
        self.looking = False
        self.findings: tuple[Finding, ...] = ()  # none before the first time
        self.at = self.took = 0.0  # seconds since 1970, and seconds

    def begin(self, after: Callable[[], object] = lambda: None) -> None:
        """Look in the background; `after` waits for what should not be disturbed."""
        with self._lock:
            if self.looking:
                return
            self.looking = True
        threading.Thread(target=self._look, args=(after,), name="doctor", daemon=True).start()

    def _look(self, after: Callable[[], object]) -> None:
        try:
            after()
            start = time.monotonic()
            self.findings = tuple(map(homely, self._examine()))
            self.took, self.at = time.monotonic() - start, time.time()
        except Exception as error:  # the doctor answers for what it looks at, not for itself
            self.findings = (Finding("doctor", False, f"{type(error).__name__}: {error}", "Report it with this line"),)
        finally:
            gc.freeze()  # what the examination loaded stays, too
            self.looking = False


@cache
def examination() -> Examination:
    """The one of this server."""
    return Examination()


@dataclass(frozen=True)
class MachineLine:
    """One line of the screen; without a finding it is still being looked at."""

    name: str
    finding: Finding | None = None

    @property
    def word(self) -> str:
        return LOOKING if self.finding is None else OK if self.finding.ok else LOOK


def groups(findings: Sequence[Finding]) -> dict[str, list[MachineLine]]:
    """Every look in its group: those that are known, and a place for those that are not."""
    known = {one.name: one for one in findings} or {one.name: one for one in quick()}
    named = {name for names in GROUPS.values() for name in names}
    found = {group: [MachineLine(name, known.get(name)) for name in names] for group, names in GROUPS.items()}
    found[REST][:0] = [MachineLine(name, known[name]) for name in known if name not in named]
    return found


def quick() -> Iterator[Finding]:
    """What can be said at once."""
    for name, look in QUICK.items():
        try:
            yield homely(look())
        except LeakLensError as trouble:
            yield homely(Finding(name, False, trouble.message, trouble.remedy))
        except OSError:  # the examination has words for it
            continue


def homely(found: Finding) -> Finding:
    """Without the name of whoever owns this machine: other visitors read it, and reports are passed on."""
    if class_limits.class_mode():  # where things lie on it is nobody else's business
        return replace(found, text=PATH.sub(r"…/\1", found.text), remedy=PATH.sub(r"…/\1", found.remedy))
    home = f"{Path.home()}{os.sep}"
    short = f"~{os.sep}" if len(home) > 1 else home
    return replace(found, text=found.text.replace(home, short), remedy=found.remedy.replace(home, short))


def report(findings: Sequence[Finding]) -> str:
    """Everything as text, to pass on."""
    wide = max((len(one.name) for one in findings), default=0)
    lines: list[str] = []
    for group, found in groups(findings).items():
        lines += [group, *(_written(one.finding, one.word, wide) for one in found if one.finding)]
    return "\n".join(lines)


def _written(found: Finding, word: str, wide: int) -> str:
    remedy = f". {found.remedy}" if found.remedy else ""
    return f"  {word:<4}  {found.name:<{wide}}  {found.text}{remedy}"
