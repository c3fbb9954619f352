"""The benchmark of the dashboard: its store, its visitors and its result. Nothing is timed here."""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from engine.bench import ui, ui_visitors
from engine.bench.ui import p95
from engine.bench.ui_server import Page, start_dashboard
from engine.bench.ui_store import full_store, used_store
from engine.bench.ui_visitors import FIRST_SEED, BenchVisitor, run_class, unfinished_runs
from engine.errors import RunFailed
from engine.events import Finished, Started
from engine.examples.files import examples
from engine.jobs.store import Store
from engine.specs.run import RunSpec

TRY = ["try-change", "try-run", "try-closer"]
FIELDS = ["try-A-method.noise", "try-A-rounds", "try-A-seed"]  # shown after a click on change


class FakeDashboard:
    """A dashboard that only records its requests. A run that was started ends after two reruns."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.status = 200
        self.state = "ready"
        self.broken = False
        self._reruns_left: dict[str, int] = {}
        self._changing: set[str] = set()  # sessions that show the fields
        self._lock = threading.Lock()
        self._sessions = itertools.count()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self.requests.append(request)
            session = request.get("session_id") or f"s{next(self._sessions)}"
            left = max(0, self._reruns_left.get(session, 0) - 1)
            if request.get("trigger") == {"key": "try-run"}:
                left = 2
            if request.get("trigger") == {"key": "try-change"}:
                self._changing.add(session)
            if request.get("page"):
                self._changing.discard(session)
            self._reruns_left[session] = left
            fields = FIELDS if session in self._changing else []
        keys = ["open:1", "open:2", "pin:1"] if request.get("page") == "runs" else [*TRY, *fields]
        if left and request.get("page") != "runs":
            keys.append("try-cancel")
        nodes: list[dict[str, Any]] = [{"type": "plotly_chart"}, {"type": "plotly_chart"}]
        nodes += [{"type": "x", "key": key} for key in keys]
        if self.broken:
            nodes.append({"type": "error", "props": {"body": "This page broke"}})
        tree = {"type": "root", "children": [{"type": "main", "children": nodes}]}
        return {
            "status": self.state, "session_id": session, "tree": tree,
            "actions": [{"key": key} for key in keys], "error": {"code": "wait_timed_out"},
        }  # fmt: skip


@pytest.fixture
def dashboard() -> FakeDashboard:
    return FakeDashboard()


@pytest.fixture
def port(dashboard: FakeDashboard) -> Iterator[int]:
    class BenchHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/_stcore/agent/interact"
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(dashboard.answer(request))
            self.send_response(dashboard.status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *words: object) -> None:
            del words

    with ThreadingHTTPServer(("127.0.0.1", 0), BenchHandler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


# --- a store with many runs ----------------------------------------------------------------------------------


def test_the_used_store_has_finished_runs_with_new_ids(tmp_path: Path) -> None:
    count = len(examples()) + 5
    store, ids = used_store(tmp_path, count)
    runs = {run.id: run for run in store.runs()}
    assert len(set(ids)) == count and set(runs) == set(ids)
    assert not set(ids) & {run.id for run in examples()}
    for run in runs.values():
        assert run.status == "finished"
        fields = {name: value for name, value in run.spec.items() if name != "format"}
        assert RunSpec(**fields).id == run.id
        (_, first), *_, (_, last) = store.events(run.id)
        assert isinstance(first, Started) and first.run == run.id and first.spec == run.spec
        assert isinstance(last, Finished)


@pytest.mark.slow
def test_the_full_store_has_sweeps_and_attacks_as_batches(tmp_path: Path) -> None:
    store, ids = full_store(tmp_path, 50)
    runs = store.runs()
    assert len(runs) == 50 and {run.status for run in runs} == {"finished"}
    assert len(ids) == 30 and sum("attack" in run.spec for run in runs) == 10
    batches = store.batches.listed()
    assert [(batch.kind, len(batch.runs)) for batch in batches] == [("leak grid", 10), ("sweep", 10)]


# --- a page ------------------------------------------------------------------------------------------------


def test_a_page_keeps_its_session_and_lists_its_widgets(port: int, dashboard: FakeDashboard) -> None:
    page = Page(port)
    assert page.charts == 2 and page.keys == tuple(TRY)
    assert page.set(**{"try-A-rounds": 5}) > 0
    page.click("try-run")
    assert "try-cancel" in page.keys
    assert dashboard.requests == [
        {},
        {"session_id": "s0", "widget_state": {"try-A-rounds": 5}},
        {"session_id": "s0", "trigger": {"key": "try-run"}},
    ]


@pytest.mark.parametrize(
    ("status", "state", "broken", "message"),
    [(202, "ready", False, "202.*wait_timed_out"), (200, "error", False, "200"), (200, "ready", True, "page failed")],
)
def test_a_page_that_fails_raises_run_failed(
    port: int, dashboard: FakeDashboard, status: int, state: str, broken: bool, message: str
) -> None:
    page = Page(port)
    dashboard.status = status
    dashboard.state = state
    dashboard.broken = broken
    with pytest.raises(RunFailed, match=message):
        page.interact()


def test_a_widget_that_never_appears_raises_run_failed(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page(port)
    page.wait_for("try-run")
    monkeypatch.setattr("engine.bench.ui_server.PATIENCE_S", 0)
    with pytest.raises(RunFailed, match="never showed look"):
        page.wait_for("look")


# --- a class -----------------------------------------------------------------------------------------------


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui_visitors, "EVERY_S", 0.1)
    monkeypatch.setattr(ui_visitors, "POLL_S", 0.005)


@pytest.mark.slow
@pytest.mark.usefixtures("short_pauses")
def test_a_class_slides_opens_and_submits(port: int, dashboard: FakeDashboard) -> None:
    visitors, values = run_class(port, lambda: 7.0, count=3, actions=6)
    assert not any(visitor.failures for visitor in visitors)
    assert set(values) == {7.0}
    seeds = [seed for visitor in visitors for seed in visitor.seeds]
    assert seeds and min(seeds) >= FIRST_SEED and len(set(seeds)) == len(seeds)
    changes = [request["widget_state"] for request in dashboard.requests if "widget_state" in request]
    assert sorted(change["try-A-seed"] for change in changes if "try-A-seed" in change) == sorted(seeds)
    moves = [change for change in changes if len(change) == 1 and "try-closer" not in change]
    assert moves and set(ui_visitors.NOISES) >= {move["try-A-method.noise"] for move in moves}
    clicked = [request["trigger"]["key"] for request in dashboard.requests if "trigger" in request]
    assert clicked.count("try-run") == len(seeds) and {"open:1", "open:2"} & set(clicked)
    polls = changes.count({"try-closer": None})
    assert polls == sum(len(visitor.polls) for visitor in visitors)
    assert len(dashboard.requests) == polls + sum(len(visitor.waits) for visitor in visitors)


@pytest.mark.usefixtures("short_pauses")
def test_a_failure_ends_the_visit_and_is_reported(port: int, dashboard: FakeDashboard) -> None:
    dashboard.broken = True
    visitor = BenchVisitor(0, port)
    visitor.visit(begin=0.0, visitors=1, actions=6)
    assert len(visitor.failures) == 1 and "page failed" in visitor.failures[0] and not visitor.waits


def test_a_running_run_is_polled_as_by_a_browser(
    port: int, dashboard: FakeDashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Page(port)
    visitor = BenchVisitor(0, port)
    page.click("try-run")
    monkeypatch.setattr("engine.bench.ui_visitors.time.sleep", lambda seconds: None)
    visitor._wait_until(time.perf_counter() + 1000, page)
    assert "try-cancel" not in page.keys and len(visitor.polls) == 2 and not visitor.waits
    assert [request["widget_state"] for request in dashboard.requests[-2:]] == [{"try-closer": None}] * 2


def test_runs_that_did_not_finish_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui_visitors, "END_S", 0.0)
    store, ids = used_store(tmp_path, 2)
    visitor = BenchVisitor(0, 0, seeds=[1])
    assert unfinished_runs(store, [visitor]) == ["a run was never submitted"]  # one of two runs with this seed exists
    waiting = RunSpec(seed=1)
    store.submit(waiting.id, waiting.canonical())
    assert unfinished_runs(store, [visitor]) == [f"run {waiting.id} is queued"]
    assert unfinished_runs(store, [BenchVisitor(0, 0)]) == [] and len(ids) == 2


# --- the result --------------------------------------------------------------------------------------------


def test_the_row_names_the_promises_that_were_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    within = {name: most for name, most in ui.PROMISES.items() if not name.startswith(("visitors", "failures"))}
    monkeypatch.setattr(ui, "full_store", lambda home, count: (Store(home), ["a"] * count))
    monkeypatch.setattr(ui, "measure_one_visitor", lambda folder, ids: (within, {"ms": 1.0}, 0.5))
    monkeypatch.setattr(ui, "measure_class", lambda *_: ({"visitors p95 s": 1.0, "failures": 0}, {"beside": 1.0}))
    row = ui.measure()
    assert row.kept and "broken" not in row.promise and row.peer == {"ms": 1.0, "beside": 1.0}
    monkeypatch.setattr(ui, "measure_class", lambda *_: ({"visitors p95 s": 1.1, "failures": 1}, {}))
    row = ui.measure()
    assert not row.kept and row.promise.endswith("broken: visitors p95 s, failures")


def test_the_percentile_allows_one_slow_answer_in_twenty() -> None:
    assert p95([1.0] * 95 + [9.0] * 5) == pytest.approx(1.4)
    assert p95([1.0] * 96 + [9.0] * 4) == 1.0


def test_growth_is_that_of_the_minimum() -> None:
    assert ui.growth([100.0, 102.0, 104.0, 106.0, 108.0, 110.0, 112.0, 114.0]) == 16  # each rerun adds memory
    assert ui.growth([130.0, 100.0, 190.0, 160.0, 101.0, 160.0]) == 2  # freed memory does not count


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the bench reads /proc")
def test_every_measured_action_works_on_the_dashboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui_visitors, "EVERY_S", 1.0)
    store, ids = used_store(tmp_path / "home", 3)
    with start_dashboard(tmp_path / "server", tmp_path / "home", LEAKLENS_CLASS="1") as server:
        page, seconds = server.first_chart()
        assert page.charts and seconds > 0 and server.memory_mb > 50
        page.interact(page="leak")
        page.wait_for("leak-live")  # the engine is loaded
        page.interact(page="try")
        page.wait_for("try-change")
        for name, reruns in ui.dashboard_reruns(server.port, ids).items():
            assert next(reruns)() > 0, name
        visitors, _ = run_class(server.port, lambda: 0.0, count=2, actions=5)
        assert [visitor.failures for visitor in visitors] == [[], []]
        assert sum(len(visitor.seeds) for visitor in visitors) >= 1
        assert unfinished_runs(store, visitors) == []
        assert server.cpu_s > 0
