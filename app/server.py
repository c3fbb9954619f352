"""The web server: Streamlit, behind a check of the host name that the browser sends."""

from __future__ import annotations

import ipaddress
import logging
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import streamlit
import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.web import bootstrap

from app.session import cookie, limits
from app.session.presence import Presence
from app.session.screens import SCREENS
from engine.environment import ROOT
from engine.errors import LeakLensError

UNKNOWN = "LeakLens does not answer to this name. Type the address that it printed when it started.\n"
BROKEN = "This page broke, and that should not happen. Reload it; nothing that was run is lost."
TITLE = "LeakLens"  # until the screen has set its own
METRICS = "/_stcore/metrics"
PRESENCE = Presence()
EXPORT = "/export/{kind}/{id}.html"
EXPORT_LIST = "/export/{kind}.html"  # of the ids in `?ids=`
# Privacy: a page holds pictures, and the cookie decides who sees it. A cache would show it to the next visitor.
NOT_STORED = {"Cache-Control": "no-store"}
READY_S = 30.0  # the longest wait of an export for the shelves
NO_VISITOR = "-"  # a browser without a cookie owns nothing
# A page reads a thousand rows, and after each it waits for the threads of the other visitors. With Python's own 5 ms,
# thirty visitors waited for seconds.
SWITCH_S = 0.0005
SHUTDOWN_S = 2  # for open requests when the server stops


class HostCheck:
    """Answers only requests whose Host header is an IP address or a name of this machine.

    The check prevents DNS rebinding. A foreign page can point its own name at the address of this machine. The browser
    then treats both as one site. Without the check, that page could read the runs and pictures of a visitor.
    """

    def __init__(self, app: ASGIApp, names: Sequence[str]) -> None:
        self._app = app
        self._names = {name.lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "websocket" and not self._is_own_page(Headers(scope=scope)):
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http" and not self._is_known(Headers(scope=scope).get("host", "")):
            await PlainTextResponse(UNKNOWN, 403)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _is_own_page(self, headers: Headers) -> bool:
        """Whether a page of this server opens the connection. Browsers let any page open a websocket."""
        host = headers.get("host", "")
        origin = headers.get("origin")
        return self._is_known(host) and (origin is None or origin.partition("://")[2] == host)

    def _is_known(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host}")
        except ValueError:
            return False
        if "@" in host or parts.path or parts.query or parts.fragment:  # a Host is a name and a port, and no user
            return False
        name = (parts.hostname or "").rstrip(".")
        try:
            return bool(ipaddress.ip_address(name))
        except ValueError:
            return name in self._names


class SafeHeaders:
    """Adds the headers that keep a browser from guessing types and foreign pages from framing the dashboard.

    It also hides the measurements of Streamlit, which tell visitors about each other.
    """

    def __init__(self, app: ASGIApp, frames: Sequence[str]) -> None:
        self._app = app
        allowed = " ".join(["'self'", *frames])
        self._headers = {
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": f"frame-ancestors {allowed}",
            "Referrer-Policy": "same-origin",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with these headers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
            await send(message)

        if scope["path"].rstrip("/").endswith(METRICS):
            await PlainTextResponse("Not Found\n", 404)(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)


class VisitorCookie:
    """Gives each browser a random cookie, and counts its open tabs.

    Privacy: the cookie decides who may see an uploaded picture. It is random, scripts of the page cannot read it, and
    other sites cannot send it along. Where the dashboard may be shown inside another page, over https, it must be sent.
    """

    def __init__(self, app: ASGIApp, presence: Presence, framed: bool = False) -> None:
        self._app = app
        self._presence = presence
        self._framed = framed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on. An answer that is a page sets the cookie, for twelve hours from now."""
        if scope["type"] == "websocket":
            visitor = cookie.visitor_id(_token(scope))
            with self._presence.connected(visitor) if visitor else nullcontext():
                await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._app(scope, receive, partial(self._send, scope, send))
        else:
            await self._app(scope, receive, send)

    async def _send(self, scope: Scope, send: Send, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if headers.get("content-type", "").startswith("text/html"):
                token = _token(scope)
                kept = token if cookie.visitor_id(token) else cookie.new_token()
                headers.append("set-cookie", self._cookie(scope, kept))
        await send(message)

    def _cookie(self, scope: Scope, token: str) -> str:
        """The cookie as a header. A proxy says in X-Forwarded-Proto that the visitor uses https."""
        scheme = Headers(scope=scope).get("x-forwarded-proto", scope.get("scheme", "http"))
        secure = scheme == "https"
        site = "None; Partitioned" if self._framed and secure else "Lax"
        ending = "; Secure" if secure else ""
        return f"{cookie.COOKIE}={token}; Max-Age={cookie.COOKIE_S}; Path=/; HttpOnly; SameSite={site}{ending}"


def _token(scope: Scope) -> str:
    """The token in the cookie of a request; empty without one."""
    return str(HTTPConnection(scope).cookies.get(cookie.COOKIE, ""))


def host_names(more: Sequence[str]) -> list[str]:
    """The names of this machine that visitors may type. Its IP addresses need no name."""
    own = socket.gethostname()
    short = own.partition(".")[0]
    return ["localhost", own, f"{short}.local", *more]


def protection(names: Sequence[str], frames: Sequence[str]) -> list[Middleware]:
    """What every request passes before Streamlit: the headers of its answer, the check of its host, and the cookie."""
    return [
        Middleware(SafeHeaders, frames=frames),
        Middleware(HostCheck, names=names),
        Middleware(VisitorCookie, presence=PRESENCE, framed=bool(frames)),
    ]


def start_pages() -> list[Route]:
    """The page at the address of each screen: Streamlit's, with our title and with `start.js` before its scripts."""
    page = Path(streamlit.__file__).with_name("static").joinpath("index.html").read_text(encoding="utf-8")
    script = Path(__file__).with_name("start.js").read_text(encoding="utf-8")
    page = page.replace("<title>Streamlit</title>", f"<title>{TITLE}</title>\n<script>{{{script}}}</script>")

    async def answer(request: Request) -> HTMLResponse:
        del request
        return HTMLResponse(page, headers={"Cache-Control": "no-cache"})

    return [Route(f"/{path}", answer) for path in ("", *(screen.name for screen in SCREENS))]


def export_routes() -> list[Route]:
    return [Route(EXPORT, export), Route(EXPORT_LIST, export)]


async def export(request: Request) -> Response:
    """An exported page as a file to keep: of a run, an attack, a batch, an example, or of the ids in the address."""
    kind = str(request.path_params["kind"])
    id = str(request.path_params.get("id", "")) or request.query_params.get("ids", "")
    return await run_in_threadpool(_export, kind, id, _token(request.scope), request.query_params)


def _export(kind: str, id: str, token: str, params: Mapping[str, str]) -> Response:
    from app.export.served import served_export
    from app.session import services  # its caches need Streamlit's runtime

    shared = services.shared()
    if not shared.ready(READY_S):
        return PlainTextResponse("LeakLens is still loading. Try again in a moment.\n", 503)
    owner = cookie.visitor_id(token) or NO_VISITOR if limits.class_mode() else ""
    view, whose, style = params.get("view", "server"), params.get("whose", "global"), params.get("style", "page")
    exported = served_export(shared.store, kind, id, owner, view, whose, style)
    if exported.status != 200:
        return PlainTextResponse(f"{exported.text}\n", exported.status, headers=NOT_STORED)
    headers = {**NOT_STORED, "Content-Disposition": f'attachment; filename="{exported.name}"'}
    return HTMLResponse(exported.text, headers=headers)


def serve(
    listening: socket.socket,
    names: Sequence[str],
    frames: Sequence[str],
    answers: Mapping[str, Any],
    ready: Callable[[], None],
    on_error: Callable[[Exception], None],
) -> None:
    """Serve the dashboard on a socket until a signal ends it.

    `frames` are the addresses of pages that may show the dashboard inside themselves, besides its own. `answers` maps a
    path to its JSON answer. `ready` is called when the server accepts requests, `on_error` with every error that no
    page caught.
    """

    async def answer(request: Request) -> JSONResponse:
        return JSONResponse(answers[request.url.path])

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        del app
        ready()
        PRESENCE.start()
        yield
        PRESENCE.stop()
        streamlit.cache_resource.clear()  # closes the shared services: workers end, and their runs can resume

    def show_error(error: Exception) -> bool:
        explained = isinstance(error, LeakLensError)
        streamlit.error(str(error) if explained else BROKEN)
        if not explained:
            on_error(error)
        return True

    sys.setswitchinterval(SWITCH_S)
    logging.getLogger("streamlit.error_util").disabled = True  # `on_error` prints these errors
    address, port = listening.getsockname()[:2]
    # Streamlit allows every host, because HostCheck refuses foreign ones first.
    bootstrap.load_config_options({"server.address": address, "server.port": port, "server.allowedHosts": ["*"]})
    app = streamlit.App(
        ROOT / "app" / "main.py",
        lifespan=lifespan,
        on_script_error=show_error,
        routes=[*(Route(path, answer) for path in answers), *export_routes(), *start_pages()],
        middleware=protection(names, frames),
    )
    config = uvicorn.Config(
        app,
        ws="websockets-sansio",
        ws_per_message_deflate=False,  # Streamlit has the same setting; compression would take cores from the runs
        timeout_graceful_shutdown=SHUTDOWN_S,
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
    )
    uvicorn.Server(config).run(sockets=[listening])
