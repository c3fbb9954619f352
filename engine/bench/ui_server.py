"""A web server in a separate process, and pages that act on it as a browser does (Linux)."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from engine.environment import ROOT
from engine.errors import RunFailed

PATIENCE_S = 60.0
CHARTS = ("plotly_chart", "components.v2.component")  # a chart, or the grid of pictures
CORES = 2  # the promises are for this many
CONFIG = "[server]\nenableAgentApi = true\nheadless = true\n[browser]\ngatherUsageStats = false\n"
PEER = """
import plotly.graph_objects as go
import streamlit as st

value = st.slider("value", 0, 1000, key="value")
drawn = go.Figure(layout={"height": 330})
for line in range(2):
    drawn.add_scatter(x=list(range(30)), y=[(value + 7 * line + place) % 100 for place in range(30)], mode="lines")
st.plotly_chart(drawn, theme=None)
"""


class BenchServer:
    """One server on a free port: the dashboard or the peer. Its folder holds the log, and turns the agent API on."""

    def __init__(self, folder: Path, command: Sequence[str], port: int, **environment: str) -> None:
        (folder / ".streamlit").mkdir(parents=True, exist_ok=True)
        (folder / ".streamlit" / "config.toml").write_text(CONFIG, encoding="utf-8")
        self.port = port
        self._log = folder / "server.log"
        own = ("LEAKLENS_", "STREAMLIT_")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        self.began = time.perf_counter()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=ROOT,
                env={**inherited, "HOME": str(folder), **environment},
                stdout=log,
                stderr=log,
            )
        os.sched_setaffinity(self._process.pid, sorted(os.sched_getaffinity(0))[:CORES])

    def __enter__(self) -> BenchServer:
        return self

    def __exit__(self, *how: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def first_chart(self) -> tuple[Page, float]:
        """The page of the first visitor, and the seconds from the start of the process to its first chart."""
        deadline = self.began + PATIENCE_S
        while time.perf_counter() < deadline and self._process.poll() is None:
            try:
                page = Page(self.port)
            except ConnectionError:  # the server does not listen yet
                time.sleep(0.01)
                continue
            while not page.charts and time.perf_counter() < deadline:
                page.interact()
            return page, time.perf_counter() - self.began
        log = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last_line = log[-1] if log else "its log is empty"
        raise RunFailed(f"bench ui: the server showed no page in {PATIENCE_S:g} s: {last_line}")

    @property
    def cpu_s(self) -> float:
        """Processor time of the process so far, with its threads and without its workers."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory_mb(self) -> float:
        """The resident memory of the process."""
        pages = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def start_dashboard(folder: Path, home: Path, **environment: str) -> BenchServer:
    """LeakLens as a visitor starts it."""
    port = free_port()
    return BenchServer(folder, ["app", "--port", str(port)], port, LEAKLENS_HOME=str(home), **environment)


def start_peer(folder: Path) -> BenchServer:
    """A plain Streamlit page with one slider and one chart of two lines."""
    port = free_port()
    script = folder / "page.py"
    folder.mkdir(parents=True, exist_ok=True)
    script.write_text(PEER, encoding="utf-8")
    return BenchServer(folder, ["streamlit", "run", str(script), "--server.port", str(port)], port)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Page:
    """The page of one visitor: its widgets and charts, and the actions on them."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._session: dict[str, Any] = {}
        self._tree: dict[str, Any] = {}
        self.keys: tuple[str, ...] = ()
        self.interact()

    def interact(self, **action: Any) -> float:
        """Rerun the page and return the seconds until it was complete. Raises RunFailed if the page fails."""
        start = time.perf_counter()
        status, body = self._post(action)
        elapsed = time.perf_counter() - start
        if status != 200 or body.get("status") != "ready":
            raise RunFailed(f"bench ui: the server answered {status}: {body.get('error', body.get('status'))}")
        self._session = {"session_id": body["session_id"]}
        self._tree = body["tree"]
        self.keys = tuple(widget["key"] for widget in body["actions"])
        for node in self._nodes():
            if node["type"] in ("error", "exception"):
                raise RunFailed(f"bench ui: the page failed: {node.get('props')}")
        return elapsed

    def _post(self, action: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_S)
        try:
            body = json.dumps({**self._session, **action})
            connection.request("POST", "/_stcore/agent/interact", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except (HTTPException, TimeoutError) as error:
            raise RunFailed(f"bench ui: the server did not answer: {type(error).__name__}") from None
        finally:
            connection.close()

    def set(self, **values: Any) -> float:
        """Change the values of widgets: `set(**{"w:rounds": 5})`."""
        return self.interact(widget_state=values)

    def click(self, key: str) -> float:
        return self.interact(trigger={"key": key})

    @property
    def charts(self) -> int:
        return sum(node["type"] in CHARTS for node in self._nodes())

    def wait_for(self, key: str) -> None:
        """Wait until the page has this widget."""
        deadline = time.perf_counter() + PATIENCE_S
        while key not in self.keys:
            if time.perf_counter() > deadline:
                raise RunFailed(f"bench ui: the page never showed {key}")
            time.sleep(0.1)
            self.interact()

    def _nodes(self) -> Iterator[dict[str, Any]]:
        waiting = [self._tree] if self._tree else []
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.get("children", [])
