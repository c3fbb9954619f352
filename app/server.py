"""The web server: Streamlit behind a door that knows the names of this machine."""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import streamlit
import uvicorn
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.web import bootstrap

from engine.environment import ROOT
from engine.errors import LeakLensError

UNKNOWN = "LeakLens does not answer to this name. Type the address that it printed when it started.\n"
BROKEN = "This page broke, and that should not happen. Reload it; nothing that was run is lost."
PATIENCE_S = 2  # for answers under way when the server stops


class Door:
    """Lets in who asks for this machine by an address or by one of its names.

    A page elsewhere can give its own name our address; the browser then takes us for that page, and sends that name.
    """

    def __init__(self, app: ASGIApp, names: Sequence[str]) -> None:
        self._app, self._names = app, {name.lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket" and not self._own_page(Headers(scope=scope)):
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http" and not self._known(Headers(scope=scope).get("host", "")):
            await PlainTextResponse(UNKNOWN, 403)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _own_page(self, headers: Headers) -> bool:
        host, origin = headers.get("host", ""), headers.get("origin")
        return self._known(host) and (origin is None or origin.partition("://")[2] == host)

    def _known(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:
            return False
        try:
            return bool(ipaddress.ip_address(name))
        except ValueError:
            return name in self._names


def names_here(more: Sequence[str]) -> list[str]:
    """What people may type for this machine, beside its addresses."""
    own = socket.gethostname()
    return ["localhost", own, f"{own.partition('.')[0]}.local", *more]


def serve(
    listening: socket.socket,
    names: Sequence[str],
    marks: Mapping[str, Any],
    ready: Callable[[], None],
    broken: Callable[[Exception], None],
) -> None:
    """Serve the dashboard on a socket until a signal comes.

    `marks` are answers by their path; `ready` is called when the door is open, `broken` with what a page did not catch.
    """

    async def marked(request: Request) -> JSONResponse:
        return JSONResponse(marks[request.url.path])

    @asynccontextmanager
    async def announced(app: Any) -> AsyncIterator[None]:
        del app
        ready()
        yield
        streamlit.cache_resource.clear()  # releases what the visitors shared: the workers end, their runs can go on

    def apologise(error: Exception) -> bool:
        known = isinstance(error, LeakLensError)
        streamlit.error(str(error) if known else BROKEN)
        if not known:
            broken(error)
        return True

    logging.getLogger("streamlit.error_util").disabled = True  # it would print what `broken` is told
    address, port = listening.getsockname()[:2]
    bootstrap.load_config_options(
        {"server.address": address, "server.port": port, "server.allowedHosts": ["*"]}  # the door decides
    )
    app = streamlit.App(
        ROOT / "app" / "main.py",
        lifespan=announced,
        on_script_error=apologise,
        routes=[Route(path, marked) for path in marks],
        middleware=[Middleware(Door, names=names)],
    )
    config = uvicorn.Config(
        app,
        ws="websockets-sansio",
        ws_per_message_deflate=False,  # as Streamlit does: the cores are for the runs
        timeout_graceful_shutdown=PATIENCE_S,
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
    )
    uvicorn.Server(config).run(sockets=[listening])
