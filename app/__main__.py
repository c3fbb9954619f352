"""`python3 -m app`: makes `.venv` where needed, opens the dashboard, and says where it is."""

from __future__ import annotations

import argparse
import contextlib
import errno
import hashlib
import http.client
import ipaddress
import json
import os
import signal
import socket
import sys
import threading
import traceback
import webbrowser
from typing import TYPE_CHECKING, Any, NoReturn

from engine.environment import ROOT, enter
from engine.errors import BadInput, LeakLensError, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

USAGE = """usage: python3 -m app [--port N] [--host ADDRESS] [--open] [--index URL] [--debug]

Makes .venv, installs requirements.txt into it and opens the dashboard on this machine.

  --port N         the port; without it 8501, or the next one that is free
  --host ADDRESS   who reaches it: 127.0.0.1 this machine alone, 0.0.0.0 everybody on the network (class mode:
                   there is no password, and assets/class.toml says what a visitor may ask for)
  --open           show it in the browser
  --index URL      a further package index, for example the one with the CPU build of torch
  --debug          show the traceback of an error
"""
PORT, MORE_PORTS = 8501, 20
ASK_S = 3.0  # for whoever holds a port to say who it is
MARK = "/_leaklens"  # where a LeakLens says that it is one
WARNING = """Class mode: LeakLens answers everybody who can reach this machine.
  There is no password, and everybody sees every run.
  Limits of each visitor (assets/class.toml): {told}.
  Pictures that visitors upload stay on this machine, in {home}.
"""
CONTAINERS = ("/.dockerenv", "/run/.containerenv")


class StartParser(argparse.ArgumentParser):
    """Says what is wrong in one sentence."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(message[9:] if message.startswith("argument ") else message, "Ask python3 -m app --help")


def main(argv: list[str]) -> int:
    if {"-h", "--help"} & set(argv):
        sys.stdout.write(USAGE)
        return 0
    try:
        asked = _asked(argv)
        enter("app", ROOT / "requirements.txt", argv)
        return start(asked)
    except LeakLensError as trouble:
        print(f"leaklens: {trouble}", file=sys.stderr)
        return trouble.exit_code
    except KeyboardInterrupt:
        return _stopped()


def _asked(argv: list[str]) -> argparse.Namespace:
    parser = StartParser(prog="python3 -m app", add_help=False, allow_abbrev=False)
    parser.add_argument("--port")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--debug", action="store_true")
    parser.add_argument("--index", nargs="?")  # taken, and explained, by the environment
    asked = parser.parse_args(argv)
    if asked.port is not None:
        asked.port = _port(asked.port)
    asked.family, asked.address = _address(asked.host)
    return asked


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        remedy = f"Leave --port out for {PORT} or the next one that is free"
        raise refusal("--port", "must be a whole number between 1 and 65535", text, remedy)
    return int(text)


def _address(host: str) -> tuple[int, str]:
    """The family and the number behind a name."""
    try:
        found = socket.getaddrinfo(host or "?", None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise _no_address(host) from None
    return min((int(family), str(place[0])) for family, _, _, _, place in found)


def _no_address(host: str) -> BadInput:
    remedy = "Leave --host out for this machine alone, or give 0.0.0.0 for everybody on its network"
    return refusal("--host", "must be an address of this machine", host, remedy)


# --- after the environment is entered ------------------------------------------------------------


def start(asked: argparse.Namespace) -> int:
    from app.session import limits as class_limits
    from engine.jobs.home import Home

    home = Home.find()
    os.environ["LEAKLENS_HOME"] = str(home.path)
    os.chdir(ROOT)  # there lie the settings of the server
    if not ipaddress.ip_address(asked.address.partition("%")[0]).is_loopback:
        os.environ[class_limits.CLASS] = "1"
    limits = class_limits.caps()
    if limits.gigabytes:
        os.environ.setdefault("LEAKLENS_QUOTA_GB", f"{limits.gigabytes:g}")
    mark = {"leaklens": hashlib.sha256(str(home.path).encode()).hexdigest()[:12], "class": class_limits.class_mode()}
    listening, port = _listen(asked, mark)
    url = _url(_far(asked), port)
    if listening is None:
        _say(asked, port, f"LeakLens already runs at {url}")
        return 0
    if class_limits.class_mode():
        print(WARNING.format(told=class_limits.told(limits), home=home.path))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite end, as by Ctrl-C
    from app import server

    def ready() -> None:
        _say(asked, port, f"LeakLens is ready: {url}   (stop with Ctrl-C)")

    server.serve(listening, server.names_here(limits.names), {MARK: mark}, ready, _teller(asked.debug))
    return _stopped()


def _stopped() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C has nothing left to do
    print("\nLeakLens has stopped.", flush=True)
    return 0


def _teller(debug: bool) -> Callable[[Exception], None]:
    """Tells what a page did not catch, once: a page that looks again and again breaks again and again."""
    told = set()

    def broken(error: Exception) -> None:
        words = f"{type(error).__name__}: {error}".rstrip(".")
        if words in told:
            return
        told.add(words)
        print(f"leaklens: a page broke: {words}. --debug shows where.", file=sys.stderr, flush=True)
        if debug:
            traceback.print_exception(error)

    return broken


def _listen(asked: argparse.Namespace, mark: dict[str, Any]) -> tuple[socket.socket | None, int]:
    """A port of our own; without a socket, the port where this LeakLens runs already."""
    first = asked.port or PORT
    for port in range(first, first + 1 if asked.port else first + MORE_PORTS + 1):
        try:
            return _bound(asked, port), port
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise _no_address(asked.host) from None
            denied = error.errno == errno.EACCES
        found = {} if denied else _answer(asked, port)
        if found.get("leaklens") == mark["leaklens"]:
            if mark["class"] and not found.get("class"):
                remedy = "Stop it with Ctrl-C, then start it again for everybody"
                raise BadInput(f"LeakLens already runs on port {port}, for this machine alone", remedy)
            return None, port
        if asked.port:
            why = "may not be opened by you" if denied else "is taken by another program"
            raise BadInput(f"--port: {port} {why}", "Choose another, or leave --port out for the next one that is free")
        print(f"Port {port} is taken by another program; trying {port + 1}.")
    raise BadInput(f"the ports {PORT} to {PORT + MORE_PORTS} are all taken", "Choose another with --port")


def _bound(asked: argparse.Namespace, port: int) -> socket.socket:
    listening = socket.socket(asked.family, socket.SOCK_STREAM)
    try:
        if os.name != "nt":  # there, it would share the port with whoever has it
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if asked.family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.bind((asked.address, port))
        listening.listen()  # from now on a second start waits for our answer
    except BaseException:
        listening.close()
        raise
    return listening


def _answer(asked: argparse.Namespace, port: int) -> dict[str, Any]:
    """What a LeakLens on that port says of itself; nothing where it is something else."""
    connection = http.client.HTTPConnection(_near(asked), port, timeout=ASK_S)
    try:
        connection.request("GET", MARK)
        found = json.loads(connection.getresponse().read(1000))
    except (OSError, http.client.HTTPException, ValueError):
        return {}
    finally:
        connection.close()
    return found if isinstance(found, dict) else {}


def _near(asked: argparse.Namespace) -> str:
    """The address for this machine itself."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(asked.address, str(asked.address))


def _far(asked: argparse.Namespace) -> str:
    """The address for everybody who may come."""
    if asked.address not in ("0.0.0.0", "::"):
        return _near(asked)
    inside = any(os.path.exists(path) for path in CONTAINERS)  # of a container: its own address is of no use outside
    return (None if inside else _network_address()) or "ADDRESS-OF-THIS-MACHINE"


def _url(address: str, port: int) -> str:
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def _network_address() -> str | None:
    """Our address where the way to elsewhere begins; nothing is sent."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect(("192.0.2.1", 9))  # an address for documentation: nobody has it
        return str(asking.getsockname()[0])
    return None


def _say(asked: argparse.Namespace, port: int, sentence: str) -> None:
    """Where it is, and with --open also in the browser."""
    print(sentence, flush=True)
    if not asked.open:
        return
    if sys.platform in ("win32", "darwin") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        threading.Thread(target=webbrowser.open, args=(_url(_near(asked), port),), daemon=True).start()
    else:
        print("There is no desktop here to open it on: type the address in a browser.", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
