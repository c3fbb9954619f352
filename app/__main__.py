"""`python3 -m app`: creates `.venv` if it is missing, starts the dashboard, and prints its address."""

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

from engine.environment import CLASS, ROOT, enter
from engine.errors import BadInput, LeakLensError, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

USAGE = """usage: python3 -m app [--port N] [--host ADDRESS] [--open] [--index URL] [--debug]

Creates .venv, installs requirements.txt into it and starts the dashboard on this machine.

  --port N         the port; the default is 8501, or the next free one
  --host ADDRESS   the address to serve: 127.0.0.1 for this machine only, 0.0.0.0 for everyone on the network
                   (class mode: there is no password, and assets/class.toml limits each visitor)
  --open           open the dashboard in the browser
  --index URL      an additional package index, for example the one with the CPU build of torch
  --debug          print the traceback of an error
"""
PORT, MORE_PORTS = 8501, 20
IDENTITY_TIMEOUT_S = 3.0  # for the program on a port to answer which home it serves
IDENTITY = "/_leaklens"  # the path at which a LeakLens identifies itself
WARNING = """Class mode: everyone who can reach this machine can use LeakLens.
  There is no password. Everyone sees every run, apart from attacks on the uploaded pictures of others.
  Limits of each visitor (assets/class.toml): {limits}.
  Pictures that visitors upload stay on this machine, in {home}.
"""
CONTAINERS = ("/.dockerenv", "/run/.containerenv")


class StartParser(argparse.ArgumentParser):
    """A parser that raises BadInput with one sentence in place of a usage message."""

    def error(self, message: str) -> NoReturn:
        sentence = message.removeprefix("argument ")
        raise BadInput(sentence, "Run python3 -m app --help to see the options")


def main(argv: list[str]) -> int:
    if {"-h", "--help"} & set(argv):
        sys.stdout.write(USAGE)
        return 0
    try:
        args = _parsed(argv)
        enter("app", ROOT / "requirements.txt", argv)
        return start(args)
    except LeakLensError as error:
        print(f"leaklens: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return _stopped()


def _parsed(argv: list[str]) -> argparse.Namespace:
    parser = StartParser(prog="python3 -m app", add_help=False, allow_abbrev=False)
    parser.add_argument("--port")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--debug", action="store_true")
    parser.add_argument("--index", nargs="?")  # engine.environment reads it
    args = parser.parse_args(argv)
    if args.port is not None:
        args.port = _port(args.port)
    args.family, args.address = _address(args.host)
    return args


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535):
        remedy = f"Leave --port out for {PORT} or the next free port"
        raise refusal("--port", "must be a whole number between 1 and 65535", text, remedy)
    return int(text)


def _address(host: str) -> tuple[int, str]:
    """The address family and the numeric address of a host name."""
    try:
        entries = socket.getaddrinfo(host or "?", None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise _no_address(host) from None
    return min((int(family), str(address[0])) for family, _, _, _, address in entries)


def _no_address(host: str) -> BadInput:
    remedy = "Leave --host out for this machine only, or use 0.0.0.0 for everyone on its network"
    return refusal("--host", "must be an address of this machine", host, remedy)


# --- inside the environment ----------------------------------------------------------------------


def start(args: argparse.Namespace) -> int:
    """Serve the dashboard until a signal ends it. If this home is served already, print its address."""
    from app.session import limits as class_limits
    from engine.jobs.backends.device import refuse_missing_default
    from engine.jobs.home import Home

    refuse_missing_default()
    home = Home.find()
    os.environ["LEAKLENS_HOME"] = str(home.path)
    os.chdir(ROOT)  # Streamlit reads its settings from the current folder
    if not ipaddress.ip_address(args.address.partition("%")[0]).is_loopback:
        os.environ[CLASS] = "1"
    limits = class_limits.caps()
    if limits.gigabytes:
        os.environ.setdefault("LEAKLENS_QUOTA_GB", f"{limits.gigabytes:g}")
    home_id = hashlib.sha256(str(home.path).encode()).hexdigest()[:12]
    identity = {"leaklens": home_id, "class": class_limits.class_mode()}
    listening, port = _listen(args, identity)
    url = _url(_public_address(args), port)
    if listening is None:
        _announce(args, port, f"LeakLens already runs at {url}")
        return 0
    if class_limits.class_mode():
        print(WARNING.format(limits=class_limits.limits_text(limits), home=home.path))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGTERM ends it cleanly, as Ctrl-C does
    from app import server

    def ready() -> None:
        _announce(args, port, f"LeakLens is ready: {url}   (stop with Ctrl-C)")

    answers = {IDENTITY: identity}
    names = server.host_names(limits.names)
    server.serve(listening, names, limits.frames, answers, ready, _error_printer(args.debug))
    return _stopped()


def _stopped() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not interrupt the end
    print("\nLeakLens has stopped.", flush=True)
    return 0


def _error_printer(debug: bool) -> Callable[[Exception], None]:
    """A function that prints errors which no page caught, each once: a page that polls fails again at every poll."""
    printed = set()

    def print_error(error: Exception) -> None:
        message = f"{type(error).__name__}: {error}".rstrip(".")
        if message in printed:
            return
        printed.add(message)
        print(f"leaklens: a page failed: {message}. --debug shows where.", file=sys.stderr, flush=True)
        if debug:
            traceback.print_exception(error)

    return print_error


# --- the port ------------------------------------------------------------------------------------


def _listen(args: argparse.Namespace, identity: dict[str, Any]) -> tuple[socket.socket | None, int]:
    """A socket on a free port. The socket is None if LeakLens already serves this home on the port."""
    first = args.port or PORT
    last = first if args.port else first + MORE_PORTS
    for port in range(first, last + 1):
        try:
            return _bound(args, port), port
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise _no_address(args.host) from None
            denied = error.errno == errno.EACCES
        other = {} if denied else _identity_on(args, port)
        if other.get("leaklens") == identity["leaklens"]:
            if identity["class"] and not other.get("class"):
                remedy = "Stop it with Ctrl-C, then start it again with this --host"
                raise BadInput(f"LeakLens already runs on port {port}, for this machine only", remedy)
            return None, port
        if args.port:
            why = "needs permissions that you do not have" if denied else "is taken by another program"
            raise BadInput(f"--port: {port} {why}", "Choose another, or leave --port out for the next free port")
        print(f"Port {port} is taken by another program; trying {port + 1}.")
    raise BadInput(f"the ports {PORT} to {PORT + MORE_PORTS} are all taken", "Choose another with --port")


def _bound(args: argparse.Namespace, port: int) -> socket.socket:
    listening = socket.socket(args.family, socket.SOCK_STREAM)
    try:
        if os.name != "nt":  # on Windows, this option would share the port with the program that has it
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if args.family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.bind((args.address, port))
        listening.listen()  # from here on, a second start waits for the answer of this one
    except BaseException:
        listening.close()
        raise
    return listening


def _identity_on(args: argparse.Namespace, port: int) -> dict[str, Any]:
    """The identity of the LeakLens on that port; empty if it is another program."""
    connection = http.client.HTTPConnection(_local_address(args), port, timeout=IDENTITY_TIMEOUT_S)
    try:
        connection.request("GET", IDENTITY)
        identity = json.loads(connection.getresponse().read(1000))
    except (OSError, http.client.HTTPException, ValueError):
        return {}
    finally:
        connection.close()
    return identity if isinstance(identity, dict) else {}


# --- the address ---------------------------------------------------------------------------------


def _local_address(args: argparse.Namespace) -> str:
    """The address that a browser on this machine uses."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(args.address, str(args.address))


def _public_address(args: argparse.Namespace) -> str:
    """The address that every visitor can use."""
    if args.address not in ("0.0.0.0", "::"):
        return _local_address(args)
    in_container = any(os.path.exists(path) for path in CONTAINERS)
    address = None if in_container else _network_address()  # the address of a container is unreachable from outside
    return address or "ADDRESS-OF-THIS-MACHINE"


def _url(address: str, port: int) -> str:
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def _network_address() -> str | None:
    """The address of this machine on its default route. Connecting a datagram socket sends nothing."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagram:
        datagram.connect(("192.0.2.1", 9))  # an address reserved for documentation
        return str(datagram.getsockname()[0])
    return None


def _announce(args: argparse.Namespace, port: int, sentence: str) -> None:
    """Print the sentence; with --open, also open the dashboard in the browser."""
    print(sentence, flush=True)
    if not args.open:
        return
    if sys.platform in ("win32", "darwin") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        url = _url(_local_address(args), port)
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
    else:
        print("This machine has no desktop. Type the address in a browser.", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
