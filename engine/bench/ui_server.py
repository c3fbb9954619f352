"""A web server in a process of its own, and visitors who act on its pages as a browser would (Linux)."""

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
CORES = 2  # that the promises speak of
DRIVEN = "[server]\nenableAgentApi = true\nheadless = true\n[browser]\ngatherUsageStats = false\n"
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
    """One server on a free port: the dashboard, or a peer. Its folder holds its log and the switch of the agent API."""

    def __init__(self, folder: Path, command: Sequence[str], port: int, **environment: str) -> None:
        (folder / ".streamlit").mkdir(parents=True, exist_ok=True)
        (folder / ".streamlit" / "config.toml").write_text(DRIVEN, encoding="utf-8")
        self.port, self._log = port, folder / "server.log"
        usual = {name: value for name, value in os.environ.items() if not name.startswith(("LEAKLENS_", "STREAMLIT_"))}
        self.began = time.perf_counter()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=ROOT,
                env={**usual, "HOME": str(folder), **environment},
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
        """The first visitor, and the seconds from the start of the process until a page with a chart was there."""
        last = self.began + PATIENCE_S
        while time.perf_counter() < last and self._process.poll() is None:
            try:
                page = Page(self.port)
            except ConnectionError:  # it does not listen yet
                time.sleep(0.01)
                continue
            while not page.charts and time.perf_counter() < last:
                page.ask()
            return page, time.perf_counter() - self.began
        told = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        raise RunFailed(
            f"bench ui: the server showed no page in {PATIENCE_S:g} s: {' '.join(told) or 'it said nothing'}"
        )

    @property
    def cpu_s(self) -> float:
        """Processor time of the process so far, its threads among it, its workers not."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory_mb(self) -> float:
        """What of the process lies in memory."""
        pages = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def dashboard(folder: Path, home: Path, **environment: str) -> BenchServer:
    """LeakLens as everybody starts it."""
    port = free_port()
    return BenchServer(folder, ["app", "--port", str(port)], port, LEAKLENS_HOME=str(home), **environment)


def bare(folder: Path) -> BenchServer:
    """A page with one slider and one chart of two lines, as Streamlit runs it."""
    port, script = free_port(), folder / "page.py"
    folder.mkdir(parents=True, exist_ok=True)
    script.write_text(PEER, encoding="utf-8")
    return BenchServer(folder, ["streamlit", "run", str(script), "--server.port", str(port)], port)


def free_port() -> int:
    with socket.socket() as asking:
        asking.bind(("127.0.0.1", 0))
        return int(asking.getsockname()[1])


class Page:
    """What one visitor sees, and may do to it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._session: dict[str, Any] = {}
        self._tree: dict[str, Any] = {}
        self.keys: tuple[str, ...] = ()
        self.ask()

    def ask(self, **asked: Any) -> float:
        """One rerun of the page, and the seconds until it was whole; RunFailed where it broke."""
        start = time.perf_counter()
        status, body = self._post(asked)
        took = time.perf_counter() - start
        if status != 200 or body.get("status") != "ready":
            raise RunFailed(f"bench ui: the server answered {status}: {body.get('error', body.get('status'))}")
        self._session = {"session_id": body["session_id"]}
        self._tree, self.keys = body["tree"], tuple(action["key"] for action in body["actions"])
        if broken := next((one for one in self._nodes() if one["type"] in ("error", "exception")), None):
            raise RunFailed(f"bench ui: the page broke: {broken.get('props')}")
        return took

    def _post(self, asked: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_S)
        try:
            body = json.dumps({**self._session, **asked})
            connection.request("POST", "/_stcore/agent/interact", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (HTTPException, TimeoutError) as error:
            raise RunFailed(f"bench ui: the server did not answer: {type(error).__name__}") from None
        finally:
            connection.close()

    def set(self, **values: Any) -> float:
        """Other values of widgets: `set(**{"w:rounds": 5})`."""
        return self.ask(widget_state=values)

    def click(self, key: str) -> float:
        return self.ask(trigger={"key": key})

    def options(self, key: str) -> tuple[str, ...]:
        """What a slider or a choice offers."""
        return tuple(next(one["props"]["options"] for one in self._nodes() if one.get("key") == key))

    @property
    def charts(self) -> int:
        return sum(one["type"] in CHARTS for one in self._nodes())

    def wait_for(self, key: str) -> None:
        """Until a widget is there."""
        last = time.perf_counter() + PATIENCE_S
        while key not in self.keys:
            if time.perf_counter() > last:
                raise RunFailed(f"bench ui: the page never showed {key}")
            time.sleep(0.1)
            self.ask()

    def _nodes(self) -> Iterator[dict[str, Any]]:
        waiting = [self._tree] if self._tree else []
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.get("children", [])
