"""Capabilities that some parts have. A part declares one by its base class, so no caller probes it for an attribute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from engine.part import Part, bounds, hyphened


@dataclass(frozen=True)
class Family:
    """A group of methods: one folder, one title and one colour. Symbols tell apart what shares a colour."""

    title: str
    colour: Literal["grey", "blue", "sky", "purple", "yellow", "ink"]


@dataclass(frozen=True)
class Strength:
    """One field of a method as four steps: off, light, medium, strong. Pickers offer these in place of numbers."""

    field: str
    values: tuple[float, float, float, float]
    unit: str  # what the number counts, as a page shows it

    def __post_init__(self) -> None:
        if list(self.values) != sorted(self.values):
            raise ValueError(f"{self.field}: the values must rise from off to strong")


@dataclass(frozen=True)
class Variant:
    """A named choice of fields of one method, such as `the clients share the noise`."""

    title: str
    sentence: str
    fields: Mapping[str, Any]  # by their names in JSON
    suggested: bool = False  # whether forms choose it where a visitor chose nothing


@dataclass(frozen=True)
class Suggestion:
    """A method that pickers offer first, named by what it does. Its fields are those of one variant, if it has any."""

    title: str
    place: int  # pickers list the suggestions of all methods by it
    fields: Mapping[str, Any] = field(default_factory=dict)  # by their names in JSON


# What a noise field counts. Values of different units never share an axis.
NoiseUnit = Literal["over sensitivity", "absolute", "in 255ths", "coins"]


class HasNoise(Part):
    """A part with one field for the size of its noise. A larger value is more private."""

    noise_field: ClassVar[str] = "noise"
    noise_unit: ClassVar[NoiseUnit] = "over sensitivity"

    @property
    def noise_level(self) -> float:
        return float(getattr(self, self.noise_field))

    def result_format(self, spec: Any) -> int:
        """2: noise with the tails of a Gaussian, added in float64, in streams of its own for each run."""
        noisy = self.noise_level > 0 or getattr(spec, "target_epsilon", None) is not None
        return max(super().result_format(spec), 2 if noisy else 1)

    def with_noise(self, level: float) -> Self:
        """The same part with this much noise."""
        return self.with_(**{self.noise_field: level})

    def without_noise(self) -> Self:
        """The same part with the noise switched off. Everything else stays, for instance the clip."""
        return self.with_noise(0.0)

    @classmethod
    def noise_name(cls) -> str:
        """The name of the field in JSON, URL and command line."""
        return hyphened(cls.noise_field)

    @classmethod
    def default_noise(cls) -> float:
        return float(cls.model_fields[cls.noise_field].default)

    @classmethod
    def most_noise(cls) -> float:
        """The largest noise that the field accepts."""
        return float(bounds(cls.model_fields[cls.noise_field]).get("le", 1e4))


def server_step_field(default: float, description: str = "How far the server follows the mean update.") -> Any:
    """The field `server_step` with the default of a method."""
    return Field(default, gt=0, le=10, title="server step η", description=description)


class HasServerStep(Part):
    """A part whose server scales the change of each round."""

    server_step: float = server_step_field(1.0)


class HasIterations(Part):
    """A part that searches step by step."""

    iterations: int = Field(1000, ge=1, le=100_000, title="iterations", description="Steps of the search.")
