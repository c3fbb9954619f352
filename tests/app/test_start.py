"""The start: where the dashboard is, who reaches it, what is said when a port is taken, and a clean end."""

from __future__ import annotations

import asyncio
import http.client
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from app import __main__ as start_app
from app import server
from app.__main__ import MARK, main
from app.session import limits as class_limits
from engine.environment import ROOT
from engine.errors import BadInput, HomeUnwritable

HERE = "127.0.0.1"
PATIENCE_S = 30.0


def free_ports(count: int = 1) -> int:
    """The first of so many ports in a row that nobody has."""
    while True:
        with closing(socket.socket()) as probe:
            probe.bind((HERE, 0))
            first = int(probe.getsockname()[1])
        taken = [socket.socket() for _ in range(count)]
        try:
            for offset, one in enumerate(taken):
                one.bind((HERE, first + offset))
            return first
        except (OSError, OverflowError):
            continue
        finally:
            for one in taken:
                one.close()


@contextmanager
def answering(port: int, body: bytes) -> Iterator[None]:
    """A program on a port that answers every question alike."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *said: Any) -> None: ...

    with http.server.HTTPServer((HERE, port), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield
        running.shutdown()
        thread.join()


Served = list[dict[str, Any]]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Starts that reach the server and end there; the process is left as it was."""
    calls: Served = []

    def serve(listening: socket.socket, names: Sequence[str], marks: Any, ready: Any, broken: Any) -> None:
        with listening:
            calls.append({"place": listening.getsockname()[:2], "names": names, "marks": marks, "broken": broken})
            ready()

    for name in (class_limits.CLASS, "LEAKLENS_QUOTA_GB", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)  # and again afterwards
    monkeypatch.setenv("LEAKLENS_HOME", os.environ["LEAKLENS_HOME"])
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setattr(start_app, "enter", lambda module, requirements, argv: list(argv))
    monkeypatch.setattr(start_app, "CONTAINERS", ())
    monkeypatch.setattr(sys, "platform", "linux")
    before = [(one, signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM)]
    yield calls
    for one, handler in before:
        signal.signal(one, handler)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "0"], "--port: must be a whole number between 1 and 65535, got 0. Leave --port out for 8501"),
        (["--port", "70000"], "--port: must be a whole number between 1 and 65535, got 70000"),
        (["--port", "-3"], "--port: must be a whole number between 1 and 65535, got -3"),
        (["--port=eight"], "--port: must be a whole number between 1 and 65535, got eight"),
        (["--port", "٣"], "--port: must be a whole number between 1 and 65535, got ٣"),
        (["--port"], "--port: expected one argument. Ask python3 -m app --help"),
        (["--host", ""], '--host: must be an address of this machine, got "". Leave --host out'),
        (["--host", "no such name"], "--host: must be an address of this machine, got no such name"),
        (["--prot", "3"], "unrecognized arguments: --prot 3. Ask"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_installed(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(start_app, "enter", lambda *given: pytest.fail("told too late"))
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert said in told.err
    assert told.err.count("\n") == 1


def test_it_says_where_it_is_and_keeps_to_this_machine(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_ports()
    assert main(["--port", str(port)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"LeakLens is ready: http://{HERE}:{port}   (stop with Ctrl-C)"
    assert served[0]["place"] == (HERE, port)
    assert not class_limits.class_mode()


def test_open_to_others_it_warns_and_limits(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--host", "0.0.0.0", "--port", str(free_ports())]) == 0
    told = capsys.readouterr().out
    for words in ("There is no password", "4 runs at once", "stay on this machine, in ", "stop with Ctrl-C"):
        assert words in told
    assert class_limits.class_mode()
    assert os.environ["LEAKLENS_QUOTA_GB"] == "10"
    assert served[0]["marks"][MARK]["class"] is True


def test_a_disk_quota_that_the_owner_chose_stays(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "3")
    assert main(["--host", "0.0.0.0", "--port", str(free_ports())]) == 0
    assert os.environ["LEAKLENS_QUOTA_GB"] == "3"


def test_a_mistake_in_the_class_file_is_told_at_the_start(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(class_limits, "FILE", tmp_path / "class.toml")
    assert main(["--host", "0.0.0.0", "--port", str(free_ports())]) == 2
    assert "class.toml: cannot be read" in capsys.readouterr().err
    assert not served


def test_inside_a_container_its_own_address_is_not_offered(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(start_app, "CONTAINERS", (str(ROOT),))
    port = free_ports()
    assert main(["--host", "0.0.0.0", "--port", str(port)]) == 0
    assert f"http://ADDRESS-OF-THIS-MACHINE:{port}" in capsys.readouterr().out


@pytest.mark.parametrize(("desktop", "opened"), [(":0", True), ("", False)])
def test_a_browser_is_opened_where_it_was_asked_for_and_can_be_seen(
    desktop: str, opened: bool, served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = threading.Event()
    monkeypatch.setattr("webbrowser.open", lambda url: shown.set())
    monkeypatch.setenv("DISPLAY", desktop)
    assert main(["--open", "--port", str(free_ports())]) == 0
    assert shown.wait(PATIENCE_S if opened else 0) is opened
    assert ("There is no desktop here" in capsys.readouterr().out) is not opened


def test_a_home_that_cannot_be_is_told(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LEAKLENS_HOME", str(tmp_path / "file"))
    assert main([]) == HomeUnwritable.exit_code
    assert "Choose another folder with LEAKLENS_HOME" in capsys.readouterr().err


# --- a port that is taken ------------------------------------------------------------------------------------------


def test_the_next_free_port_is_taken(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_ports(2)
    monkeypatch.setattr(start_app, "PORT", port)
    with answering(port, b"<html>another program</html>"):
        assert main([]) == 0
    assert f"Port {port} is taken by another program; trying {port + 1}." in capsys.readouterr().out
    assert served[0]["place"] == (HERE, port + 1)


def test_a_port_that_was_asked_for_is_not_exchanged(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_ports()
    with answering(port, b'["nobody we know"]'):
        assert main(["--port", str(port)]) == 2
    assert f"--port: {port} is taken by another program. Choose another" in capsys.readouterr().err
    assert not served


def test_a_program_that_stays_silent_does_not_hold_us_up(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(start_app, "ASK_S", 0.1)
    with closing(socket.socket()) as silent:
        silent.bind((HERE, 0))
        silent.listen()
        assert main(["--port", str(silent.getsockname()[1])]) == 2
    assert "is taken by another program" in capsys.readouterr().err


def test_twenty_more_ports_are_tried_and_no_more(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def bound(asked: Any, port: int) -> socket.socket:
        tried.append(port)
        raise PermissionError(13, "denied")

    monkeypatch.setattr(start_app, "_bound", bound)
    with pytest.raises(BadInput, match="8501 to 8521 are all taken"):
        start_app._listen(start_app._asked([]), {"leaklens": "", "class": False})
    assert tried == list(range(8501, 8522))


def running(port: int, **more: Any) -> bytes:
    """What a LeakLens on this home would say."""
    calls: Served = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            server, "serve", lambda *given: calls.append({"mark": given[2][MARK], "socket": given[0].close()})
        )
        assert main(["--port", str(port)]) == 0
    return json.dumps({**calls[0]["mark"], **more}).encode()


def test_a_second_start_finds_the_first(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_ports()
    with answering(port, running(port)):
        assert main(["--port", str(port)]) == 0
    assert f"LeakLens already runs at http://{HERE}:{port}\n" in capsys.readouterr().out
    assert not served


def test_a_second_start_cannot_open_the_first_to_others(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_ports()
    with answering(port, running(port)):
        assert main(["--port", str(port), "--host", "0.0.0.0"]) == 2
    assert f"already runs on port {port}, for this machine alone. Stop it with Ctrl-C" in capsys.readouterr().err


def test_a_leaklens_with_another_home_is_another_program(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_ports()
    with answering(port, running(port, leaklens="elsewhere")):
        assert main(["--port", str(port)]) == 2
    assert "is taken by another program" in capsys.readouterr().err


# --- the door, and what a page did not catch -----------------------------------------------------------------------


def knock(host: str | None, origin: str | None = None, kind: str = "websocket") -> bool:
    """Whether the door lets this through to the dashboard."""
    passed: list[str] = []
    headers = {"host": host, "origin": origin}
    scope = {"type": kind, "headers": [(k.encode(), v.encode()) for k, v in headers.items() if v is not None]}

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        passed.append("in")

    async def refused(message: Any) -> None:
        assert message.get("status", 403) == 403
        assert message["type"] in ("websocket.close", "http.response.start", "http.response.body")

    async def nothing() -> dict[str, str]:
        return {}

    asyncio.run(server.Door(inside, ["localhost", "Lab.example.org"])(scope, nothing, refused))
    return bool(passed)


@pytest.mark.parametrize(
    ("host", "origin", "welcome"),
    [
        ("127.0.0.1:8501", "http://127.0.0.1:8501", True),
        ("localhost:8501", "http://localhost:8501", True),
        ("[::1]:8501", "http://[::1]:8501", True),
        ("192.168.1.5:8501", "http://192.168.1.5:8501", True),
        ("LOCALHOST:8501", None, True),
        ("lab.example.org", "https://lab.example.org", True),
        ("127.0.0.1:8501", "http://evil.example", False),
        ("127.0.0.1:8501", "http://localhost:8501", False),
        ("127.0.0.1:8501", "null", False),
        ("evil.example:8501", "http://evil.example:8501", False),
        ("localhost.evil.example", "http://localhost.evil.example", False),
        ("[oops", None, False),
        (None, None, False),
    ],
)
def test_the_door_knows_this_machine(host: str | None, origin: str | None, welcome: bool) -> None:
    assert knock(host, origin) is welcome
    if origin is None or host == origin.partition("://")[2]:
        assert knock(host, kind="http") is welcome


def test_what_a_page_did_not_catch_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    for debug in (False, True):
        broken = start_app._teller(debug)
        for _ in range(3):
            broken(ZeroDivisionError("division by zero"))
        told = capsys.readouterr().err
        assert told.count("a page broke: ZeroDivisionError: division by zero. --debug shows where.\n") == 1
        assert ("ZeroDivisionError: division by zero\n" in told) is debug


# --- for real ------------------------------------------------------------------------------------------------------


def get(port: int, path: str, host: str = HERE, **more: str) -> tuple[int, str]:
    with closing(http.client.HTTPConnection(HERE, port, timeout=5)) as asking:
        asking.request("GET", path, headers={"Host": f"{host}:{port}", **more})
        answer = asking.getresponse()
        return answer.status, "" if answer.status == 101 else answer.read().decode()


def stream(port: int, host: str) -> int:
    """The answer to the handshake with which a page connects."""
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "streamlit"}
    return get(port, "/_stcore/stream", host, Origin=f"http://{host}:{port}", **upgrade, **key)[0]


@contextmanager
def process(*words: str) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    begun = subprocess.Popen([sys.executable, "-m", *words], cwd=ROOT, stdout=pipe, stderr=pipe, text=True)
    try:
        yield begun
    finally:
        begun.kill()
        begun.communicate()


def until(true: Callable[[], bool]) -> None:
    last = time.monotonic() + PATIENCE_S
    while time.monotonic() < last:
        try:
            if true():
                return
        except OSError:
            pass
        time.sleep(0.02)
    raise AssertionError(f"waited {PATIENCE_S:g} s")


@pytest.mark.slow
def test_the_dashboard_starts_answers_and_ends() -> None:
    port = free_ports()
    ready = f"LeakLens is ready: http://{HERE}:{port}   (stop with Ctrl-C)\n"
    with process("app", "--port", str(port)) as begun:
        assert begun.stdout
        assert begun.stdout.readline() == ready
        assert get(port, "/_stcore/health") == (200, "ok")
        assert get(port, "/", "localhost")[0] == 200
        assert get(port, "/", "evil.example") == (403, server.UNKNOWN)
        assert [stream(port, host) for host in (HERE, "localhost", "evil.example")] == [101, 101, 403]
        with process("app", "--port", str(port)) as second:
            assert second.communicate(timeout=PATIENCE_S) == (f"LeakLens already runs at http://{HERE}:{port}\n", "")
            assert second.returncode == 0
        begun.send_signal(signal.SIGINT)
        assert begun.communicate(timeout=PATIENCE_S) == ("\nLeakLens has stopped.\n", "")
        assert begun.returncode == 0


@pytest.mark.slow
def test_streamlit_alone_finds_the_same_settings() -> None:
    port = free_ports()
    with process("streamlit", "run", "app/main.py", "--server.port", str(port)) as begun:
        until(lambda: get(port, "/_stcore/health") == (200, "ok"))
        assert [stream(port, host) for host in (HERE, "localhost", "evil.example")] == [101, 101, 403]
        begun.send_signal(signal.SIGINT)
        told, _ = begun.communicate(timeout=PATIENCE_S)
    assert f"URL: http://{HERE}:{port}" in told
    assert "Network URL" not in told
