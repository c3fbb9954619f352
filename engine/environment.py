"""Makes `.venv` with nothing but the standard library, and starts the commands of the README inside it.

The syntax stays that of Python 3.8, so that an older Python reads a sentence and not a syntax error.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
CLASS = "LEAKLENS_CLASS"  # "1" if others can reach the dashboard
GUARD = "LEAKLENS_STARTED_BY"  # the Python a start has just handed over to
SCARCE = 100_000_000  # bytes; a bare environment takes a third of it
PIN = re.compile(r"([A-Za-z0-9._-]+)==([^\s;=]+)(?:\s*;.+)?")  # a marker after it is for pip
CAUSES = (  # what pip's complaint looks like, what it means, what helps
    (
        r"No space left|Errno 28|quota exceeded",
        "the disk is full",
        "Free a few gigabytes, or point TMPDIR at a folder with space, and start again",
    ),
    (
        r"Max retries|NewConnection|Connection refused|name resolution|unreachable|[Tt]imed? ?out|ProxyError|SSLError",
        "the package index was not reached",
        "Look at the network or the proxy, or name your own index with `pip config set global.index-url URL`",
    ),
    (
        r"No matching distribution|Could not find a version",
        "no package index in reach offers it for this Python",
        "Use Python 3.11, 3.12 or 3.13 on a 64-bit system, and look at the network and at `pip config list`",
    ),
)


class StartError(Exception):
    """Why it cannot start, and the remedy."""


class Requirements:
    """The pins of a requirements file and of the files it includes, as far as they are direct dependencies.

    pip installs every line. An environment is good when it has the direct dependencies: those that a nearby
    `pyproject.toml` names. Without such a file every pin counts as direct.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pins: dict[str, str] = {}
        self.hashes: set[str] = set()  # of every requirements file read
        self._read(path)
        direct = _direct_names(path)
        if direct:
            self.pins = {name: pin for name, pin in self.pins.items() if _canonical(name) in direct}

    def _read(self, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise StartError(f"{path}: cannot be read ({error.strerror}). Fetch LeakLens again, whole") from None
        self.hashes.add(hashlib.sha256(text.encode()).hexdigest())
        for number, raw in enumerate(text.splitlines(), 1):
            line = raw.split("#")[0].strip()
            pin = PIN.fullmatch(line)
            if pin:
                self.pins[pin.group(1)] = pin.group(2)
            elif line.startswith("-r "):
                self._read(path.parent / line[3:].strip())
            elif line:
                raise StartError(f"{path}, line {number}: must be name==version or -r file, got {line}")

    def lacking(self, site: Path | None = None) -> list[str]:
        """The direct pins that this Python, or a folder of packages, does not satisfy; a `+cpu` build satisfies its."""
        return [f"{name}=={pin}" for name, pin in self.pins.items() if _public(_installed(name, site)) != _public(pin)]


class Venv:
    """The project's own `.venv`: a stamp says what is in it to the end, a mark that pip began and did not finish."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / ".venv"
        where = {"base": str(self.folder), "platbase": str(self.folder)}
        self.site = Path(sysconfig.get_path("purelib", "venv", where))
        windows = os.name == "nt"
        self.python = Path(sysconfig.get_path("scripts", "venv", where)) / ("python.exe" if windows else "python")
        self.stamp, self.mark = self.folder / "leaklens.json", self.folder / "leaklens.unfinished"

    def stamped(self) -> set[str]:
        """Hashes of the requirement files that were installed to the end; none where another Python did it."""
        try:
            stamp = json.loads(self.stamp.read_text(encoding="utf-8"))
            return set(stamp["requirements"]) if stamp["python"] == sys.implementation.cache_tag else set()
        except (OSError, ValueError, KeyError, TypeError):
            return set()

    def ready(self, wanted: Requirements) -> bool:
        whole = self.python.exists() and (self.folder / "pyvenv.cfg").exists()
        return whole and wanted.hashes <= self.stamped() and not wanted.lacking(self.site)

    def sound(self) -> bool:
        """Whether it starts, is of this Python, has pip, installs nowhere else, and no pip was killed in it."""
        if self.mark.exists() or not self.python.exists():
            return False
        ask = "import pip, sys; print(sys.implementation.cache_tag); print(sys.prefix)"
        try:
            answer = subprocess.run([str(self.python), "-c", ask], capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return False
        tag, prefix = answer.stdout.splitlines()[-2:] if answer.returncode == 0 else ("", "")
        return tag == sys.implementation.cache_tag and Path(prefix).resolve() == self.folder.resolve()

    def make(self) -> None:
        """A new one, in place of what may lie there."""
        absent = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
        if absent:
            raise StartError(
                f"This Python ({sys.executable}) comes without `{absent[0]}`, so .venv cannot be made. "
                "On Debian or Ubuntu: apt-get install python3-venv. Elsewhere: install Python whole, or prepare an "
                "environment of your own with `pip install -r requirements.txt` and start from it"
            )
        if self.folder.exists():
            _say(".venv is unfinished or of another Python: making it again")
            shutil.rmtree(self.folder)
        else:
            _say("making .venv")
        self.folder.mkdir()
        self.mark.touch()
        command = [sys.executable, "-m", "venv", str(self.folder)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode:
            full = (
                "No space left\n" if shutil.disk_usage(self.root).free < SCARCE else ""
            )  # venv itself does not say so
            raise StartError(_diagnosis(".venv could not be made", full + done.stdout + done.stderr))

    def install(self, wanted: Requirements, index: str, kept: int) -> None:
        """One pip run, with the user's own pip configuration; the stamp comes last."""
        hashes = sorted(wanted.hashes | self.stamped())
        self.mark.touch()
        self.stamp.unlink(missing_ok=True)
        _pip([str(self.python), "-m", "pip"], wanted.path, index, kept)
        still = wanted.lacking(self.site)
        if still:
            raise StartError(
                f"pip was content, but .venv lacks {', '.join(still)}. Delete {self.folder} and start again"
            )
        stamp = {"python": sys.implementation.cache_tag, "requirements": hashes}
        self.mark.write_text(json.dumps(stamp), encoding="utf-8")
        os.replace(self.mark, self.stamp)


def class_mode() -> bool:
    """Whether others can reach the dashboard, so that visitors share this machine."""
    return os.environ.get(CLASS, "0") not in ("", "0")


def enter(module: str, requirements: Path, argv: Sequence[str], root: Path = ROOT) -> list[str]:
    """The arguments left for `module`: here if this Python has all it needs, else in `.venv`, without coming back."""
    try:
        return _enter(module, requirements, argv, root)
    except StartError as trouble:
        _say(f"{trouble}.")
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        _say("stopped. The same command takes it up again.")
        raise SystemExit(130) from None


def _enter(module: str, requirements: Path, argv: Sequence[str], root: Path) -> list[str]:
    version = sys.version_info[:3]
    if version < OLDEST:
        have, need = ".".join(map(str, version)), ".".join(map(str, OLDEST))
        remedy = f"Start it with a newer one, for example: python{need} -m {module}"
        raise StartError(f"LeakLens needs Python {need} or newer, and {sys.executable} is {have}. {remedy}")
    _refuse_copy(root)
    came_from = os.environ.pop(GUARD, "")
    index, rest = take_index(argv)
    wanted = Requirements(requirements)
    if not wanted.lacking():
        _explain_unused(index)
        return rest
    venv = Venv(root)
    if came_from == str(venv.python):
        missing = ", ".join(wanted.lacking())
        raise StartError(f"{venv.python} started, but does not see {missing}. Delete {venv.folder} and start again")
    if venv.ready(wanted):
        _explain_unused(index)
    else:
        _prepare(venv, wanted, index, module)
    _hand_over(venv, module, rest)


def _refuse_copy(root: Path) -> None:
    """An ordinary `pip install` copies the packages and leaves data sets, examples and limits behind."""
    if not (root / "assets").is_dir():
        raise StartError(
            f"{root} has no folder `assets`: it must hold the data that LeakLens needs. LeakLens runs from its "
            "repository. Fetch the whole repository, and install it there with `pip install -e .`"
        )


def take_index(argv: Sequence[str]) -> tuple[str, list[str]]:
    """`--index URL` apart from the other arguments."""
    index, rest, words = "", [], list(argv)
    while words:
        word = words.pop(0)
        if word == "--index":
            word = "--index=" + (words.pop(0) if words else "")
        if not word.startswith("--index="):
            rest.append(word)
            continue
        index = word[len("--index=") :]
        if not index or index.startswith("-"):
            raise StartError(f"--index: must be followed by the address of a package index, got {index or 'nothing'}")
    return index, rest


def _prepare(venv: Venv, wanted: Requirements, index: str, module: str) -> None:
    started = time.monotonic()
    try:
        with _alone(venv.root) as kept:
            if venv.ready(wanted):  # another start did it meanwhile
                return
            if not venv.sound():
                venv.make()
            if not index and any(pin.startswith("torch==") for pin in wanted.lacking(venv.site)):
                _offer_small_torch(module)
            _say(f"installing {os.path.relpath(wanted.path, venv.root)} into .venv; later starts skip this")
            venv.install(wanted, index, kept)
    except OSError as error:
        remedy = "It must be a folder that you may write to, on a disk with space"
        raise StartError(f"{venv.folder} cannot be prepared: {error}. {remedy}") from None
    _say(f"ready after {time.monotonic() - started:.0f} s")


def _pip(pip: list[str], requirements: Path, index: str, kept: int) -> None:
    command = [*pip, "install", "--disable-pip-version-check", "--no-input", "-r", str(requirements)]
    if index:
        command += ["--extra-index-url", index]
    windows = os.name == "nt"
    errors: list[str] = []
    with subprocess.Popen(
        command, stdout=2, stderr=subprocess.PIPE, text=True, errors="replace", pass_fds=() if windows else (kept,)
    ) as running:
        for line in running.stderr or ():
            errors.append(line)
            sys.stderr.write(line)
    if running.returncode:
        raise StartError(_diagnosis("pip did not finish", "".join(errors)))


def _diagnosis(what: str, output: str) -> str:
    for look, cause, remedy in CAUSES:
        if re.search(look, output):
            return f"{what}: {cause}. {remedy}"
    last = output.strip().splitlines()[-1:] or ["it gave no reason"]
    return f"{what}: {last[0].rstrip('.')}. Fix what it names, delete .venv and start again"


def _offer_small_torch(module: str) -> None:
    graphics = ("/proc/driver/nvidia/version", "/dev/nvidiactl")
    if not sys.platform.startswith("linux") or shutil.which("nvidia-smi") or any(map(os.path.exists, graphics)):
        return
    _say(
        "there is no NVIDIA graphics card here, and the usual Linux build of torch brings gigabytes for one. "
        f"To take the CPU build, stop this with Ctrl-C and start it with `python3 -m {module} --index URL`; "
        "the URL is the one that PyTorch's installation page shows for Linux, pip, CPU"
    )


def _explain_unused(index: str) -> None:
    if index:
        _say("--index was not needed: everything is installed. To choose another torch, delete .venv first")


def _hand_over(venv: Venv, module: str, rest: list[str]) -> NoReturn:
    os.environ[GUARD] = str(venv.python)
    command = [str(venv.python), "-m", module, *rest]
    if Path.cwd() != venv.root:  # `leaklens` starts in any folder, and the new Python must find our packages
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(venv.root), os.environ.get("PYTHONPATH")]))
    sys.stdout.flush()
    try:
        if os.name == "nt":  # there, exec would return to the prompt at once
            raise SystemExit(subprocess.call(command))
        os.execv(command[0], command)
    except OSError as error:
        raise StartError(f"{venv.python} cannot start: {error.strerror}. Delete {venv.folder} and try again") from None


@contextmanager
def _alone(root: Path) -> Iterator[int]:
    """One start at a time; the lock falls with the process that holds it, and with its pip."""
    with open(root / ".venv.lock", "a", encoding="utf-8") as file:
        announced = False
        while not _locked(file):
            if not announced:
                _say("another start is preparing .venv: waiting for it")
            announced = True
            time.sleep(0.3)
        yield file.fileno()


def _locked(file: Any) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a disk without locks
        return True
    return True


def _installed(name: str, site: Path | None) -> str:
    from importlib import metadata  # here: an old Python must get as far as its sentence

    places: dict[str, Any] = {} if site is None else {"path": [str(site)]}
    for distribution in metadata.distributions(name=name, **places):
        try:
            if distribution.version:
                return str(distribution.version)
        except (KeyError, metadata.PackageNotFoundError):  # a folder left behind by a killed installation
            continue
    return ""


def _direct_names(requirements: Path) -> set[str]:
    """The dependencies in the `pyproject.toml` next to a requirements file, or one folder above it."""
    import tomllib  # here: an old Python must get as far as its sentence

    for folder in requirements.absolute().parents[:2]:
        path = folder / "pyproject.toml"
        try:
            project = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {})
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise StartError(f"{path}: cannot be read ({error}). Fetch LeakLens again, whole") from None
        groups = [project.get("dependencies", []), *project.get("optional-dependencies", {}).values()]
        return {_canonical(re.split(r"[^A-Za-z0-9._-]", line)[0]) for group in groups for line in group}
    return set()


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _public(version: str) -> str:
    return version.split("+")[0]


def _say(sentence: str) -> None:
    print(f"leaklens: {sentence}", file=sys.stderr, flush=True)
