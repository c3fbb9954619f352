"""The start of the dashboard: its address, class mode, ports that are taken, and a clean end."""

from __future__ import annotations

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
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from app import __main__ as start_app
from app import server
from app.__main__ import IDENTITY, main
from app.session import limits as class_limits
from engine.environment import CLASS, ROOT
from engine.errors import BadInput, HomeUnwritable

LOCALHOST = "127.0.0.1"
TIMEOUT_S = 30.0


def free_ports(count: int = 1) -> int:
    """The first of `count` free ports in a row."""
    while True:
        with closing(socket.socket()) as probe:
            probe.bind((LOCALHOST, 0))
            first = int(probe.getsockname()[1])
        sockets = [socket.socket() for _ in range(count)]
        try:
            for offset, candidate in enumerate(sockets):
                candidate.bind((LOCALHOST, first + offset))
            return first
        except (OSError, OverflowError):
            continue
        finally:
            for candidate in sockets:
                candidate.close()


@contextmanager
def answering(port: int, body: bytes) -> Iterator[None]:
    """A program on a port that answers every request with the same body."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None: ...

    with http.server.HTTPServer((LOCALHOST, port), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield
        running.shutdown()
        thread.join()


Served = list[dict[str, Any]]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """The calls of `server.serve`, which returns at once. The process is restored afterwards."""
    calls: Served = []

    def serve(
        listening: socket.socket, names: Sequence[str], frames: Any, answers: Any, ready: Any, on_error: Any
    ) -> None:
        with listening:
            calls.append({"address": listening.getsockname()[:2], "answers": answers})
            ready()

    for name in (CLASS, "LEAKLENS_QUOTA_GB", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)  # monkeypatch restores it afterwards
    monkeypatch.setenv("LEAKLENS_HOME", os.environ["LEAKLENS_HOME"])
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setattr(start_app, "enter", lambda module, requirements, argv: list(argv))
    monkeypatch.setattr(start_app, "CONTAINERS", ())
    monkeypatch.setattr(sys, "platform", "linux")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield calls
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "0"], "--port: must be a whole number between 1 and 65535, got 0. Leave --port out for 8501"),
        (["--port", "70000"], "--port: must be a whole number between 1 and 65535, got 70000"),
        (["--port", "-3"], "--port: must be a whole number between 1 and 65535, got -3"),
        (["--port=eight"], "--port: must be a whole number between 1 and 65535, got eight"),
        (["--port", "٣"], "--port: must be a whole number between 1 and 65535, got ٣"),
        (["--port"], "--port: expected one argument. Run python3 -m app --help"),
        (["--host", ""], '--host: must be an address of this machine, got "". Leave --host out'),
        (["--host", "no such name"], "--host: must be an address of this machine, got no such name"),
        (["--prot", "3"], "unrecognized arguments: --prot 3. Run"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_installed(
    options: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(start_app, "enter", lambda *args: pytest.fail("refused too late"))
    assert main(options) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err
    assert output.err.count("\n") == 1


def test_it_prints_its_address_and_serves_this_machine_only(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_ports()
    assert main(["--port", str(port)]) == 0
    assert (
        capsys.readouterr().out.splitlines()[0] == f"LeakLens is ready: http://{LOCALHOST}:{port}   (stop with Ctrl-C)"
    )
    assert served[0]["address"] == (LOCALHOST, port)
    assert not class_limits.class_mode()


def test_for_others_it_warns_and_sets_limits(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--host", "0.0.0.0", "--port", str(free_ports())]) == 0
    output = capsys.readouterr().out
    limits = "4 runs at once"
    for sentence in ("There is no password", limits, "stay on this machine, in ", "stop with Ctrl-C"):
        assert sentence in output
    assert class_limits.class_mode()
    assert os.environ["LEAKLENS_QUOTA_GB"] == "10"
    assert served[0]["answers"][IDENTITY]["class"] is True


def test_a_disk_quota_from_the_environment_is_kept(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "3")
    assert main(["--host", "0.0.0.0", "--port", str(free_ports())]) == 0
    assert os.environ["LEAKLENS_QUOTA_GB"] == "3"


def test_a_missing_gpu_of_the_environment_is_refused_at_the_start(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEAKLENS_DEVICE", "cuda:900")
    assert main(["--port", str(free_ports())]) == 2
    assert "LEAKLENS_DEVICE: must be cpu, or cuda where a GPU is found, got cuda:900. Leave" in capsys.readouterr().err
    assert not served


def test_a_mistake_in_the_class_file_is_reported_at_the_start(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(class_limits, "FILE", tmp_path / "class.toml")
    assert main(["--host", "0.0.0.0", "--port", str(free_ports())]) == 2
    assert "class.toml: cannot be read" in capsys.readouterr().err
    assert not served


def test_in_a_container_its_own_address_is_not_printed(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(start_app, "CONTAINERS", (str(ROOT),))
    port = free_ports()
    assert main(["--host", "0.0.0.0", "--port", str(port)]) == 0
    assert f"http://ADDRESS-OF-THIS-MACHINE:{port}" in capsys.readouterr().out


@pytest.mark.parametrize(("desktop", "opened"), [(":0", True), ("", False)])
def test_open_opens_a_browser_on_a_machine_with_a_desktop(
    desktop: str, opened: bool, served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = threading.Event()
    monkeypatch.setattr("webbrowser.open", lambda url: shown.set())
    monkeypatch.setenv("DISPLAY", desktop)
    assert main(["--open", "--port", str(free_ports())]) == 0
    assert shown.wait(TIMEOUT_S if opened else 0) is opened
    assert ("This machine has no desktop" in capsys.readouterr().out) is not opened


def test_an_unusable_home_is_reported(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LEAKLENS_HOME", str(tmp_path / "file"))
    assert main([]) == HomeUnwritable.exit_code
    assert "Choose another folder with LEAKLENS_HOME" in capsys.readouterr().err


# --- ports that are taken --------------------------------------------------------------------------------------------


def test_the_next_free_port_is_taken(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_ports(2)
    monkeypatch.setattr(start_app, "PORT", port)
    with answering(port, b"<html>another program</html>"):
        assert main([]) == 0
    assert f"Port {port} is taken by another program; trying {port + 1}." in capsys.readouterr().out
    assert served[0]["address"] == (LOCALHOST, port + 1)


def test_a_port_from_the_command_line_is_not_replaced(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_ports()
    with answering(port, b'["another program"]'):
        assert main(["--port", str(port)]) == 2
    assert f"--port: {port} is taken by another program. Choose another" in capsys.readouterr().err
    assert not served


def test_a_program_that_does_not_answer_does_not_block_the_start(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(start_app, "IDENTITY_TIMEOUT_S", 0.1)
    with closing(socket.socket()) as silent:
        silent.bind((LOCALHOST, 0))
        silent.listen()
        assert main(["--port", str(silent.getsockname()[1])]) == 2
    assert "is taken by another program" in capsys.readouterr().err


def test_twenty_more_ports_are_tried_and_no_more(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def bound(args: Any, port: int) -> socket.socket:
        tried.append(port)
        raise PermissionError(13, "denied")

    monkeypatch.setattr(start_app, "_bound", bound)
    with pytest.raises(BadInput, match="8501 to 8521 are all taken"):
        start_app._listen(start_app._parsed([]), {"leaklens": "", "class": False})
    assert tried == list(range(8501, 8522))


def identity(port: int, **changes: Any) -> bytes:
    """The identity that a LeakLens with this home sends."""
    calls: Served = []

    def serve(listening: socket.socket, names: Any, frames: Any, answers: Any, *functions: Any) -> None:
        calls.append(answers[IDENTITY])
        listening.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "serve", serve)
        assert main(["--port", str(port)]) == 0
    return json.dumps({**calls[0], **changes}).encode()


def test_a_second_start_finds_the_first(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_ports()
    with answering(port, identity(port)):
        assert main(["--port", str(port)]) == 0
    assert f"LeakLens already runs at http://{LOCALHOST}:{port}\n" in capsys.readouterr().out
    assert not served


def test_a_second_start_cannot_change_the_host_of_the_first(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_ports()
    with answering(port, identity(port)):
        assert main(["--port", str(port), "--host", "0.0.0.0"]) == 2
    assert f"already runs on port {port}, for this machine only. Stop it with Ctrl-C" in capsys.readouterr().err


def test_a_leaklens_with_another_home_is_another_program(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_ports()
    with answering(port, identity(port, leaklens="elsewhere")):
        assert main(["--port", str(port)]) == 2
    assert "is taken by another program" in capsys.readouterr().err


# --- errors that no page caught ------------------------------------------------------------------


def test_an_error_that_no_page_caught_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    for debug in (False, True):
        print_error = start_app._error_printer(debug)
        for _ in range(3):
            print_error(ZeroDivisionError("division by zero"))
        output = capsys.readouterr().err
        assert output.count("a page failed: ZeroDivisionError: division by zero. --debug shows where.\n") == 1
        assert ("ZeroDivisionError: division by zero\n" in output) is debug


# --- real processes --------------------------------------------------------------------------------------------------


def get(port: int, path: str, host: str = LOCALHOST, **headers: str) -> tuple[int, str]:
    with closing(http.client.HTTPConnection(LOCALHOST, port, timeout=5)) as connection:
        connection.request("GET", path, headers={"Host": f"{host}:{port}", **headers})
        answer = connection.getresponse()
        return answer.status, "" if answer.status == 101 else answer.read().decode()


def stream(port: int, host: str, origin: str = "") -> int:
    """The status of the websocket handshake that a page sends."""
    origin = origin or f"http://{host}:{port}"
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "streamlit"}
    return get(port, "/_stcore/stream", host, Origin=origin, **upgrade, **key)[0]


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    started = subprocess.Popen([sys.executable, "-m", *arguments], cwd=ROOT, stdout=pipe, stderr=pipe, text=True)
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        with suppress(OSError):
            if condition():
                return
        time.sleep(0.02)
    raise AssertionError(f"waited {TIMEOUT_S:g} s")


@pytest.mark.slow
def test_the_dashboard_starts_answers_and_ends() -> None:
    port = free_ports()
    ready = f"LeakLens is ready: http://{LOCALHOST}:{port}   (stop with Ctrl-C)\n"
    with process("app", "--port", str(port)) as started:
        assert started.stdout
        assert started.stdout.readline() == ready
        assert get(port, "/_stcore/health") == (200, "ok")
        assert get(port, "/", "localhost")[0] == 200
        assert get(port, "/", "evil.example") == (403, server.UNKNOWN)
        assert [stream(port, host) for host in (LOCALHOST, "localhost", "evil.example")] == [101, 101, 403]
        with process("app", "--port", str(port)) as second:
            assert second.communicate(timeout=TIMEOUT_S) == (
                f"LeakLens already runs at http://{LOCALHOST}:{port}\n",
                "",
            )
            assert second.returncode == 0
        started.send_signal(signal.SIGINT)
        assert started.communicate(timeout=TIMEOUT_S) == ("\nLeakLens has stopped.\n", "")
        assert started.returncode == 0


@pytest.mark.slow
def test_streamlit_alone_reads_the_same_settings() -> None:
    port = free_ports()
    with process("streamlit", "run", "app/main.py", "--server.port", str(port)) as started:
        wait_until(lambda: get(port, "/_stcore/health") == (200, "ok"))
        assert [stream(port, host) for host in (LOCALHOST, "localhost", "evil.example")] == [101, 101, 403]
        began = time.monotonic()
        assert stream(port, LOCALHOST, "http://evil.example") == 403
        assert time.monotonic() - began < 1  # c08: the look-up of an external address takes 2 to 12 s
        started.send_signal(signal.SIGINT)
        output, _ = started.communicate(timeout=TIMEOUT_S)
    assert f"URL: http://{LOCALHOST}:{port}" in output
    assert "Network URL" not in output
