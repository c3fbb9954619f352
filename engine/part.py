"""A part is a frozen declaration: its fields are its hyper-parameters, told once and used everywhere."""

from __future__ import annotations

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
    """Why something will not work, and what would: shown under a form, refused by the engine when fatal."""

    reason: str
    remedy: str
    fatal: bool = True


def hyphened(name: str) -> str:
    """Names are lower-case with hyphens everywhere outside Python."""
    return name.replace("_", "-")


D = TypeVar("D", bound="Declared")
HALVES = re.compile("[\ud800-\udfff]")
TINY = 1e-12  # what is closer to zero is asked for by mistake, and would be zero after the first product


class Declared(BaseModel):
    """A frozen record of fields that explains a refusal in one sentence."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,  # `true` is not a number, and 3.0 is not a whole one
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
            explain(type(self), error)

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """By their outside names; two spellings of one name would hide one of the values."""
        for name, many in Counter(map(hyphened, values)).items():
            if many > 1:
                raise BadInput(f"{cls.called()}: {shown(name)}: is given twice", "Leave one of them out")
        return {hyphened(key): value for key, value in values.items()}

    @field_validator("*", mode="before")
    @classmethod
    def _one_form(cls, value: Any) -> Any:
        """Lists are tuples and -0.0 is 0.0: one question has one id."""
        if isinstance(value, float):
            return value + 0.0
        return tuple(value) if isinstance(value, list) else value

    @field_validator("*")
    @classmethod
    def _writable(cls, value: Any, told: ValidationInfo) -> Any:
        """Bytes that are no text reach us as halves of signs, which no file and no hash takes."""
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and HALVES.search(text):
                raise refusal(f"{cls.called()}: {hyphened(str(told.field_name))}", "must be plain text", text)
        return value

    @field_validator("*")
    @classmethod
    def _no_dust(cls, value: Any, told: ValidationInfo) -> Any:
        """Numbers that only a slip of the keyboard makes; a field that needs smaller ones says so with a `ge`."""
        if isinstance(value, float) and 0 < abs(value) < TINY:
            limits = bounds(cls.model_fields[str(told.field_name)])
            if not limits.get("ge", 0) > 0:
                least = f"must be {'' if 'gt' in limits else '0 or '}at least {shown(TINY)}"
                raise refusal(f"{cls.called()}: {hyphened(str(told.field_name))}", least, value)
        return value

    later: ClassVar[tuple[str, ...]] = ()  # fields younger than the first release, or optional by nature

    @classmethod
    def called(cls) -> str:
        """The name a refusal begins with."""
        return cls.__name__.lower()

    def values(self) -> dict[str, Any]:
        """Every field as JSON, by its outside name."""
        return self.model_dump(mode="json", by_alias=True)

    def question(self) -> dict[str, Any]:
        """The values that a run is named by: later fields at their default are left out, so that old ids survive."""
        fields = type(self).model_fields
        usual = {hyphened(name) for name in self.later if getattr(self, name) == fields[name].default}
        return {name: value for name, value in self.values().items() if name not in usual}

    def with_(self: D, **changes: Any) -> D:
        """The same record with other values, validated again."""
        held = {hyphened(name): getattr(self, name) for name in self.model_fields_set}
        return type(self)(**held | self._named(changes))


class Part(Declared):
    """One entry of a shelf: a method, attack, metric, model, data set or partition."""

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    source: ClassVar[str] = ""

    @classmethod
    def called(cls) -> str:
        return cls.name or cls.__name__.lower()

    @classmethod
    def summary(cls) -> str:
        """The first sentence of the docstring: the text a visitor reads."""
        text = " ".join(inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].split())
        end = text.find(". ")
        return text if end < 0 else text[: end + 1]

    def problems(self, spec: Any) -> tuple[Problem, ...]:
        """What stands in the way of this part in that question."""
        del spec
        return ()


def law(field: FieldInfo) -> str:
    """What a field asks of its value, in words: `must be a whole number between 1 and 50`."""
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
    told = " and ".join(f"{words[key]} {shown(limits[key])}" for key in words if key in limits)
    return f"must be {noun} {told}".rstrip()


def bounds(field: FieldInfo) -> dict[str, float]:
    """The limits of a field: `ge`, `gt`, `le` and `lt`, as far as it has them."""
    return {
        key: getattr(rule, key) for rule in field.metadata for key in ("ge", "gt", "le", "lt") if hasattr(rule, key)
    }


def _kinds(annotation: Any) -> list[Any]:
    """What a field may hold beside None: types, or the words of a Literal."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if get_origin(annotation) in (Union, UnionType):
        return [kind for one in get_args(annotation) for kind in _kinds(one)]
    return [] if annotation is NoneType else [annotation]


def explain(declared: type[Declared], error: ValidationError) -> NoReturn:
    """Turn pydantic's first complaint into our sentence: who, the law, the value, the remedy."""
    first = error.errors(include_url=False)[0]
    if isinstance(inner := first.get("ctx", {}).get("error"), BadInput):
        raise inner from None
    fields = {hyphened(name): field for name, field in declared.model_fields.items()}
    place = hyphened(str(first["loc"][0])) if first["loc"] else ""
    unwritable = first["type"] == "string_unicode" and not place  # a name that no text can hold
    if first["type"] == "extra_forbidden" or unwritable:
        name, known = shown(first["input"] if unwritable else place), ", ".join(fields) or "none"
        raise BadInput(f"{declared.called()}: {name}: no such parameter", f"Known here: {known}") from None
    if place not in fields:
        raise BadInput(f"{declared.called()}: {first['msg'].removeprefix('Value error, ')}") from None
    if first["type"] == "missing":
        raise BadInput(f"{declared.called()}: {place}: is missing and has no default") from None
    if first["type"] == "value_error":
        raise BadInput(f"{declared.called()}: {place}: {first['msg'].removeprefix('Value error, ')}") from None
    got = as_written(first["input"]) if first["type"].endswith("_type") else first["input"]
    raise refusal(f"{declared.called()}: {place}", law(fields[place]), got) from None


def as_written(value: object) -> object:
    """3.0 is no whole number and "3" no number at all: it shows why."""
    if isinstance(value, float):
        return repr(value)
    looks_other = isinstance(value, str) and (value[-1:].isdigit() or value in ("true", "false"))
    return f'"{value}"' if looks_other else value
