"""The doctor: looks at everything LeakLens needs on this machine and says what would help; it mends nothing itself."""

from __future__ import annotations

import platform
import shutil
import sqlite3
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from engine.environment import OLDEST, ROOT, Requirements
from engine.errors import Damaged, LeakLensError, NewerVersion, printable
from engine.jobs.database import MIGRATIONS, damaged, explain
from engine.jobs.home import MAKE_ROOM, PRIORS, Home, gigabytes, quota
from engine.jobs.process_id import cores
from engine.jobs.status import stored_runs

ESSENTIAL = ("python", "torch", "home", "store")  # nothing runs without them
LOOK_S = 1.0  # at most, for each of: the pages of the store, the payloads
SCARCE = 2e9  # bytes of free disk
PERMIT = "Correct its permissions, or choose other folders with LEAKLENS_HOME and LEAKLENS_DATA"
REINSTALL = "Delete .venv and start `python3 -m app`: it installs everything anew"
NAMED = """SELECT run, json_extract(body, '$.name') AS name, json_extract(body, '$.kind') AS kind FROM events
    WHERE json_extract(body, '$.event') IN ('kept', 'pictured') AND json_extract(body, '$.name') <> ''"""
SAMPLE = 64  # pixels a side of the picture LPIPS is tried on


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: whether it works, what was seen, and what would help."""

    name: str
    ok: bool
    text: str
    remedy: str = ""

    def json(self) -> dict[str, Any]:
        return asdict(self)


def examine() -> list[Finding]:
    """Everything in turn; what goes wrong while looking is a finding, too."""
    looks: tuple[tuple[str, Callable[[], Finding]], ...] = (
        ("python", python),
        ("packages", packages),
        ("torch", torch_works),
        ("home", home_folder),
        ("disk", disk),
        ("store", store),
        ("payloads", payloads),
        ("threads", threads),
        ("gpu", gpu),
        ("denormals", denormals),
        ("torchvision", torchvision_opens),
        ("lpips", lpips_works),
    )
    found = [_looked(name, look) for name, look in looks]
    return [*found[:-2], *data_sets(), *found[-2:]]


def able(findings: Sequence[Finding]) -> bool:
    """Can this machine run LeakLens at all?"""
    return all(one.ok for one in findings if one.name in ESSENTIAL)


def _looked(name: str, look: Callable[[], Finding]) -> Finding:
    try:
        found = look()
        return replace(found, text=printable(found.text), remedy=printable(found.remedy))
    except LeakLensError as trouble:
        return Finding(name, False, trouble.message, trouble.remedy)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return Finding(name, False, printable(f"{where}{(error.strerror or str(error)).lower()}"), PERMIT)
    except Exception as error:
        words = printable(" ".join(str(error).split())) or "no words"
        remedy = REINSTALL if isinstance(error, ImportError) else "Nothing foresaw this: report it with this line"
        return Finding(name, False, f"{type(error).__name__}: {words}", remedy)


# --- the program -------------------------------------------------------------------------------------------


def python() -> Finding:
    text = f"{platform.python_version()} on {platform.platform(terse=True)}, {sys.executable}"
    need = ".".join(map(str, OLDEST))
    fine = sys.version_info[:2] >= OLDEST
    return Finding("python", fine, text, "" if fine else f"Install Python {need} or newer")


def packages() -> Finding:
    """The versions that are here, beside those that are pinned."""
    wanted = Requirements(ROOT / "requirements.txt")
    lacking = wanted.lacking()
    if not lacking:
        here = ", ".join(f"{name} {metadata.version(name)}" for name in wanted.pins)
        return Finding("packages", True, f"as pinned: {here}")
    names = [pin.partition("==")[0] for pin in lacking]
    unlike = ", ".join(f"{name} {_version(name)} instead of {wanted.pins[name]}" for name in names)
    return Finding("packages", False, unlike, "Start `python3 -m app`: it prepares .venv with the pinned versions")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"


def torch_works() -> Finding:
    import torch

    turned = torch.eye(2) @ torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    fine = turned.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    return Finding("torch", fine, f"{torch.__version__} computes", "" if fine else "Install torch again")


# --- the home ----------------------------------------------------------------------------------------------


def _nearest(path: Path) -> Path:
    """The path itself, or the first folder above it that is there."""
    return next(one for one in (path, *path.parents) if one.exists() or one.is_symlink())


def home_folder() -> Finding:
    home, limit = Home.named(), quota()
    with home.explained():
        there = _nearest(home.path)
        for folder in dict.fromkeys((there, _nearest(home.payloads), _nearest(home.pictures))):
            _try_writing(folder)
    if there != home.path:
        return Finding("home", True, f"{home.path}: not there yet, the first run makes it; {gigabytes(limit)} allowed")
    used = home.used()
    text = f"{home.path}: can be written; holds {gigabytes(used)} of {gigabytes(limit)} allowed"
    return Finding("home", used <= limit, text, "" if used <= limit else MAKE_ROOM)


def _try_writing(folder: Path) -> None:
    """Permissions alone do not tell."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        error.filename = str(folder)  # nobody knows the name of the trial
        raise


def disk() -> Finding:
    there = _nearest(Home.named().path)
    free = shutil.disk_usage(there).free
    remedy = "" if free >= SCARCE else "Free some space, or choose another disk with LEAKLENS_HOME"
    return Finding("disk", free >= SCARCE, f"{gigabytes(free)} free at {there}", remedy)


def store() -> Finding:
    """Version, how the runs stand, and whether pages and events are sound."""
    home = Home.named()
    with home.explained():
        if not home.database.exists():
            return Finding("store", True, "none yet: the first run begins it")
    with _reading(home) as connection:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise damaged(home, "holds tables of another program")
        if version < len(MIGRATIONS):
            return Finding("store", True, f"version {version}: the next run leads it up to {len(MIGRATIONS)}")
        count = Counter(one.status for one in stored_runs(connection))
        events = connection.execute("SELECT COUNT(*) FROM events").fetchone()[0]
        extent = _sound(home, connection)
    runs = ", ".join(f"{many} {status}" for status, many in sorted(count.items()))
    told = f"{sum(count.values())} runs ({runs})" if runs else "no runs"
    return Finding("store", True, f"version {version}, {extent}; {told}, {events:,} events")


@contextmanager
def _reading(home: Home) -> Iterator[sqlite3.Connection]:
    """The store as it lies there: opened for reading alone, so that nothing is made, mended or led up."""
    try:
        with closing(sqlite3.connect(f"{home.database.as_uri()}?mode=ro", uri=True, timeout=LOOK_S)) as connection:
            connection.row_factory = sqlite3.Row
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version > len(MIGRATIONS):
                raise NewerVersion(
                    f"{home.database}: has version {version}, this LeakLens knows up to {len(MIGRATIONS)}",
                    "Update LeakLens, or choose another folder with LEAKLENS_HOME",
                )
            yield connection
    except sqlite3.DatabaseError as error:
        explain(home, error)


def _sound(home: Home, connection: sqlite3.Connection) -> str:
    """Look at the pages and events, as many as there is time for."""
    _hurry(connection)
    try:
        pages = [str(row[0]) for row in connection.execute("PRAGMA quick_check")]
        broken = connection.execute("SELECT COUNT(*) FROM events WHERE NOT json_valid(body)").fetchone()[0]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname != "SQLITE_INTERRUPT":
            raise
        return "sound as far as it was read"
    if pages != ["ok"]:
        raise damaged(home, f"fails its own check: {' '.join(pages[0].split())}")
    if broken:
        raise damaged(home, f"{broken} events cannot be read")
    return "sound"


def _hurry(connection: sqlite3.Connection) -> None:
    """From now on, what takes too long is interrupted."""
    last = time.monotonic() + LOOK_S
    connection.set_progress_handler(lambda: time.monotonic() > last, 1000)


def payloads() -> Finding:
    """Files that cannot be opened, files that no event names, and names without a file."""
    home, last = Home.named(), time.monotonic() + LOOK_S
    files = sorted(home.payloads.glob("[!.]*/*.npz")) if home.payloads.is_dir() else []
    seen, bad = 0, list[Path]()
    for file in files:
        if time.monotonic() > last:
            break
        seen += 1
        bad += [] if _opens(file) else [file]
    named = _named(home)
    present = {(file.parent.name, file.stem) for file in files if file.parent.name != PRIORS}
    stray = len(present - named.keys()) if named is not None else 0
    missing = [key for key, kind in (named or {}).items() if kind != "checkpoint" and key not in present]
    extent = f"{len(files)} files" if seen == len(files) else f"{len(files)} files, of which {seen} were opened"
    text = f"{extent}; {len(bad)} unreadable, {len(missing)} missing, {stray} stray"
    if bad or missing:
        first = bad[0] if bad else home.payload(*missing[0])
        remedy = f"Delete run {first.parent.name} and ask it again"
        return Finding("payloads", False, f"{text}; the first: {first}", remedy)
    return Finding("payloads", True, text, "No run reads a stray file: it may be removed" if stray else "")


def _named(home: Home) -> dict[tuple[str, str], str] | None:
    """Run and name of every payload that an event tells of, with its kind; None where that cannot be said.

    A run that is running writes a file before it names it, and takes older checkpoints away.
    """
    if not home.database.exists():
        return {}
    try:
        with _reading(home) as connection:
            _hurry(connection)
            rows = connection.execute(NAMED).fetchall()
            if any(one.status == "running" for one in stored_runs(connection)):
                return None
    except LeakLensError:
        return None
    return {(row["run"], row["name"]): str(row["kind"]) for row in rows}


def _opens(file: Path) -> bool:
    """Is its table of contents whole? (The arrays are not read: there may be gigabytes of them.)"""
    try:
        with zipfile.ZipFile(file):
            return True
    except (OSError, zipfile.BadZipFile):
        return False


# --- the processor -----------------------------------------------------------------------------------------


def threads() -> Finding:
    many = cores()
    return Finding("threads", True, f"cores: {many}; a lone run gets {many} threads, each of several runs gets 1")


def gpu() -> Finding:
    import torch

    if not torch.cuda.is_available():
        return Finding("gpu", True, "none: everything runs on the processor")
    return Finding("gpu", True, f"{torch.cuda.get_device_name(0)}: choose it with --device cuda")


def denormals() -> Finding:
    """Tiny numbers are fifty times slower where they are not taken as zero."""

    def flushed() -> bool:
        import torch

        return torch.set_flush_denormal(True) and float(torch.tensor([1e-39]).mul(0.5)) == 0.0

    with ThreadPoolExecutor(1) as other:  # the setting holds per thread, and this one keeps its own
        fine = other.submit(flushed).result()
    if fine:
        return Finding("denormals", True, "flushed to zero")
    return Finding("denormals", False, "not flushed: training may be slow", "Use a processor with SSE3 or 64-bit ARM")


# --- data and measures -------------------------------------------------------------------------------------


def data_sets() -> list[Finding]:
    """Each set: the part that ships with LeakLens, and where the full one is or was looked for."""
    try:
        from engine.datasets import DATASETS

        names = DATASETS.names()
    except Exception:  # a broken installation; `torch` has said why
        return [Finding("data sets", False, "cannot be looked at", REINSTALL)]
    return [_looked(name, partial(_data_set, name)) for name in names]


def _data_set(name: str) -> Finding:
    from engine.datasets import DATASETS

    part, told, remedy = DATASETS.make(name), list[str](), ""
    if part.ships:
        facts = part.facts()
        counts = f"{len(facts.train_y):,} and {len(facts.test_y):,} {part.noun}"
        told.append(f"{part.part}: {counts} in {part.places()[0][0]}")
    if whole := part.whole():
        places = whole.places()
        here = next((place for place, found in places if found), None)
        told.append(f"full set: in {here}" if here else f"full set: not here, looked in {', '.join(dict(places))}")
        remedy = "" if here else f"For the full set: {whole.obtain}"
    return Finding(name, True, "; ".join(told), remedy)


def torchvision_opens() -> Finding:
    from engine.vision import torchvision

    return Finding("torchvision", True, f"{torchvision().__version__} opens")


def lpips_works() -> Finding:
    """The real measure on a picture, on the same picture, and on its noisy twin; and the other networks."""
    import torch

    from engine.metrics.pictures.networks import lpips_alex, squeezenet, vgg16_missing
    from engine.seeds import Seeds

    measure, rng = lpips_alex(), Seeds(0).rng("doctor")
    picture = torch.rand(1, 3, SAMPLE, SAMPLE, generator=rng) * 2 - 1
    twin = (picture + 0.2 * torch.randn(picture.shape, generator=rng)).clamp(-1, 1)
    with torch.no_grad():
        same, other = float(measure(picture, picture)), float(measure(picture, twin))
    if same != 0 or not other > 0:
        raise Damaged(
            f"LPIPS: a picture must be 0 from itself and more from its noisy twin, got {same:g} and {other:g}",
            "Restore assets/alexnet_features_fp16.safetensors from the repository",
        )
    squeezenet()
    absent = vgg16_missing()
    networks = f"SqueezeNet opens; VGG16: {'not here' if absent else 'here or to be fetched'}"
    remedy = f"For lpips-vgg: {absent.remedy}" if absent else ""
    text = f"measures: 0 from a picture to itself, {other:.3g} to its noisy twin; {networks}"
    return Finding("lpips", True, text, remedy)
