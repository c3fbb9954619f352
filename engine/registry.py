"""The registry of parts. A shelf imports the modules of one package and holds the parts that register there."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from pydantic import PlainSerializer, PlainValidator

from engine.errors import BadInput, LeakLensError, UnknownName, shown
from engine.part import Part, hyphened

P = TypeVar("P", bound=Part)
SHELVES = ("methods", "attacks", "metrics", "datasets", "models", "partitions")  # packages of engine
_shelves: list[Shelf[Any]] = []


NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")  # of a part: JSON, URL and command line use it


class Shelf(Generic[P]):
    """All parts of one kind. Its package, its sub-packages and outside parts are imported once, on first use."""

    def __init__(self, package: str, noun: str) -> None:
        self.package = package
        self.noun = noun
        self._parts: dict[str, type[P]] = {}
        self._imported = False
        _shelves.append(self)

    def add(self, name: str, *, title: str, source: str = "") -> Callable[[type[P]], type[P]]:
        """A decorator that registers a class under the name that JSON, URL and command line use."""

        def register(part: type[P]) -> type[P]:
            if not NAME.fullmatch(name):
                rule = f"{self.noun} {shown(name)}: a name has small letters, digits and hyphens"
                raise LeakLensError(rule, f"Name it {hyphened(name).lower()}")
            missing = sorted(getattr(part, "__abstractmethods__", ()))
            if missing:
                rule = f"{self.noun} {name}: {part.__name__} does not define {', '.join(missing)}"
                raise LeakLensError(rule, "Define every abstract method of its base class")
            existing = self._parts.get(name)
            if existing:
                modules = f"{existing.__module__} and {part.__module__}"
                raise LeakLensError(f"{self.noun} {name} is registered twice: in {modules}", "Rename one of them")
            part.name = name
            part.title = title
            part.source = source
            self._parts[name] = part
            return part

        return register

    def names(self) -> tuple[str, ...]:
        self._import_all()
        return tuple(sorted(self._parts))

    def __iter__(self) -> Iterator[type[P]]:
        return iter([self._parts[name] for name in self.names()])

    def __getitem__(self, name: str) -> type[P]:
        known = self.names()
        if not isinstance(name, str):
            raise UnknownName(f"{self.noun}: no {shown(name)}", f"Known here: {', '.join(known)}")
        name = hyphened(name)
        if name not in known:
            near = difflib.get_close_matches(name.lower(), known, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise UnknownName(f"{self.noun}: no {shown(name)}", f"{hint}Known here: {', '.join(known)}")
        return self._parts[name]

    def make(self, value: Any) -> P:
        """A part, from a part, from its name, or from `{"name": ..., parameters...}`."""
        if isinstance(value, Part):
            if type(value) is not self._parts.get(value.name):
                raise BadInput(f"{self.noun}: {type(value).__name__} is not on this shelf")
            return value
        if isinstance(value, str):
            return self[value]()
        if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
            raise BadInput(f"{self.noun}: must be a name, or an object with a name, got {shown(value)}")
        return self[value["name"]](**{str(key): item for key, item in value.items() if key != "name"})

    @staticmethod
    def dump(part: Part) -> dict[str, Any]:
        """A part as JSON. Pydantic alone writes `{}` for a field typed with the base class, the same for every run."""
        return {"name": part.name, **part.identity()}

    def field(self) -> tuple[PlainValidator, PlainSerializer]:
        """The validator and the serializer of a pydantic field that holds a part of this shelf."""
        return PlainValidator(self.make), PlainSerializer(self.dump)

    def _import_all(self) -> None:
        if self._imported:
            return
        self.import_own()
        self._imported = True
        importlib.import_module("engine.outside_parts").import_all()  # it imports this module

    def import_own(self) -> None:
        """Import the modules of this shelf's package and its sub-packages."""
        package = importlib.import_module(self.package)
        modules = pkgutil.walk_packages(package.__path__, f"{self.package}.")
        for module in sorted(modules, key=lambda module: module.name):
            importlib.import_module(module.name)


def import_own_parts() -> None:
    """Import every part of this project, on all shelves."""
    packages = [f"engine.{name}" for name in SHELVES]
    for package in packages:
        importlib.import_module(package)
    for shelf in _shelves:
        if shelf.package in packages:
            shelf.import_own()


def snapshot() -> list[dict[str, Any]]:
    """The parts of every shelf."""
    return [dict(shelf._parts) for shelf in _shelves]


def restore(parts: Sequence[Mapping[str, Any]]) -> None:
    """Give every shelf the parts of a snapshot again."""
    for shelf, known in zip(_shelves, parts, strict=True):
        shelf._parts = dict(known)
