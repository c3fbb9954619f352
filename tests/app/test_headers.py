"""Who is answered, the headers of every answer, and the measurements that visitors do not see."""

from __future__ import annotations

import asyncio
import importlib.util
import tomllib
from typing import Any

import pytest
from streamlit import config, net_util
from streamlit.web.server.app_discovery import discover_asgi_app

from app import server
from engine.environment import ROOT


def answered(path: str, *frames: str) -> tuple[int, dict[str, str]]:
    """The status and the headers of an answer of the dashboard."""
    messages: list[Any] = []

    async def dashboard(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"measurements"})

    async def receive() -> dict[str, str]:
        return {}

    async def send(message: Any) -> None:
        messages.append(message)

    scope = {"type": "http", "path": path, "method": "GET", "headers": []}
    asyncio.run(server.SafeHeaders(dashboard, frames)(scope, receive, send))
    start = messages[0]
    return start["status"], {name.decode().lower(): value.decode() for name, value in start["headers"]}


def test_c05_a_browser_guesses_no_type_and_frames_nothing_of_others() -> None:
    status, headers = answered("/")
    assert status == 200
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == "frame-ancestors 'self'"
    _, headers = answered("/", "https://moodle.example.org")
    assert headers["content-security-policy"] == "frame-ancestors 'self' https://moodle.example.org"


@pytest.mark.parametrize("path", ["/_stcore/metrics", "/_stcore/metrics/", "/base/_stcore/metrics"])
def test_c05_visitors_see_no_measurements(path: str) -> None:
    status, headers = answered(path)
    assert status == 404 and headers["x-content-type-options"] == "nosniff"
    assert answered("/_stcore/health")[0] == 200


def test_b13_no_message_is_cached() -> None:
    """A cached message that the browser has lost ends the page."""
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert settings["global"]["minCachedMessageSize"] >= 1e9


# --- the host check ------------------------------------------------------------------------------------------


def is_allowed(host: str | None, origin: str | None = None, kind: str = "websocket") -> bool:
    """Whether the host check passes this request to the dashboard."""
    passed: list[str] = []
    headers = {"host": host, "origin": origin}
    scope = {"type": kind, "headers": [(k.encode(), v.encode()) for k, v in headers.items() if v is not None]}

    async def dashboard(scope: Any, receive: Any, send: Any) -> None:
        passed.append(kind)

    async def send_refusal(message: Any) -> None:
        assert message.get("status", 403) == 403
        assert message["type"] in ("websocket.close", "http.response.start", "http.response.body")

    async def receive() -> dict[str, str]:
        return {}

    check = server.HostCheck(dashboard, ["localhost", "Lab.example.org"])
    asyncio.run(check(scope, receive, send_refusal))
    return bool(passed)


@pytest.mark.parametrize(
    ("host", "origin", "allowed"),
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
        ("evil.example@127.0.0.1:8501", None, False),
        ("evil.example@127.0.0.1:8501", "http://evil.example@127.0.0.1:8501", False),
        ("127.0.0.1:8501/evil.example", None, False),
        (None, None, False),
    ],
)
def test_the_host_check_allows_only_this_machine(host: str | None, origin: str | None, allowed: bool) -> None:
    assert is_allowed(host, origin) is allowed
    if origin is None or host == origin.partition("://")[2]:
        assert is_allowed(host, kind="http") is allowed


def test_c08_streamlit_alone_never_looks_up_its_external_address(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []
    monkeypatch.setattr(net_util, "get_external_ip", lambda: looked_up.append("external address"))
    monkeypatch.setattr(config, "_main_script_path", config._main_script_path)  # the App sets it for the process
    app_file = ROOT / "app" / "main.py"
    spec = importlib.util.spec_from_file_location("main", app_file)  # as `streamlit run` does
    assert spec and spec.loader
    served = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(served)
    assert discover_asgi_app(app_file).app_name == "dashboard"
    messages: list[Any] = []

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        messages.append(message)

    headers = [(b"host", b"127.0.0.1:8501"), (b"origin", b"http://evil.example")]
    scope = {"type": "websocket", "path": "/_stcore/stream", "headers": headers, "query_string": b""}
    asyncio.run(served.dashboard(scope, receive, send))
    assert messages == [{"type": "websocket.close", "code": 1008}]
    assert not looked_up
