"""The base classes of parts. A part declares its hyper-parameters once, as the fields of a frozen pydantic model.

Forms, validation, JSON, ids and the command line all read that declaration.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, NoReturn, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo

from engine.errors import BadInput, refusal, shown


@dataclass(frozen=True)
class Problem:
    """Why a setting does not work, and the fix. A form shows it; the engine refuses the run if it is fatal."""

    reason: str
    remedy: str
    fatal: bool = True


def hyphened(name: str) -> str:
    """The name with hyphens, as JSON, URLs and the command line write it."""
    return name.replace("_", "-")


D = TypeVar("D", bound="Declared")
SURROGATES = re.compile("[\ud800-\udfff]")
TINY = 1e-12  # smaller magnitudes are typing mistakes, and become zero in the first product


class Declared(BaseModel):
    """A frozen record of fields. It refuses a wrong value in one sentence."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,  # `true` is not a number, and 3.0 is not a whole number
        extra="forbid",
        allow_inf_nan=False,
        validate_default=True,
        alias_generator=hyphened,
        populate_by_name=True,
    )

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**self._named(values))
        except ValidationError as error:
            raise_first_error(type(self), error)

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values by their hyphened names. Two spellings of one name are refused: one value would be lost."""
        for name, occurrences in Counter(map(hyphened, values)).items():
            if occurrences > 1:
                raise BadInput(f"{cls.label()}: {shown(name)}: is given twice", "Leave one of them out")
        return {hyphened(key): value for key, value in values.items()}

    @field_validator("*", mode="before")
    @classmethod
    def _normalised(cls, value: Any) -> Any:
        """Lists become tuples and -0.0 becomes 0.0, so that equal specs have equal ids."""
        if isinstance(value, float):
            return value + 0.0
        return tuple(value) if isinstance(value, list) else value

    @field_validator("*")
    @classmethod
    def _encodable(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuses lone surrogates, which come from bytes that are not text: no file and no hash accepts them."""
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and SURROGATES.search(text):
                raise refusal(cls._place(info), "must be plain text", text)
        return value

    @field_validator("*")
    @classmethod
    def _not_tiny(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuses tiny numbers, which are typing mistakes. A field that needs them declares a positive `ge`."""
        if isinstance(value, float) and 0 < abs(value) < TINY:
            limits = bounds(cls.model_fields[str(info.field_name)])
            if not limits.get("ge", 0) > 0:
                zero = "" if "gt" in limits else "0 or "
                raise refusal(cls._place(info), f"must be {zero}at least {shown(TINY)}", value)
        return value

    @classmethod
    def _place(cls, info: ValidationInfo) -> str:
        return f"{cls.label()}: {hyphened(str(info.field_name))}"

    later: ClassVar[tuple[str, ...]] = ()  # fields added after the first release, and optional fields

    @classmethod
    def label(cls) -> str:
        """The name at the start of an error message."""
        return cls.__name__.lower()

    def values(self) -> dict[str, Any]:
        """Every field as JSON, by its hyphened name."""
        return self.model_dump(mode="json", by_alias=True)

    def identity(self) -> dict[str, Any]:
        """The values that the id of a run hashes. Later fields at their default are left out, so old ids stay valid."""
        fields = type(self).model_fields
        later = {name for base in type(self).__mro__ for name in vars(base).get("later", ())}
        defaults = {hyphened(name) for name in later if getattr(self, name) == fields[name].default}
        return {name: value for name, value in self.values().items() if name not in defaults}

    def with_(self: D, **changes: Any) -> D:
        """A copy with these values changed, validated again."""
        given = {hyphened(name): getattr(self, name) for name in self.model_fields_set}
        return type(self)(**given | self._named(changes))


class Part(Declared):
    """One entry of a shelf: a method, attack, metric, model, data set or partition."""

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    source: ClassVar[str] = ""

    @classmethod
    def label(cls) -> str:
        return cls.name or cls.__name__.lower()

    @classmethod
    def summary(cls) -> str:
        """The first sentence of the docstring, which the interface shows."""
        text = " ".join(inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].split())
        end = text.find(". ")
        return text if end < 0 else text[: end + 1]

    def problems(self, spec: Any) -> tuple[Problem, ...]:
        """What prevents this part from working in this spec."""
        del spec
        return ()

    def misfits(self, spec: Any, world: Any) -> tuple[Problem, ...]:
        """What prevents this part from working with the sizes, classes and partition of this world."""
        del spec, world
        return ()

    def result_format(self, spec: Any) -> int:
        """The result format: raised for the specs whose results a change of this part changes."""
        del spec
        return 1


def rule_of(field: FieldInfo) -> str:
    """The rule of a field in words: `must be a whole number between 1 and 50`."""
    kinds = _kinds(field.annotation)
    if all(isinstance(kind, str) for kind in kinds):
        return "must be one of " + ", ".join(str(kind) for kind in kinds)
    if kinds == [bool]:
        return "must be true or false"
    noun = {int: "a whole number", float: "a number", str: "a word"}.get(kinds[0], "a list")
    limits = bounds(field)
    if "ge" in limits and "le" in limits:
        return f"must be {noun} between {shown(limits['ge'])} and {shown(limits['le'])}"
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    limit_texts = [f"{words[key]} {shown(limits[key])}" for key in words if key in limits]
    return f"must be {noun} {' and '.join(limit_texts)}".rstrip()


def bounds(field: FieldInfo) -> dict[str, float]:
    """The limits that a field declares, by `ge`, `gt`, `le` and `lt`."""
    limits: dict[str, float] = {}
    for rule in field.metadata:
        for key in ("ge", "gt", "le", "lt"):
            if hasattr(rule, key):
                limits[key] = getattr(rule, key)
    return limits


def _kinds(annotation: Any) -> list[Any]:
    """What a field accepts apart from None: types, or the words of a Literal."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if get_origin(annotation) in (Union, UnionType):
        kinds: list[Any] = []
        for member in get_args(annotation):
            kinds += _kinds(member)
        return kinds
    return [] if annotation is NoneType else [annotation]


def raise_first_error(declared: type[Declared], error: ValidationError) -> NoReturn:
    """Raise pydantic's first error as a sentence of ours: the place, the rule, the value and the remedy."""
    first = error.errors(include_url=False)[0]
    inner = first.get("ctx", {}).get("error")
    if isinstance(inner, BadInput):
        raise inner from None
    fields = {hyphened(name): field for name, field in declared.model_fields.items()}
    place = hyphened(str(first["loc"][0])) if first["loc"] else ""
    name_not_text = first["type"] == "string_unicode" and not place
    if first["type"] == "extra_forbidden" or name_not_text:
        name = shown(first["input"] if name_not_text else place)
        raise BadInput(f"{declared.label()}: {name}: no such parameter", _known(name, list(fields))) from None
    message = first["msg"].removeprefix("Value error, ")
    if place not in fields:
        raise BadInput(f"{declared.label()}: {message}") from None
    if first["type"] == "missing":
        raise BadInput(f"{declared.label()}: {place}: is missing and has no default") from None
    if first["type"] == "value_error":
        raise BadInput(f"{declared.label()}: {place}: {message}") from None
    value = as_written(first["input"]) if first["type"].endswith("_type") else first["input"]
    raise refusal(f"{declared.label()}: {place}", rule_of(fields[place]), value) from None


def _known(name: str, fields: list[str]) -> str:
    """The nearest parameter, and all that there are."""
    if not fields:
        return "It has no parameters: leave it out"
    nearest = difflib.get_close_matches(name, fields, n=1)
    suggestion = f"Did you mean {nearest[0]}? " if nearest else ""
    return f"{suggestion}Known here: {', '.join(fields)}"


def as_written(value: object) -> object:
    """A value of the wrong type in a form that shows its type: 3.0 keeps its point, and "3" its quotes."""
    if isinstance(value, float):
        return repr(value)
    resembles_other_type = isinstance(value, str) and (value[-1:].isdigit() or value in ("true", "false"))
    return f'"{value}"' if resembles_other_type else value
