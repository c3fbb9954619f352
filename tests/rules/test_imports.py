"""Which package may import which. Lazy imports and those under TYPE_CHECKING count too."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

import pytest

from tests.rules.sources import SOURCES, Import, Source, unexpected

SHELVES = ("models", "datasets", "partitions", "methods", "attacks", "metrics")
# Inside engine the arrows are transitive: leakage may import what training may import.
ENGINE: Mapping[str, tuple[str, ...]] = {
    "root": (),
    "privacy": ("root",),
    "compute": ("root",),
    **dict.fromkeys(SHELVES, ("compute",)),
    "methods": ("compute", "privacy"),
    "specs": SHELVES,
    "training": ("specs", "privacy", "compute"),
    "leakage": ("training",),
    "results": ("specs",),
    "jobs": ("leakage", "training", "specs"),
    "examples": ("results", "leakage", "training"),
    **dict.fromkeys(
        ("cli", "bench", "doctor", "__main__", "__init__"), ("jobs", "examples", "results", "doctor", "bench", "cli")
    ),
}
OF_ENGINE = ("root", "specs", "results", "jobs", "examples", "training.forecast", "leakage.compatibility")
LOADS_TORCH = ("engine.specs.run", "engine.specs.attack", "engine.training.forecast", "engine.leakage.compatibility")
HIDDEN = ("records", "seeds", "vision")  # modules of the root that the dashboard does not need
# In app the arrows are not transitive: a package imports what is listed.
APP: Mapping[str, tuple[str, ...]] = {
    "theme": (),
    "texts": ("engine root", "engine results"),
    "session": ("texts", "engine"),
    "charts": ("theme", "texts", "engine root", "engine specs", "engine results"),
    "widgets": ("charts", "session", "texts", "engine"),
    "batch": ("charts", "widgets", "session", "texts", "engine"),
    "screens": ("batch", "charts", "widgets", "session", "texts", "theme", "engine"),
    "export": ("charts", "texts", "session.run_settings", "engine", "theme"),
    "main": ("theme", "texts", "widgets", "session", "screens", "server"),
    "server": ("session", "engine environment", "engine errors", "engine jobs"),
    "__main__": ("session", "server", "engine environment", "engine errors", "engine jobs"),
}
LIGHT = (  # none of them loads torch
    "engine", "engine.environment", "engine.errors", "engine.events", "engine.jobs.store", "engine.examples.files",
    "engine.examples.start", "engine.examples.sweep", "engine.results.estimates", "app.session.screens",
)  # fmt: skip


def allowed(package: str) -> set[str]:
    """The packages of engine that this one may import, directly or through others."""
    packages: set[str] = {package}
    waiting = [package]
    while waiting:
        for target in ENGINE[waiting.pop()]:
            if target not in packages:
                packages.add(target)
                waiting.append(target)
    return packages | {"root"}


def package_of(module: str) -> str:
    """The package of an engine module: a folder, or `root`."""
    parts = module.split(".")
    if len(parts) == 1:
        return "__init__"
    return parts[1] if parts[1] in ENGINE else "root"


def import_breaches(source: Source) -> Iterator[str]:
    """Each import that the rules forbid, as `importer -> imported`."""
    for imported in source.imports:
        top = imported.target.split(".")[0]
        if top not in ("engine", "app") or imported.target in ("engine", "app"):
            continue
        right = _engine_import(source, imported) if source.path.startswith("engine/") else _app_import(source, imported)
        if not right:
            yield f"{source.name} -> {imported.target}"


def _engine_import(source: Source, imported: Import) -> bool:
    if imported.target.startswith("app"):
        return not imported.eager and source.path in ("engine/__main__.py", "engine/cli/export.py")
    mine, theirs = package_of(source.name), package_of(imported.target)
    if mine == "__init__":
        return not imported.eager
    if mine in SHELVES and theirs == mine:
        return _same_shelf(source, imported.target)
    if source.name == "engine.events" and imported.target == "engine.records":
        return False  # a light module: records need torch
    return theirs in allowed(mine)


def _same_shelf(source: Source, target: str) -> bool:
    """A part may import a base, or what its own folder shares; never another part."""
    last = target.rpartition(".")[2]
    if last == "base" or target.count(".") == 1:
        return True
    file = SOURCES.get(f"{target.replace('.', '/')}.py")
    shared = file is not None and not any(map(_registers, file.classes))
    return shared and target.rpartition(".")[0] == source.name.rpartition(".")[0]


def _registers(part: ast.ClassDef) -> bool:
    """Whether a class puts itself on a shelf."""
    return any(".add(" in ast.unparse(decorator) for decorator in part.decorator_list)


def _app_import(source: Source, imported: Import) -> bool:
    parts = source.name.split(".")
    mine = parts[1] if len(parts) > 1 else "__init__"
    rules = APP.get(mine, ())
    if imported.target.startswith("engine."):
        return _of_engine(source, imported, rules)
    other = imported.target.split(".")
    if mine == "screens" and other[1] == "screens":
        return other[:3] == parts[:3] or len(other) == 2
    if other[1] == mine:
        return True
    if other[1] == "export" and mine in ("server", "__main__"):
        return not imported.eager
    dotted = ".".join(other[1:])
    return any(dotted == rule or dotted.startswith(f"{rule}.") for rule in rules)


def _of_engine(source: Source, imported: Import, rules: tuple[str, ...]) -> bool:
    target = imported.target
    if imported.eager and target in LOADS_TORCH and not source.path.startswith("app/export/"):
        return False  # a page is shown before torch is loaded
    package = package_of(target)
    inner = target.removeprefix("engine.")
    if package == "doctor":
        return source.name.startswith("app.screens.runs")
    if package == "root" and inner in HIDDEN:
        return False
    if "engine" in rules:
        return any(package == name or inner == name or inner.startswith(f"{name}.") for name in OF_ENGINE)
    return f"engine {package}" in rules or f"engine {inner.split('.')[0]}" in rules


def test_imports_follow_the_table() -> None:
    breaches = [breach for source in SOURCES.values() for breach in import_breaches(source)]
    assert not (problem := unexpected(breaches, "imports")), f"\n{problem}"


def test_packages_have_no_cycle() -> None:
    graph = package_graph()
    order: list[str] = []
    while graph:
        free = [name for name, targets in graph.items() if not targets - set(order)]
        assert free, f"a cycle among {sorted(graph)}"
        order += free
        for name in free:
            graph.pop(name)


def package_graph() -> dict[str, set[str]]:
    """What each package of engine imports, apart from itself and the root's lazy entry points."""
    graph: dict[str, set[str]] = {}
    for source in SOURCES.values():
        mine = package_of(source.name)
        if not source.path.startswith("engine/") or mine in ("__init__", "__main__"):
            continue
        targets = {package_of(imported.target) for imported in source.imports if imported.target.startswith("engine.")}
        graph.setdefault(mine, set()).update(targets - {mine})
    return graph


# --- what importing a module loads -------------------------------------------------------------------------


def loaded_by(name: str, known: Mapping[str, Source]) -> dict[str, str]:
    """Everything that importing a module imports, each with the module that imports it."""
    importers, waiting = {name: ""}, [name]
    while waiting:
        here = waiting.pop()
        parents = [here.rsplit(".", depth)[0] for depth in range(1, here.count(".") + 1)]
        eager = [imported.target for imported in known[here].imports if imported.eager] if here in known else []
        for target in [*parents, *eager]:
            if target not in importers:
                importers[target] = here
                waiting.append(target)
    return importers


@pytest.mark.parametrize("name", LIGHT)
def test_a_light_module_never_loads_torch(name: str) -> None:
    importers = loaded_by(name, {source.name: source for source in SOURCES.values()})
    chain = [next((module for module in importers if module.split(".")[0] == "torch"), "")]
    while chain[0] and chain[0] != name:
        chain.insert(0, importers[chain[0]])
    assert not chain[0], " -> ".join(chain)


def test_a_chain_of_imports_is_followed() -> None:
    chain = {"engine.a": "import engine.b", "engine.b": "def f() -> None:\n    import numpy\nimport torch.nn"}
    known = {name: Source(name.replace(".", "/") + ".py", text) for name, text in chain.items()}
    importers = loaded_by("engine.a", known)
    assert importers["torch.nn"] == "engine.b"
    assert "numpy" not in importers


# --- every rule can fail -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("engine/compute/a.py", "from engine.specs.run import RunSpec"),
        ("engine/compute/a.py", "def f():\n    import engine.privacy.ledger"),
        ("engine/events.py", "from engine.jobs import store"),
        ("engine/events.py", "def f():\n    from engine.records import World"),
        ("engine/compute/a.py", "from engine import run"),
        ("app/widgets/fields.py", "from engine import run"),
        ("engine/methods/a/b.py", "from engine.methods.averaging.fedavg import FedAvg"),
        ("engine/methods/a/b.py", "from engine.models.base import Model"),
        ("engine/attacks/pictures/a.py", "from engine.metrics.pictures.psnr import Psnr"),
        ("engine/attacks/pictures/a.py", "from engine.attacks.pictures.map import Map"),
        ("engine/privacy/a.py", "from engine.methods.base import Method"),
        ("engine/training/loop.py", "from engine.jobs.store import Store"),
        ("engine/training/loop.py", "from engine.leakage.probe import probe"),
        ("engine/results/report.py", "from engine.jobs.store import Store"),
        ("engine/training/loop.py", "def f():\n    from app.main import page"),
        ("engine/__main__.py", "from app.main import page"),
        ("app/widgets/fields.py", "from engine.methods.base import METHODS"),
        ("app/widgets/fields.py", "import engine.training.loop"),
        ("app/widgets/fields.py", "import engine.records"),
        ("app/screens/leak/form.py", "from app.screens.lab.form import ask"),
        ("app/screens/leak/form.py", "from app.export import page"),
        ("app/charts/psnr.py", "from app.session import session"),
        ("app/texts/runs.py", "from engine.jobs.store import Store"),
        ("app/texts/runs.py", "from app import theme"),
        ("app/batch/submit.py", "from engine.specs.run import RunSpec"),
        ("app/session/url.py", "from app.widgets import card"),
    ],
)
def test_a_breach_is_found(path: str, text: str) -> None:
    assert len(set(import_breaches(Source(path, text)))) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("engine/methods/a/b.py", "from engine.methods.base import Method"),
        ("engine/methods/a/b.py", "from engine.methods.user_level.base import UserLevel"),
        ("engine/methods/a/b.py", "from engine.compute.weights import clip"),
        ("engine/attacks/pictures/a.py", "from engine.attacks.pictures.problem import *"),
        ("engine/jobs/backends/worker.py", "from engine.training.loop import run"),
        ("engine/cli/run.py", "from engine.jobs.store import Store"),
        ("engine/__main__.py", "def f():\n    from app.export import page"),
        ("app/screens/lab/results.py", "from engine.jobs.store import Store"),
        ("app/screens/lab/results.py", "from app.screens.lab import form"),
        ("app/texts/runs.py", "from engine.errors import shown"),
    ],
)
def test_what_is_allowed_passes(path: str, text: str) -> None:
    assert not list(import_breaches(Source(path, text)))
