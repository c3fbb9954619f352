"""The modules of the project as text and as trees, and the exceptions to the rules."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from engine import PUBLIC

ROOT = Path(__file__).resolve().parents[2]
EXCEPTIONS: dict[str, list[str]] = tomllib.loads(
    Path(__file__).with_name("exceptions.toml").read_text(encoding="utf-8")
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Import:
    """One imported module, and where it is imported."""

    line: int
    target: str
    eager: bool  # happens when the importing module is imported


@dataclass(frozen=True)
class Source:
    """One module."""

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
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def functions(self) -> Iterator[Function]:
        return (node for node in self.nodes if isinstance(node, Function))

    @property
    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in self.nodes if isinstance(node, ast.ClassDef))

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        eager = {id(node) for node in _eager_nodes(self.tree)}
        imports = []
        for node in self.nodes:
            for target in self._targets(node):
                imports.append(Import(node.lineno, target, id(node) in eager))  # type: ignore[attr-defined]
        return tuple(imports)

    def _targets(self, node: ast.AST) -> Iterator[str]:
        """The modules that an import statement names: `from a import b` names a.b where that is a module, else a."""
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if not isinstance(node, ast.ImportFrom):
            return
        base = self._base(node.level)
        module = ".".join([*base, *([node.module] if node.module else [])])
        for alias in node.names:
            submodule = f"{module}.{alias.name}"
            if submodule in MODULES:
                yield submodule
            else:
                yield PUBLIC_NAMES.get(submodule, module)  # a public name of engine loads its module

    def _base(self, level: int) -> list[str]:
        if not level:
            return []
        package = self.name.split(".")
        if not self.path.endswith("__init__.py"):
            package = package[:-1]
        return package[: len(package) - level + 1]


def _eager_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs at import: not inside a function, not under TYPE_CHECKING."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from _eager_nodes(node)


def _read(tops: Iterable[str]) -> dict[str, Source]:
    sources = {}
    for top in tops:
        for file in sorted((ROOT / top).rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            if "node_modules" not in path:
                sources[path] = Source(path, file.read_text(encoding="utf-8"))
    return sources


SOURCES = _read(("engine", "app"))
TESTS = _read(("tests",))
PUBLIC_NAMES = {f"engine.{name}": module for name, (module, _) in PUBLIC.items()}
MODULES = {source.name for source in (*SOURCES.values(), *TESTS.values())}


def unexpected(breaches: Iterable[str], rule: str) -> str:
    """Breaches that are no known exception, and exceptions that are no longer needed; empty where all is well."""
    breaking, known = set(breaches), set(EXCEPTIONS.get(rule, ()))
    new = [f"breaks the rule: {breach}" for breach in sorted(breaking - known)]
    old = [f"remove this line of exceptions.toml, it is no longer needed: {line}" for line in sorted(known - breaking)]
    return "\n".join([*new, *old])
