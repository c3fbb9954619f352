"""The dashboard as a separate process, with a free port and its own home."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from engine.environment import ROOT
from engine.jobs.store import Store

START_S, STOP_S = 30.0, 15.0


class Server:
    """A process of `python3 -m app` that tests start, stop and kill."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self._log = folder / "server.log"
        self.port = _free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server and wait until it answers. A running server is left as it is."""
        if self._process and self._process.poll() is None:
            return
        command = [sys.executable, "-m", "app", "--port", str(self.port)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env={**os.environ, "LEAKLENS_HOME": str(self.home)}, stdout=log, stderr=log
            )
        last = time.monotonic() + START_S
        while not self._answers():
            alive = self._process.poll() is None
            assert alive and time.monotonic() < last, f"the server does not start:\n{self.words()}"
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/_stcore/health", timeout=START_S) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        """Stop the server as Ctrl-C does."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill the server as an outage does, without a clean shutdown."""
        self._end(signal.SIGKILL)

    def _end(self, signal_number: signal.Signals) -> None:
        process = self._process
        self._process = None
        if process is None:
            return
        process.send_signal(signal_number)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the server does not stop:\n{self.words()}") from None

    def words(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    def reached(self, run: str, round: int) -> None:
        """Wait until a run has finished a round. This reads the store, which is faster than the page."""
        last = time.monotonic() + START_S
        with self.store() as store:
            while store.run(run).round < round:
                assert time.monotonic() < last, f"run {run} has not come to round {round}"
                time.sleep(0.01)

    def rest(self) -> None:
        """Cancel all runs that a test left."""
        with self.store() as store:
            for run in store.runs():
                if run.status in ("queued", "running"):
                    store.cancel(run.id)

    @contextmanager
    def store(self) -> Iterator[Store]:
        """Open the store of the server next to the server."""
        store = Store(self.home)
        try:
            yield store
        finally:
            store.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
