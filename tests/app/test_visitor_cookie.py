"""The cookie of a visitor: random, hidden from scripts, kept for twelve hours; and the tabs that are open."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from typing import Any
from unittest.mock import AsyncMock

import pytest

from app.server import VisitorCookie
from app.session import cookie, presence
from app.session.presence import Presence
from engine.jobs.store import Store
from engine.jobs.uploads import UploadedPictures
from tests.engine.jobs.makers import photo, saved

PATIENCE_S = 10.0


async def page(scope: Any, receive: Any, send: Any) -> None:
    """What is behind the middleware: a page, JSON, or a connection that stays open until an event is set."""
    if scope["type"] == "websocket":
        await receive()
        return
    kind = b"text/html; charset=utf-8" if scope["path"] == "/" else b"application/json"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    await send({"type": "http.response.body", "body": b""})


class Browser:
    """Keeps the cookie that a page set, and opens tabs."""

    def __init__(self, here: Presence, framed: bool = False) -> None:
        self.app = VisitorCookie(page, here, framed)
        self.token = ""

    def get(self, path: str = "/", **headers: str) -> str:
        """The header that sets the cookie; empty if the answer has none."""
        if self.token:
            headers.setdefault("cookie", f"{cookie.COOKIE}={self.token}")
        raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        answers: list[Any] = []

        async def send(message: Any) -> None:
            answers.append(message)

        scope = {"type": "http", "path": path, "headers": raw, "scheme": "http"}
        asyncio.run(self.app(scope, AsyncMock(), send))
        header = str(dict(answers[0]["headers"]).get(b"set-cookie", b"").decode())
        self.token = header.partition("=")[2].partition(";")[0] or self.token
        return header

    def tab(self, closing: threading.Event) -> threading.Thread:
        """A tab that stays open until the event is set."""

        async def receive() -> Any:
            while not closing.is_set():
                await asyncio.sleep(0.01)
            return {"type": "websocket.disconnect"}

        scope = {"type": "websocket", "headers": [(b"cookie", f"{cookie.COOKIE}={self.token}".encode())]}
        thread = threading.Thread(target=lambda: asyncio.run(self.app(scope, receive, AsyncMock())))
        thread.start()
        return thread


@pytest.fixture
def here(home: Any) -> Iterator[Presence]:
    known = Presence()
    yield known
    known.stop()


@pytest.fixture
def browser(here: Presence) -> Browser:
    return Browser(here)


def test_a_page_sets_a_random_cookie_that_no_script_can_read(browser: Browser, here: Presence) -> None:
    header = browser.get()
    assert re.fullmatch(r"leaklens_visitor=[0-9a-f]{32}; Max-Age=43200; Path=/; HttpOnly; SameSite=Lax", header)
    assert Browser(here).get() != header
    assert browser.get("/data") == ""


def test_a_later_page_keeps_the_visitor(browser: Browser) -> None:
    first = browser.get()
    assert browser.get() == first


@pytest.mark.parametrize("token", ["", "short", "x" * 32, "../../etc", "0" * 33])
def test_a_cookie_that_the_server_did_not_make_is_replaced(browser: Browser, token: str) -> None:
    browser.get(cookie=f"{cookie.COOKIE}={token}")
    assert cookie.visitor_id(browser.token) and browser.token != token


def test_over_https_it_is_secure_and_a_frame_may_send_it(here: Presence) -> None:
    assert Browser(here).get(x_forwarded_proto="https").endswith("SameSite=Lax; Secure")
    framed = Browser(here, framed=True)
    assert framed.get(x_forwarded_proto="https").endswith("SameSite=None; Partitioned; Secure")
    assert framed.get().endswith("SameSite=Lax")  # a browser refuses None without https


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


@pytest.mark.slow
def test_a_photo_lives_as_long_as_a_tab_of_its_owner(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "SEEN_S", 0.05)
    monkeypatch.setattr("engine.jobs.visits.LEFT_S", 0.5)
    browser.get()
    visitor = cookie.visitor_id(browser.token)
    store = Store()
    first, second = threading.Event(), threading.Event()
    tabs = [browser.tab(first), browser.tab(second)]
    wait_for(lambda: visitor in store.visits.present())
    name = store.owners.add(saved(photo(), "PNG"), visitor)
    first.set()
    time.sleep(1.0)  # another tab is open
    assert UploadedPictures(store.home).names() == (name,)
    second.set()
    wait_for(lambda: UploadedPictures(store.home).names() == ())
    assert store.owners.pictures(visitor) == ()
    for thread in tabs:
        thread.join()


def test_the_start_of_a_server_drops_what_visitors_of_the_last_one_left(here: Presence) -> None:
    store = Store()
    store.owners.add(saved(photo(), "PNG"), "visitor")
    with store._database.write() as connection:
        connection.execute("UPDATE visits SET start = 'of a process that ended'")
    here.start()
    wait_for(lambda: UploadedPictures(store.home).names() == ())
