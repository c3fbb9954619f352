"""What a module may contain: imports, prints, writes, seeds, types, a docstring and a name that says something."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.rules.sources import SOURCES, Function, Source

Rule = Callable[[Source], Iterator[str]]

LAZY = {"torchvision", "lpips"}  # engine imports them inside functions only
BANNED_NAMES = {"utils", "helpers", "common", "manager"}
PRINTERS = re.compile(r"(.*/)?__main__\.py|engine/environment\.py|engine/cli/.*")
WRITERS = re.compile(
    r"engine/(jobs|examples|bench)/.*|engine/cli/(attack|export)\.py|engine/(doctor|environment)\.py|(.*/)?__main__\.py"
)
WRITING = {"write_text", "write_bytes", "touch", "tofile", "savetxt", "savez", "savez_compressed", "save_file"}
OPENING = {"open", "ZipFile", "GzipFile", "BZ2File", "LZMAFile"}
SEEDING = {"manual_seed", "manual_seed_all"}
GLOBAL_GENERATORS = {"torch", "np", "numpy", "random"}


def heavy_imports(source: Source) -> Iterator[str]:
    for imported in source.imports:
        top = imported.target.split(".")[0]
        if source.path.startswith("engine/") and top in ("streamlit", "plotly"):
            yield f"{imported.line}: engine may not import {top}"
        if source.path.startswith("app/") and top in ("torch", "torchvision", "opacus", "lpips"):
            yield f"{imported.line}: app may not import {top}, which is or loads torch"
        if top == "tests":
            yield f"{imported.line}: only tests import tests"
        if source.path.startswith("engine/") and top in LAZY and imported.eager:
            yield f"{imported.line}: import {top} inside the function that needs it"
        if source.path == "engine/environment.py" and top not in sys.stdlib_module_names:
            yield f"{imported.line}: environment.py uses the standard library alone, not {top}"


def module_names(source: Source) -> Iterator[str]:
    for part in source.path.removesuffix(".py").split("/"):
        for word in BANNED_NAMES & set(part.split("_")):
            yield f"1: {word} does not say what the module is"


def prints(source: Source) -> Iterator[str]:
    for node in source.nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"):
            continue
        if not PRINTERS.fullmatch(source.path):
            yield f"{node.lineno}: only the command line prints"
        elif source.path == "engine/environment.py" and not any(key.arg == "file" for key in node.keywords):
            yield f"{node.lineno}: environment.py prints to stderr: stdout belongs to the command it starts"


def file_writes(source: Source) -> Iterator[str]:
    if WRITERS.fullmatch(source.path):
        return
    for node in source.nodes:
        if isinstance(node, ast.Call) and _writes(node):
            yield f"{node.lineno}: only jobs, examples, bench, doctor, environment and the command line write files"


def _writes(call: ast.Call) -> bool:
    name = _last(call.func)
    if name == "save":
        return _first(call.func) in ("torch", "np", "numpy")
    if name not in OPENING:
        return name in WRITING
    where = slice(0, 2) if isinstance(call.func, ast.Attribute) else slice(1, 2)  # path.open(mode), open(path, mode)
    modes = [*call.args[where], *(key.value for key in call.keywords if key.arg == "mode")]
    texts = [str(mode.value) for mode in modes if isinstance(mode, ast.Constant)]
    return any(re.fullmatch(r"[rbtU]*[wax+][rbt+]*", text) for text in texts)


def seeding(source: Source) -> Iterator[str]:
    if source.path == "engine/seeds.py":
        return
    for node in source.nodes:
        if not isinstance(node, ast.Call):
            continue
        name = _last(node.func)
        if name in SEEDING or (name == "seed" and _first(node.func) in GLOBAL_GENERATORS):
            yield f"{node.lineno}: only engine/seeds.py seeds a generator"


def missing_types(source: Source) -> Iterator[str]:
    methods = {id(node) for owner in source.classes for node in owner.body}
    for node in source.functions:
        static = any(_last(mark) == "staticmethod" for mark in node.decorator_list)
        arguments = [*node.args.posonlyargs, *node.args.args][1 if id(node) in methods and not static else 0 :]
        arguments += [*node.args.kwonlyargs, *filter(None, (node.args.vararg, node.args.kwarg))]
        bare = [argument.arg for argument in arguments if argument.annotation is None]
        bare += ["the result"] * (node.returns is None)
        if bare:
            yield f"{node.lineno}: {node.name} has no type for {', '.join(bare)}"


def module_heads(source: Source) -> Iterator[str]:
    if not ast.get_docstring(source.tree):
        yield "1: a module begins with one sentence that says what it is"
    needed = any(isinstance(node, Function | ast.AnnAssign) for node in source.nodes)
    if needed and not any(imported.target == "__future__" for imported in source.imports):
        yield "1: from __future__ import annotations is missing"


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _first(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


RULES: tuple[Rule, ...] = (
    heavy_imports,
    module_names,
    prints,
    file_writes,
    seeding,
    missing_types,
    module_heads,
)


@pytest.mark.parametrize("path", SOURCES)
def test_a_module_keeps_the_rules(path: str) -> None:
    breaches = [f"{path}:{breach}" for rule in RULES for breach in rule(SOURCES[path])]
    assert not breaches, "\n" + "\n".join(breaches)


# --- every rule can fail -----------------------------------------------------------------------------------

BREACHES = [
    (heavy_imports, "engine/training/loop.py", "def f():\n    import streamlit"),
    (heavy_imports, "engine/bench/a.py", "from plotly import graph_objects"),
    (heavy_imports, "app/charts/a.py", "def f():\n    import torch"),
    (heavy_imports, "app/charts/a.py", "import torchvision"),
    (heavy_imports, "engine/jobs/a.py", "from tests.rules import sources"),
    (heavy_imports, "engine/metrics/a.py", "import lpips"),
    (heavy_imports, "engine/environment.py", "def f():\n    import numpy"),
    (module_names, "engine/privacy/utils.py", ""),
    (module_names, "engine/jobs/job_manager.py", ""),
    (prints, "engine/training/loop.py", "print(1)"),
    (prints, "engine/environment.py", "print('hello')"),
    (file_writes, "engine/training/loop.py", "open('a', 'w')"),
    (file_writes, "app/session/url.py", "path.open(mode='ab')"),
    (file_writes, "engine/datasets/a.py", "gzip.open(path, 'xb')"),
    (file_writes, "engine/specs/run.py", "path.write_text('a')"),
    (file_writes, "engine/attacks/a.py", "np.savez(file, a=a)"),
    (file_writes, "engine/attacks/a.py", "torch.save(a, file)"),
    (seeding, "engine/compute/noise.py", "torch.manual_seed(0)"),
    (seeding, "engine/compute/noise.py", "generator.manual_seed(0)"),
    (seeding, "engine/compute/noise.py", "np.random.seed(0)"),
    (missing_types, "engine/compute/noise.py", "def f(a) -> int: ..."),
    (missing_types, "engine/compute/noise.py", "def f(*a, **b: int) -> int: ..."),
    (missing_types, "engine/compute/noise.py", "class A:\n    def __init__(self): ..."),
    (module_heads, "engine/a/__init__.py", ""),
    (module_heads, "engine/a.py", "'What it is.'\ndef f() -> None: ..."),
]
ALLOWED = [
    (heavy_imports, "engine/metrics/a.py", "def f():\n    import lpips"),
    (file_writes, "engine/datasets/a.py", "open(path)\nopen(path, 'rb')\ngzip.open(path, 'rb')\npath.open()"),
    (file_writes, "engine/jobs/store.py", "open(path, 'wb')"),
    (seeding, "engine/seeds.py", "generator.manual_seed(0)"),
    (missing_types, "engine/a.py", "class A:\n    def f(self, a: int, *b: str) -> None: ..."),
]


@pytest.mark.parametrize(("rule", "path", "text"), BREACHES)
def test_a_breach_is_found(rule: Rule, path: str, text: str) -> None:
    breaches = list(rule(Source(path, text)))
    assert len(breaches) == 1
    assert re.match(r"\d+: \w", breaches[0])


@pytest.mark.parametrize(("rule", "path", "text"), ALLOWED)
def test_what_is_allowed_passes(rule: Rule, path: str, text: str) -> None:
    assert not list(rule(Source(path, text)))
