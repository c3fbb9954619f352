"""The bench of the dashboard: its home, its visitors and its verdict. Nothing is timed here."""

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
from engine.bench.ui import p95, stored
from engine.bench.ui_server import Page, dashboard
from engine.bench.ui_visitors import FIRST_SEED, BenchVisitor, lesson, unfinished
from engine.errors import RunFailed
from engine.events import Finished, Started
from engine.examples.files import examples
from engine.jobs.store import Store
from engine.specs.run import RunSpec

LAB = ["example-a", "w:method.noise:slider", "w:rounds", "w:seed", "run", "partition"]


class Pretended:
    """A dashboard that only remembers what it was asked; of a run it says for two reruns that it goes on."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.status, self.state, self.broken, self.sliders = 200, "ready", False, True
        self._moving: dict[str, int] = {}
        self._lock = threading.Lock()
        self._sessions = itertools.count()

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self.asked.append(asked)
            session = asked.get("session_id") or f"s{next(self._sessions)}"
            left = self._moving[session] = max(0, self._moving.get(session, 0) - 1)
            if asked.get("trigger") == {"key": "run"}:
                left = self._moving[session] = 2
        keys = ["open:1", "open:2", "pin:1"] if asked.get("page") == "runs" else [*LAB, *(["cancel"] if left else [])]
        if not self.sliders:
            keys.remove("w:method.noise:slider")
        nodes: list[dict[str, Any]] = [{"type": "plotly_chart"}, {"type": "plotly_chart"}]
        nodes += [{"type": "x", "key": key, "props": {"options": ["2", "1"]}} for key in keys]
        if self.broken:
            nodes.append({"type": "error", "props": {"body": "This page broke"}})
        tree = {"type": "root", "children": [{"type": "main", "children": nodes}]}
        return {
            "status": self.state, "session_id": session, "tree": tree,
            "actions": [{"key": key} for key in keys], "error": {"code": "wait_timed_out"},
        }  # fmt: skip


@pytest.fixture
def pretended() -> Pretended:
    return Pretended()


@pytest.fixture
def port(pretended: Pretended) -> Iterator[int]:
    class BenchHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/_stcore/agent/interact"
            body = json.dumps(pretended.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(pretended.status)
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


# --- a home that was used ----------------------------------------------------------------------------------


def test_stored_runs_are_finished_ones_of_other_questions(tmp_path: Path) -> None:
    many = len(examples()) + 5
    store, ids = stored(tmp_path, many)
    runs = {run.id: run for run in store.runs()}
    assert len(set(ids)) == many and set(runs) == set(ids)
    assert not set(ids) & {one.id for one in examples()}
    for run in runs.values():
        assert run.status == "finished"
        assert RunSpec(**{name: value for name, value in run.spec.items() if name != "format"}).id == run.id
        (_, first), *_, (_, last) = store.events(run.id)
        assert isinstance(first, Started) and first.run == run.id and first.spec == run.spec
        assert isinstance(last, Finished)


# --- a page ------------------------------------------------------------------------------------------------


def test_a_page_keeps_its_session_and_knows_what_it_shows(port: int, pretended: Pretended) -> None:
    page = Page(port)
    assert page.charts == 2 and page.keys == tuple(LAB)
    assert page.options("w:method.noise:slider") == ("2", "1")
    assert page.set(**{"w:rounds": 5}) > 0
    page.click("run")
    assert "cancel" in page.keys
    assert pretended.asked == [
        {},
        {"session_id": "s0", "widget_state": {"w:rounds": 5}},
        {"session_id": "s0", "trigger": {"key": "run"}},
    ]


@pytest.mark.parametrize(
    ("status", "state", "broken", "words"),
    [(202, "ready", False, "202.*wait_timed_out"), (200, "error", False, "200"), (200, "ready", True, "page broke")],
)
def test_a_page_that_broke_is_a_failure(
    port: int, pretended: Pretended, status: int, state: str, broken: bool, words: str
) -> None:
    page = Page(port)
    pretended.status, pretended.state, pretended.broken = status, state, broken
    with pytest.raises(RunFailed, match=words):
        page.ask()


def test_a_widget_that_never_comes_is_a_failure(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page(port)
    page.wait_for("run")
    monkeypatch.setattr("engine.bench.ui_server.PATIENCE_S", 0)
    with pytest.raises(RunFailed, match="never showed look"):
        page.wait_for("look")


# --- a class -----------------------------------------------------------------------------------------------


@pytest.fixture
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui_visitors, "EVERY_S", 0.1)
    monkeypatch.setattr(ui_visitors, "POLL_S", 0.005)


@pytest.mark.usefixtures("in_a_hurry")
def test_a_class_slides_opens_and_asks(port: int, pretended: Pretended) -> None:
    visitors, beside = lesson(port, lambda: 7.0, many=3, turns=6)
    assert not any(one.failures for one in visitors)
    assert set(beside) == {7.0}
    seeds = [seed for one in visitors for seed in one.asked]
    assert seeds and min(seeds) >= FIRST_SEED and len(set(seeds)) == len(seeds)
    wrote = [one["widget_state"] for one in pretended.asked if "widget_state" in one]
    assert sorted(one["w:seed"] for one in wrote if "w:seed" in one) == sorted(seeds)
    assert {"2", "1"} >= {one["w:method.noise:slider"] for one in wrote if len(one) == 1 and "partition" not in one}
    clicked = [one["trigger"]["key"] for one in pretended.asked if "trigger" in one]
    assert clicked.count("run") == len(seeds) and {"open:1", "open:2"} & set(clicked)
    polls = wrote.count({"partition": False})
    assert polls == sum(len(one.looked) for one in visitors)
    assert len(pretended.asked) == polls + sum(len(one.took) for one in visitors)


@pytest.mark.usefixtures("in_a_hurry")
def test_without_a_slider_an_example_is_opened(port: int, pretended: Pretended) -> None:
    pretended.sliders = False
    one = BenchVisitor(1, port)
    one.visit(begin=0.0, many=1, turns=2)
    assert not one.failures and pretended.asked[-1]["trigger"] == {"key": "example-a"}


@pytest.mark.usefixtures("in_a_hurry")
def test_a_failure_ends_the_visit_and_is_told(port: int, pretended: Pretended) -> None:
    pretended.broken = True
    one = BenchVisitor(0, port)
    one.visit(begin=0.0, many=1, turns=6)
    assert len(one.failures) == 1 and "page broke" in one.failures[0] and not one.took


def test_what_runs_is_looked_at_again_as_by_a_browser(
    port: int, pretended: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, one = Page(port), BenchVisitor(0, port)
    page.click("run")
    monkeypatch.setattr("engine.bench.ui_visitors.time.sleep", lambda seconds: None)
    one._until(time.perf_counter() + 1000, page)
    assert "cancel" not in page.keys and len(one.looked) == 2 and not one.took
    assert [asked["widget_state"] for asked in pretended.asked[-2:]] == [{"partition": False}] * 2


def test_runs_that_did_not_finish_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui_visitors, "END_S", 0.0)
    store, ids = stored(tmp_path, 2)
    assert unfinished(store, [BenchVisitor(0, 0, asked=[1])]) == ["a run was never asked"]  # one of that seed is there
    waiting = RunSpec(seed=1)
    store.submit(waiting.id, waiting.canonical())
    assert unfinished(store, [BenchVisitor(0, 0, asked=[1])]) == [f"run {waiting.id} is queued"]
    assert unfinished(store, [BenchVisitor(0, 0)]) == [] and len(ids) == 2


# --- the verdict -------------------------------------------------------------------------------------------


def test_the_row_names_the_promises_that_were_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    within = {name: most for name, most in ui.PROMISES.items() if not name.startswith(("visitors", "failures"))}
    monkeypatch.setattr(ui, "stored", lambda home, many: (Store(home), ["a"] * many))
    monkeypatch.setattr(ui, "alone", lambda folder, ids: (within, {"ms": 1.0}, 0.5))
    monkeypatch.setattr(ui, "together", lambda *_: ({"visitors p95 s": 1.5, "failures": 0}, {"beside": 1.0}))
    row = ui.measure()
    assert row.kept and "broken" not in row.promise and row.peer == {"ms": 1.0, "beside": 1.0}
    monkeypatch.setattr(ui, "together", lambda *_: ({"visitors p95 s": 1.6, "failures": 1}, {}))
    row = ui.measure()
    assert not row.kept and row.promise.endswith("broken: visitors p95 s, failures")


def test_one_of_twenty_may_be_slow() -> None:
    assert p95([1.0] * 95 + [9.0] * 5) == pytest.approx(1.4)
    assert p95([1.0] * 96 + [9.0] * 4) == 1.0


def test_growth_is_that_of_the_floor() -> None:
    assert ui.growth([100.0, 102.0, 104.0, 106.0, 108.0, 110.0, 112.0, 114.0]) == 16  # each rerun costs something
    assert ui.growth([130.0, 100.0, 190.0, 160.0, 101.0, 160.0]) == 2  # what is freed again costs nothing


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the bench reads /proc")
def test_everything_that_is_measured_can_be_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui_visitors, "EVERY_S", 1.0)
    store, ids = stored(tmp_path / "home", 3)
    with dashboard(tmp_path / "server", tmp_path / "home", LEAKLENS_CLASS="1") as server:
        page, seconds = server.first_chart()
        assert page.charts and seconds > 0 and server.memory_mb > 50
        page.wait_for("leak-live")
        page.ask(page="lab")
        page.wait_for("run")
        for name, deeds in ui.deeds_of(server.port, ids).items():
            assert next(deeds)() > 0, name
        visitors, _ = lesson(server.port, lambda: 0.0, many=2, turns=5)
        assert [one.failures for one in visitors] == [[], []]
        assert sum(len(one.asked) for one in visitors) >= 1
        assert unfinished(store, visitors) == []
        assert server.cpu_s > 0
