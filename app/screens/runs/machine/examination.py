"""The findings of the doctor for the Machine screen.

The page runs the quick checks itself. One background thread runs all checks, once for all visitors.
"""

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
    "Processor": ("threads", "gpu", "device", "denormals"),
    "Data and measures": ("torchvision", "lpips"),  # and every data set
}
REST = "Data and measures"
QUICK: dict[str, Callable[[], Finding]] = {
    "python": doctor.python,
    "home": doctor.home_folder,
    "disk": doctor.disk,
    "threads": doctor.threads,
}
PATH = re.compile(r"(?<![\w/])/(?:[^\s/:;,]+/)+([^\s/:;,]+)")
OK, FAILED, PENDING = "ok", "look", "looking"  # keys of texts.SIGNS


class Examination:
    """The findings of the doctor. One thread collects them for all visitors; they stay until a visitor asks again."""

    def __init__(self, examine: Callable[[], Sequence[Finding]] = doctor.examine) -> None:
        self._examine = examine
        self._lock = threading.Lock()
        self.running = False
        self.findings: tuple[Finding, ...] = ()  # empty before the first examination
        self.at = 0.0  # end of the last examination, in seconds since 1970
        self.took = 0.0  # its duration in seconds

    def begin(self, after: Callable[[], object] = lambda: None) -> None:
        """Starts the checks in the background, unless they are running. They begin when `after` returns."""
        with self._lock:
            if self.running:
                return
            self.running = True
        threading.Thread(target=self._run, args=(after,), name="doctor", daemon=True).start()

    def _run(self, after: Callable[[], object]) -> None:
        try:
            after()
            start = time.monotonic()
            self.findings = tuple(map(redacted, self._examine()))
            self.took = time.monotonic() - start
            self.at = time.time()
        except Exception as error:  # the doctor turns errors of a check into findings, but not its own errors
            self.findings = (Finding("doctor", False, f"{type(error).__name__}: {error}", "Report it with this line"),)
        finally:
            gc.freeze()  # the collector need not visit the libraries that the checks loaded
            self.running = False


@cache
def examination() -> Examination:
    """The examination that all visitors of this server share."""
    return Examination()


@dataclass(frozen=True)
class MachineLine:
    """One line of the screen. A line without a finding is pending."""

    name: str
    finding: Finding | None = None

    @property
    def word(self) -> str:
        """The key of its sign."""
        if self.finding is None:
            return PENDING
        return OK if self.finding.ok else FAILED


def groups(findings: Sequence[Finding]) -> dict[str, list[MachineLine]]:
    """Every check in its group. Before the first examination, only the quick checks have findings."""
    by_name = {finding.name: finding for finding in (findings or quick())}
    lines = {group: [MachineLine(name, by_name.get(name)) for name in names] for group, names in GROUPS.items()}
    grouped = {name for names in GROUPS.values() for name in names}
    data_sets = [MachineLine(name, finding) for name, finding in by_name.items() if name not in grouped]
    lines[REST] = data_sets + lines[REST]
    return lines


def quick() -> Iterator[Finding]:
    """The findings of the checks that take no time."""
    for name, check in QUICK.items():
        try:
            yield redacted(check())
        except LeakLensError as error:
            yield redacted(Finding(name, False, error.message, error.remedy))
        except OSError:  # the examination reports it
            continue


def redacted(finding: Finding) -> Finding:
    """A finding without the user name of the machine's owner.

    Privacy: other visitors read the findings, and visitors pass reports on. In class mode, visitors must not learn the
    folders of the machine either. A finding shown without this function would reveal both.
    """
    if class_limits.class_mode():
        return replace(finding, text=PATH.sub(r"…/\1", finding.text), remedy=PATH.sub(r"…/\1", finding.remedy))
    home = f"{Path.home()}{os.sep}"
    short = f"~{os.sep}" if len(home) > 1 else home
    return replace(finding, text=finding.text.replace(home, short), remedy=finding.remedy.replace(home, short))


def report(findings: Sequence[Finding]) -> str:
    """All findings as text, to copy."""
    width = max((len(finding.name) for finding in findings), default=0)
    text: list[str] = []
    for group, lines in groups(findings).items():
        text.append(group)
        text += [_report_line(line.finding, line.word, width) for line in lines if line.finding]
    return "\n".join(text)


def _report_line(finding: Finding, word: str, width: int) -> str:
    remedy = f". {finding.remedy}" if finding.remedy else ""
    return f"  {word:<4}  {finding.name:<{width}}  {finding.text}{remedy}"
