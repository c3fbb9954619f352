"""The doctor checks everything that LeakLens needs on this machine and names the fixes. It changes nothing itself."""

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
from engine.examples import checksums
from engine.jobs.backends.device import placement
from engine.jobs.database import damaged, raise_explained
from engine.jobs.home import FREE_SPACE_REMEDY, PRIORS, Home, quota, readable_size
from engine.jobs.migrations import MIGRATIONS
from engine.jobs.process_id import cores
from engine.jobs.status import stored_runs

ESSENTIAL = ("python", "torch", "home", "store")  # without them nothing runs
LOOK_S = 1.0  # time limit for reading the store, and again for the payloads
SCARCE = 2e9  # bytes of free disk
PERMISSIONS = "Correct its permissions, or choose other folders with LEAKLENS_HOME and LEAKLENS_DATA"
REINSTALL = "Delete .venv and start `python3 -m app`: it installs everything again"
PAYLOAD_NAMES = """SELECT run, json_extract(body, '$.name') AS name, json_extract(body, '$.kind') AS kind FROM events
    WHERE json_extract(body, '$.event') IN ('kept', 'pictured') AND json_extract(body, '$.name') <> ''"""
SAMPLE = 64  # pixels per side of the picture that LPIPS measures


@dataclass(frozen=True)
class Finding:
    """The result of one check: whether it passed, what was found, and the fix."""

    name: str
    ok: bool
    text: str
    remedy: str = ""

    def json(self) -> dict[str, Any]:
        return asdict(self)


def examine() -> list[Finding]:
    """Run all checks in order. An error in a check becomes its finding."""
    findings = [
        _checked("python", python),
        _checked("packages", packages),
        _checked("torch", torch_works),
        _checked("home", home_folder),
        _checked("disk", disk),
        _checked("store", store),
        _checked("payloads", payloads),
        _checked("threads", threads),
        _checked("gpu", gpu),
        _checked("device", lambda: Finding("device", True, placement())),
        _checked("denormals", denormals),
    ]
    findings.append(_checked("assets", assets))
    findings += data_sets()
    findings.append(_checked("outside parts", outside_parts_load))
    return [*findings, _checked("torchvision", torchvision_loads), _checked("lpips", lpips_works)]


def outside_parts_load() -> Finding:
    """Whether the parts of other installed packages could be imported."""
    from engine import outside_parts

    broken = outside_parts.import_all()
    if not broken:
        return Finding("outside parts", True, f"{len(outside_parts.packages())} other packages have parts for LeakLens")
    reasons = "; ".join(f"{package.name}: {package.reason}" for package in broken)
    return Finding("outside parts", False, f"cannot be imported: {reasons}", "Repair or uninstall these packages")


def can_run(findings: Sequence[Finding]) -> bool:
    """Whether this machine can run LeakLens at all."""
    return all(finding.ok for finding in findings if finding.name in ESSENTIAL)


def _checked(name: str, check: Callable[[], Finding]) -> Finding:
    try:
        finding = check()
        return replace(finding, text=printable(finding.text), remedy=printable(finding.remedy))
    except LeakLensError as error:
        return Finding(name, False, error.message, error.remedy)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        reason = (error.strerror or str(error)).lower()
        return Finding(name, False, printable(f"{place}{reason}"), PERMISSIONS)
    except Exception as error:
        message = printable(" ".join(str(error).split())) or "no message"
        remedy = REINSTALL if isinstance(error, ImportError) else "This is unexpected: report it with this line"
        return Finding(name, False, f"{type(error).__name__}: {message}", remedy)


# --- the program -------------------------------------------------------------------------------------------


def python() -> Finding:
    text = f"{platform.python_version()} on {platform.platform(terse=True)}, {sys.executable}"
    oldest = ".".join(map(str, OLDEST))
    ok = sys.version_info[:2] >= OLDEST
    return Finding("python", ok, text, "" if ok else f"Install Python {oldest} or newer")


def packages() -> Finding:
    """The installed versions compared with the pinned ones."""
    requirements = Requirements(ROOT / "requirements.txt")
    lacking = requirements.lacking()
    if not lacking:
        installed = ", ".join(f"{name} {metadata.version(name)}" for name in requirements.pins)
        return Finding("packages", True, f"as pinned: {installed}")
    names = [pin.partition("==")[0] for pin in lacking]
    differences = ", ".join(f"{name} {_version(name)} instead of {requirements.pins[name]}" for name in names)
    remedy = "Start `python3 -m app`: it prepares .venv with the pinned versions"
    return Finding("packages", False, differences, remedy)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"


def torch_works() -> Finding:
    import torch

    product = torch.eye(2) @ torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    ok = product.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    return Finding("torch", ok, f"{torch.__version__} computes", "" if ok else "Install torch again")


# --- the home ----------------------------------------------------------------------------------------------


def _nearest(path: Path) -> Path:
    """The path itself, or the nearest folder above it that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists() or folder.is_symlink())


def home_folder() -> Finding:
    home = Home.named()
    limit = quota()
    with home.explained():
        existing = _nearest(home.path)
        for folder in dict.fromkeys((existing, _nearest(home.payloads), _nearest(home.pictures))):
            _try_writing(folder)
    if existing != home.path:
        text = f"{home.path}: does not exist yet, the first run creates it; {readable_size(limit)} allowed"
        return Finding("home", True, text)
    used = home.used()
    text = f"{home.path}: writable; holds {readable_size(used)} of {readable_size(limit)} allowed"
    return Finding("home", used <= limit, text, "" if used <= limit else FREE_SPACE_REMEDY)


def _try_writing(folder: Path) -> None:
    """Write a temporary file: permissions alone do not show whether that works."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        error.filename = str(folder)  # the name of the temporary file means nothing to a user
        raise


def disk() -> Finding:
    folder = _nearest(Home.named().path)
    free = shutil.disk_usage(folder).free
    remedy = "" if free >= SCARCE else "Free some space, or choose another disk with LEAKLENS_HOME"
    return Finding("disk", free >= SCARCE, f"{readable_size(free)} free at {folder}", remedy)


def store() -> Finding:
    """The store's version, the number of runs by status, and whether its pages and events can be read."""
    home = Home.named()
    with home.explained():
        if not home.database.exists():
            return Finding("store", True, "none yet: the first run creates it")
    with _read_only(home) as connection:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version < 0 or (version == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone()):
            raise damaged(home, "holds tables of another program")
        if version < len(MIGRATIONS):
            return Finding("store", True, f"version {version}: the next run upgrades it to {len(MIGRATIONS)}")
        counts = Counter(run.status for run in stored_runs(connection))
        events = connection.execute("SELECT COUNT(*) FROM events").fetchone()[0]
        integrity = _check_integrity(home, connection)
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    runs = f"{sum(counts.values())} runs ({statuses})" if statuses else "no runs"
    return Finding("store", True, f"version {version}, {integrity}; {runs}, {events:,} events")


@contextmanager
def _read_only(home: Home) -> Iterator[sqlite3.Connection]:
    """The store, opened read-only: the doctor must not create, fix or upgrade it."""
    try:
        with closing(sqlite3.connect(f"{home.database.as_uri()}?mode=ro", uri=True, timeout=LOOK_S)) as connection:
            connection.row_factory = sqlite3.Row
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version > len(MIGRATIONS):
                raise NewerVersion(
                    f"{home.database}: has version {version}, this LeakLens supports up to {len(MIGRATIONS)}",
                    "Update LeakLens, or choose another folder with LEAKLENS_HOME",
                )
            yield connection
    except sqlite3.DatabaseError as error:
        raise_explained(home, error)


def _check_integrity(home: Home, connection: sqlite3.Connection) -> str:
    """Check pages and events until the time limit, and describe the result."""
    _set_time_limit(connection)
    try:
        pages = [str(row[0]) for row in connection.execute("PRAGMA quick_check")]
        broken = connection.execute("SELECT COUNT(*) FROM events WHERE NOT json_valid(body)").fetchone()[0]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname != "SQLITE_INTERRUPT":
            raise
        return "intact as far as it was read"
    if pages != ["ok"]:
        raise damaged(home, f"fails SQLite's check: {' '.join(pages[0].split())}")
    if broken:
        raise damaged(home, f"{broken} events cannot be read")
    return "intact"


def _set_time_limit(connection: sqlite3.Connection) -> None:
    """Interrupt every query that is still running after the time limit."""
    deadline = time.monotonic() + LOOK_S
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 1000)


def payloads() -> Finding:
    """Files that cannot be opened, files that no event names (stray), and named files that are missing."""
    home = Home.named()
    deadline = time.monotonic() + LOOK_S
    files = sorted(home.payloads.glob("[!.]*/*.npz")) if home.payloads.is_dir() else []
    opened = 0
    unreadable = list[Path]()
    for file in files:
        if time.monotonic() > deadline:
            break
        opened += 1
        if not _opens(file):
            unreadable.append(file)
    named = _named_payloads(home)
    present = {(file.parent.name, file.stem) for file in files if file.parent.name != PRIORS}
    stray = len(present - named.keys()) if named is not None else 0
    missing = [key for key, kind in (named or {}).items() if kind != "checkpoint" and key not in present]
    extent = f"{len(files)} files" if opened == len(files) else f"{len(files)} files, of which {opened} were opened"
    text = f"{extent}; {len(unreadable)} unreadable, {len(missing)} missing, {stray} stray"
    if unreadable or missing:
        first = unreadable[0] if unreadable else home.payload(*missing[0])
        remedy = f"Delete run {first.parent.name} and submit it again"
        return Finding("payloads", False, f"{text}; the first: {first}", remedy)
    return Finding("payloads", True, text, "No run reads a stray file: it may be removed" if stray else "")


def _named_payloads(home: Home) -> dict[tuple[str, str], str] | None:
    """The kind of every payload that an event names, by run and name. None if they cannot be compared with the files.

    While a run is running, files and events differ: it writes a file before the event, and removes old checkpoints.
    """
    if not home.database.exists():
        return {}
    try:
        with _read_only(home) as connection:
            _set_time_limit(connection)
            rows = connection.execute(PAYLOAD_NAMES).fetchall()
            if any(run.status == "running" for run in stored_runs(connection)):
                return None
    except LeakLensError:
        return None
    return {(row["run"], row["name"]): str(row["kind"]) for row in rows}


def _opens(file: Path) -> bool:
    """Whether its table of contents is whole. The arrays are not read: they may take gigabytes."""
    try:
        with zipfile.ZipFile(file):
            return True
    except (OSError, zipfile.BadZipFile):
        return False


# --- the processor -----------------------------------------------------------------------------------------


def threads() -> Finding:
    count = cores()
    return Finding("threads", True, f"cores: {count}; a lone run gets {count} threads, each of several runs gets 1")


def gpu() -> Finding:
    from engine.compute.devices import summary

    return Finding("gpu", True, *summary())


def denormals() -> Finding:
    """Whether tiny numbers are flushed to zero. Without that, arithmetic with them is fifty times slower."""

    def flushed() -> bool:
        import torch

        return torch.set_flush_denormal(True) and float(torch.tensor([1e-39]).mul(0.5)) == 0.0

    with ThreadPoolExecutor(1) as pool:  # the setting holds per thread, so the caller's stays as it is
        ok = pool.submit(flushed).result()
    if ok:
        return Finding("denormals", True, "flushed to zero")
    return Finding("denormals", False, "not flushed: training may be slow", "Use a processor with SSE3 or 64-bit ARM")


# --- data and measures -------------------------------------------------------------------------------------


def data_sets() -> list[Finding]:
    """For each data set: the part that ships with LeakLens, and the place of the full set."""
    try:
        from engine.datasets import DATASETS

        names = DATASETS.names()
    except Exception:  # a broken installation, which the check of torch reports
        return [Finding("data sets", False, "cannot be checked", REINSTALL)]
    return [_checked(name, partial(_data_set, name)) for name in names]


def _data_set(name: str) -> Finding:
    from engine.datasets import DATASETS

    part = DATASETS.make(name)
    texts = list[str]()
    remedy = ""
    if part.ships:
        facts = part.facts()
        counts = f"{len(facts.train_y):,} and {len(facts.test_y):,} {part.noun}"
        texts.append(f"{part.part}: {counts} in {part.places()[0][0]}")
    full_set = part.whole()
    if full_set:
        places = full_set.places()
        present = [place for place, exists in places if exists]
        if present:
            texts.append(f"full set: in {present[0]}")
        else:
            texts.append(f"full set: not here, looked in {', '.join(dict(places))}")
            remedy = f"For the full set: {full_set.obtain}"
    return Finding(name, True, "; ".join(texts), remedy)


def assets() -> Finding:
    """Files of LeakLens that are missing or damaged: data, weights, examples, presets and tables of papers."""
    return Finding("assets", *checksums.state(checksums.ASSETS))


def torchvision_loads() -> Finding:
    from engine.vision import torchvision

    return Finding("torchvision", True, f"{torchvision().__version__} loads")


def lpips_works() -> Finding:
    """Measure LPIPS between a picture and itself, and between it and a noisy copy. Load the other networks."""
    import torch

    from engine.metrics.pictures.networks import lpips_alex, squeezenet, vgg16_missing
    from engine.seeds import Seeds

    measure = lpips_alex()
    rng = Seeds(0).rng("doctor")
    picture = torch.rand(1, 3, SAMPLE, SAMPLE, generator=rng) * 2 - 1
    noisy = (picture + 0.2 * torch.randn(picture.shape, generator=rng)).clamp(-1, 1)
    with torch.no_grad():
        to_itself = float(measure(picture, picture))
        to_noisy = float(measure(picture, noisy))
    if to_itself != 0 or not to_noisy > 0:
        rule = "must be 0 from a picture to itself and above 0 to a noisy copy"
        raise Damaged(
            f"LPIPS: {rule}, got {to_itself:g} and {to_noisy:g}",
            "Restore assets/alexnet_features_fp16.safetensors from the repository",
        )
    squeezenet()
    missing = vgg16_missing()
    networks = f"SqueezeNet loads; VGG16: {'not here' if missing else 'here or can be downloaded'}"
    remedy = f"For lpips-vgg: {missing.remedy}" if missing else ""
    text = f"measures: 0 from a picture to itself, {to_noisy:.3g} to a noisy copy; {networks}"
    return Finding("lpips", True, text, remedy)
