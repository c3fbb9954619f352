"""The rules of the house: which room may import which, how large things may grow, and who may touch what.

Each rule reads one file and yields its complaints; `BREACHES` below proves that every rule can fail.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

LAZY = {"torchvision", "lpips"}  # engine: inside a function only
# none of them loads torch
LIGHT = (
    "engine", "engine.environment", "engine.errors", "engine.events", "engine.jobs.store", "engine.examples.files",
    "engine.examples.sweep",
)  # fmt: skip
BANNED = {"utils", "helpers", "common", "manager"}
SPEAKERS = re.compile(r"(.*/)?__main__\.py|engine/environment\.py|engine/cli/.*")
WRITERS = re.compile(
    r"engine/(jobs|examples|bench)/.*|engine/cli/(attack|export)\.py|engine/(doctor|environment)\.py|(.*/)?__main__\.py"
)
WRITING = {"write_text", "write_bytes", "touch", "tofile", "savetxt", "savez", "savez_compressed", "save_file"}
OPENING = {"open", "ZipFile", "GzipFile", "BZ2File", "LZMAFile"}
SEEDING = {"manual_seed", "manual_seed_all"}
GLOBAL_CHANCE = {"torch", "np", "numpy", "random"}
MODULE_LIMIT, FUNCTION_LIMIT = 400, 60

Function = ast.FunctionDef | ast.AsyncFunctionDef
Rule = Callable[["Source"], Iterator[str]]


@dataclass(frozen=True)
class Source:
    """One module, as text and as a tree."""

    path: str  # from the root, with slashes
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))

    @property
    def name(self) -> str:
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def room(self) -> str:
        parts = self.path.removesuffix(".py").split("/")
        return parts[1] if parts[0] == "engine" else parts[0]

    @cached_property
    def imports(self) -> tuple[tuple[int, str, bool], ...]:
        """(line, module, whether it happens when this module is imported)"""
        eager = {id(node) for node in _eager(self.tree)}
        found = []
        for node in self.nodes:
            for target in self._targets(node):
                found.append((node.lineno, target, id(node) in eager))  # type: ignore[attr-defined]
        return tuple(found)

    def _targets(self, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            package = self.name.split(".") if self.path.endswith("__init__.py") else self.name.split(".")[:-1]
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            bare = module in ("engine", "app") or node.module is None
            yield from (f"{module}.{alias.name}" for alias in node.names) if bare else (module,)


def _eager(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs at import: not inside a function, not under TYPE_CHECKING."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from _eager(node)


def _sources() -> dict[str, Source]:
    files = [file for top in ("engine", "app") for file in sorted((ROOT / top).rglob("*.py"))]
    found = (Source(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")) for file in files)
    return {source.path: source for source in found}


SOURCES = _sources()


# --- the rules ---------------------------------------------------------------------------------------------


def heavy_things_stay_out(source: Source) -> Iterator[str]:
    for line, target, eager in source.imports:
        top = target.split(".")[0]
        if source.path.startswith("engine/") and top in ("streamlit", "plotly"):
            yield f"{line}: engine may not import {top}"
        if source.path.startswith("app/") and top == "torch":
            yield f"{line}: app may not import torch"
        if source.path.startswith("engine/") and top in LAZY and eager:
            yield f"{line}: {top} is imported inside the function that needs it"
        if source.path == "engine/environment.py" and top not in sys.stdlib_module_names:
            yield f"{line}: environment.py lives on the standard library alone, not {target}"


def sizes_stay_small(source: Source) -> Iterator[str]:
    lines = source.text.count("\n")
    if lines > MODULE_LIMIT:
        yield f"1: {lines} lines, and a module has at most {MODULE_LIMIT}"
    for node in source.nodes:
        if isinstance(node, Function) and (size := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LIMIT:
            yield f"{node.lineno}: {node.name} has {size} lines, and a function has at most {FUNCTION_LIMIT}"


def names_say_something(source: Source) -> Iterator[str]:
    for part in source.path.removesuffix(".py").split("/"):
        if words := BANNED & set(part.split("_")):
            yield f"1: a module called {words.pop()} has not found its room"


def nobody_prints(source: Source) -> Iterator[str]:
    for node in source.nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"):
            continue
        if not SPEAKERS.fullmatch(source.path):
            yield f"{node.lineno}: print is for __main__.py"
        elif source.room == "environment" and not any(key.arg == "file" for key in node.keywords):
            yield f"{node.lineno}: environment.py prints to stderr: stdout belongs to the command it starts"


def few_write_files(source: Source) -> Iterator[str]:
    if WRITERS.fullmatch(source.path):
        return
    for node in source.nodes:
        if isinstance(node, ast.Call) and _writes(node):
            yield f"{node.lineno}: only engine/jobs, doctor, environment, bench and __main__ write files"


def _writes(call: ast.Call) -> bool:
    name = _last(call.func)
    if name == "save":
        return _first(call.func) in ("torch", "np", "numpy")
    if name not in OPENING:
        return name in WRITING
    where = slice(0, 2) if isinstance(call.func, ast.Attribute) else slice(1, 2)  # path.open(mode), open(path, mode)
    modes = [*call.args[where], *(key.value for key in call.keywords if key.arg == "mode")]
    return any(
        isinstance(mode, ast.Constant) and re.fullmatch(r"[rbtU]*[wax+][rbt+]*", str(mode.value)) for mode in modes
    )


def only_seeds_seed(source: Source) -> Iterator[str]:
    if source.path == "engine/seeds.py":
        return
    for node in source.nodes:
        if not isinstance(node, ast.Call):
            continue
        name = _last(node.func)
        if name in SEEDING or (name == "seed" and _first(node.func) in GLOBAL_CHANCE):
            yield f"{node.lineno}: only engine/seeds.py seeds a generator"


def everything_is_typed(source: Source) -> Iterator[str]:
    methods = {id(node) for one in source.nodes if isinstance(one, ast.ClassDef) for node in one.body}
    for node in source.nodes:
        if not isinstance(node, Function):
            continue
        static = any(_last(mark) == "staticmethod" for mark in node.decorator_list)
        places = [*node.args.posonlyargs, *node.args.args][1 if id(node) in methods and not static else 0 :]
        places += [*node.args.kwonlyargs, *filter(None, (node.args.vararg, node.args.kwarg))]
        bare = [place.arg for place in places if place.annotation is None] + ["its answer"] * (node.returns is None)
        if bare:
            yield f"{node.lineno}: {node.name} does not say the type of {', '.join(bare)}"


def modules_introduce_themselves(source: Source) -> Iterator[str]:
    if not ast.get_docstring(source.tree):
        yield "1: a module begins with one sentence: who lives here"
    speaks = any(isinstance(node, Function | ast.AnnAssign) for node in source.nodes)
    if speaks and not any(target == "__future__" for _, target, _ in source.imports):
        yield "1: from __future__ import annotations is missing"


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _first(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


RULES = (
    heavy_things_stay_out,
    sizes_stay_small,
    names_say_something,
    nobody_prints,
    few_write_files,
    only_seeds_seed,
    everything_is_typed,
    modules_introduce_themselves,
)


@pytest.mark.parametrize("path", SOURCES)
def test_a_module_keeps_the_rules(path: str) -> None:
    complaints = [f"{path}:{said}" for rule in RULES for said in rule(SOURCES[path])]
    assert not complaints, "\n" + "\n".join(complaints)


# --- what one module alone cannot show ---------------------------------------------------------------------


def _loaded(name: str, known: Mapping[str, Source]) -> dict[str, str]:
    """What importing a module imports, each with the module that asked for it."""
    asked, waiting = {name: ""}, [name]
    while waiting:
        here = waiting.pop()
        parents = [here.rsplit(".", depth)[0] for depth in range(1, here.count(".") + 1)]
        wanted = [target for _, target, eager in known[here].imports if eager] if here in known else []
        for target in [*parents, *wanted]:
            if target not in asked:
                asked[target] = here
                waiting.append(target)
    return asked


@pytest.mark.parametrize("name", LIGHT)
def test_a_light_module_never_loads_torch(name: str) -> None:
    asked = _loaded(name, {source.name: source for source in SOURCES.values()})
    chain = [next((module for module in asked if module.split(".")[0] == "torch"), "")]
    while chain[0] and chain[0] != name:
        chain.insert(0, asked[chain[0]])
    assert not chain[0], " -> ".join(chain)


@pytest.mark.parametrize("file", sorted((ROOT / "tests").rglob("*.py")), ids=lambda file: file.stem)
def test_a_test_file_stays_readable(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").count("\n")
    assert lines <= MODULE_LIMIT, f"{file.relative_to(ROOT)}: {lines} lines, and a test file has at most {MODULE_LIMIT}"
    assert (file.parent / "__init__.py").exists(), f"{file.parent.relative_to(ROOT)} has no __init__.py"


# --- every rule can fail -----------------------------------------------------------------------------------

BREACHES = [
    (heavy_things_stay_out, "engine/training/loop.py", "def f():\n    import streamlit"),
    (heavy_things_stay_out, "engine/bench/a.py", "from plotly import graph_objects"),
    (heavy_things_stay_out, "app/panels/a.py", "def f():\n    import torch"),
    (heavy_things_stay_out, "engine/metrics/a.py", "import lpips"),
    (heavy_things_stay_out, "engine/environment.py", "def f():\n    import numpy"),
    (sizes_stay_small, "engine/a.py", "x = 1\n" * 401),
    (sizes_stay_small, "engine/a.py", "class A:\n    def f(self):\n" + "        pass\n" * 60),
    (names_say_something, "engine/privacy/utils.py", ""),
    (names_say_something, "engine/jobs/job_manager.py", ""),
    (nobody_prints, "engine/training/loop.py", "print(1)"),
    (nobody_prints, "engine/environment.py", "print('hello')"),
    (few_write_files, "engine/training/loop.py", "open('a', 'w')"),
    (few_write_files, "app/session/session.py", "path.open(mode='ab')"),
    (few_write_files, "engine/datasets/a.py", "gzip.open(path, 'xb')"),
    (few_write_files, "engine/specs/run.py", "path.write_text('a')"),
    (few_write_files, "engine/attacks/a.py", "np.savez(file, a=a)"),
    (few_write_files, "engine/attacks/a.py", "torch.save(a, file)"),
    (only_seeds_seed, "engine/compute/noise.py", "torch.manual_seed(0)"),
    (only_seeds_seed, "engine/compute/noise.py", "generator.manual_seed(0)"),
    (only_seeds_seed, "engine/compute/noise.py", "np.random.seed(0)"),
    (everything_is_typed, "engine/compute/noise.py", "def f(a) -> int: ..."),
    (everything_is_typed, "engine/compute/noise.py", "def f(*a, **b: int) -> int: ..."),
    (everything_is_typed, "engine/compute/noise.py", "class A:\n    def __init__(self): ..."),
    (modules_introduce_themselves, "engine/a/__init__.py", ""),
    (modules_introduce_themselves, "engine/a.py", "'Who lives here.'\ndef f() -> None: ..."),
]
FINE = [
    (heavy_things_stay_out, "engine/metrics/a.py", "def f():\n    import lpips"),
    (few_write_files, "engine/datasets/a.py", "open(path)\nopen(path, 'rb')\ngzip.open(path, 'rb')\npath.open()"),
    (few_write_files, "engine/jobs/store.py", "open(path, 'wb')"),
    (only_seeds_seed, "engine/seeds.py", "generator.manual_seed(0)"),
    (everything_is_typed, "engine/a.py", "class A:\n    def f(self, a: int, *b: str) -> None: ..."),
]


@pytest.mark.parametrize(("rule", "path", "text"), BREACHES)
def test_a_breach_is_told(rule: Rule, path: str, text: str) -> None:
    said = list(rule(Source(path, text)))
    assert len(said) == 1
    assert re.match(r"\d+: \w", said[0])


@pytest.mark.parametrize(("rule", "path", "text"), FINE)
def test_what_is_right_passes_in_silence(rule: Rule, path: str, text: str) -> None:
    assert not list(rule(Source(path, text)))


def test_a_chain_of_imports_is_followed() -> None:
    chain = {"engine.a": "from engine.b import x", "engine.b": "def f() -> None:\n    import numpy\nimport torch.nn"}
    known = {name: Source(name.replace(".", "/") + ".py", text) for name, text in chain.items()}
    asked = _loaded("engine.a", known)
    assert asked["torch.nn"] == "engine.b"
    assert "numpy" not in asked
