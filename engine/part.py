"""A part is a frozen declaration: its fields are its hyper-parameters, told once and used everywhere."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, NoReturn, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
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

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**{hyphened(key): value for key, value in values.items()})
        except ValidationError as error:
            explain(type(self), error)

    @field_validator("*", mode="before")
    @classmethod
    def _one_form(cls, value: Any) -> Any:
        """Lists are tuples and -0.0 is 0.0: one question has one id."""
        if isinstance(value, float):
            return value + 0.0
        return tuple(value) if isinstance(value, list) else value

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
        return type(self)(**{**{name: getattr(self, name) for name in self.model_fields_set}, **changes})


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
    bounds = {
        key: getattr(rule, key) for rule in field.metadata for key in ("ge", "gt", "le", "lt") if hasattr(rule, key)
    }
    if "ge" in bounds and "le" in bounds:
        return f"must be {noun} between {shown(bounds['ge'])} and {shown(bounds['le'])}"
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    limits = " and ".join(f"{words[key]} {shown(bounds[key])}" for key in words if key in bounds)
    return f"must be {noun} {limits}".rstrip()


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
    if first["type"] == "extra_forbidden":
        known = ", ".join(fields) or "none"
        raise BadInput(f"{declared.called()}: {place}: no such parameter", f"Known here: {known}") from None
    if place not in fields:
        raise BadInput(f"{declared.called()}: {first['msg'].removeprefix('Value error, ')}") from None
    if first["type"] == "missing":
        raise BadInput(f"{declared.called()}: {place}: is missing and has no default") from None
    if first["type"] == "value_error":
        raise BadInput(f"{declared.called()}: {place}: {first['msg'].removeprefix('Value error, ')}") from None
    got = _as_written(first["input"]) if first["type"].endswith("_type") else first["input"]
    raise refusal(f"{declared.called()}: {place}", law(fields[place]), got) from None


def _as_written(value: object) -> object:
    """3.0 is no whole number and "3" no number at all: it shows why."""
    if isinstance(value, float):
        return repr(value)
    return f'"{value}"' if isinstance(value, str) and value[-1:].isdigit() else value
