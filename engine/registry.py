"""A shelf finds the parts of one package, refuses a name taken twice, answers an unknown name with the known ones."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from pydantic import PlainSerializer, PlainValidator

from engine.errors import BadInput, LeakLensError, UnknownName, shown
from engine.part import Part, hyphened

P = TypeVar("P", bound=Part)


class Shelf(Generic[P]):
    """All parts of one kind; every module of its package and sub-packages is imported once, on first use."""

    def __init__(self, package: str, noun: str) -> None:
        self.package, self.noun = package, noun
        self._parts: dict[str, type[P]] = {}
        self._found = False

    def add(self, name: str, *, title: str, source: str = "") -> Callable[[type[P]], type[P]]:
        """Put a class on the shelf under the name that JSON, URL and command line use."""

        def put(part: type[P]) -> type[P]:
            if taken := self._parts.get(name):
                raise LeakLensError(f"{self.noun} {name} is told twice: in {taken.__module__} and {part.__module__}")
            part.name, part.title, part.source = name, title, source
            self._parts[name] = part
            return part

        return put

    def names(self) -> tuple[str, ...]:
        self._find()
        return tuple(sorted(self._parts))

    def __iter__(self) -> Iterator[type[P]]:
        return iter([self._parts[name] for name in self.names()])

    def __getitem__(self, name: str) -> type[P]:
        known = self.names()
        name = hyphened(name)
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise UnknownName(f"{self.noun}: no {shown(name)}", f"{hint}Known here: {', '.join(known)}")
        return self._parts[name]

    def make(self, value: Any) -> P:
        """A part from itself, from its name, or from `{"name": ..., parameters...}`."""
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
        """A part as JSON: typed with its base class, pydantic alone would write `{}`, the same for every run."""
        return {"name": part.name, **part.question()}

    def field(self) -> tuple[PlainValidator, PlainSerializer]:
        """What a pydantic field needs to hold a part of this shelf."""
        return PlainValidator(self.make), PlainSerializer(self.dump)

    def _find(self) -> None:
        if self._found:
            return
        package = importlib.import_module(self.package)
        found = pkgutil.walk_packages(package.__path__, f"{self.package}.")
        for module in sorted(found, key=lambda module: module.name):
            importlib.import_module(module.name)
        self._found = True
