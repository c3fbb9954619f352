"""Parts: the values they refuse, the messages, and their JSON."""

from __future__ import annotations

import math
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError, field_validator, model_validator

from engine.errors import BadInput, refusal
from engine.part import Declared, Part, Problem, hyphened, rule_of


class Recipe(Part):
    """How a soup is made. This second sentence is not in the summary.

    Nor is this paragraph.
    """

    salt_spoons: float = Field(0.5, ge=0, le=10)
    heat: float = Field(1.0, gt=0, lt=2)
    minutes: int = Field(20, ge=1)
    seed: int = Field(0, ge=0, le=2**53)
    covered: bool = True
    pot: Literal["iron", "clay"] = "iron"
    stove: Literal["gas", "wood"] | None = None
    guests: int | None = Field(None, ge=1, le=8)
    note: str = ""
    spices: tuple[str, ...] = ()
    price: float = Field(1.0, ge=1e-100, lt=1e6)


Recipe.name = "soup"


def refused(**values: Any) -> str:
    with pytest.raises(BadInput) as caught:
        Recipe(**values)
    return str(caught.value)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("salt_spoons", "must be a number between 0 and 10"),
        ("heat", "must be a number above 0 and below 2"),
        ("minutes", "must be a whole number at least 1"),
        ("seed", "must be a whole number between 0 and 9007199254740992"),
        ("covered", "must be true or false"),
        ("pot", "must be one of iron, clay"),
        ("stove", "must be one of gas, wood"),
        ("guests", "must be a whole number between 1 and 8"),
        ("note", "must be a word"),
        ("spices", "must be a list"),
        ("price", "must be a number at least 1e-100 and below 1000000"),
    ],
)
def test_the_rule_of_a_field_in_words(field: str, words: str) -> None:
    assert rule_of(Recipe.model_fields[field]) == words


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"salt-spoons": -1}, "soup: salt-spoons: must be a number between 0 and 10, got -1"),
        ({"salt_spoons": 10.5}, "soup: salt-spoons: must be a number between 0 and 10, got 10.5"),
        ({"salt_spoons": math.nan}, "soup: salt-spoons: must be a number between 0 and 10, got nan"),
        ({"salt_spoons": math.inf}, "soup: salt-spoons: must be a number between 0 and 10, got inf"),
        ({"salt_spoons": True}, "soup: salt-spoons: must be a number between 0 and 10, got true"),
        ({"salt_spoons": None}, "soup: salt-spoons: must be a number between 0 and 10, got nothing"),
        ({"salt_spoons": "0.5"}, 'soup: salt-spoons: must be a number between 0 and 10, got "0.5"'),
        ({"salt_spoons": ""}, 'soup: salt-spoons: must be a number between 0 and 10, got ""'),
        ({"salt_spoons": [1]}, "soup: salt-spoons: must be a number between 0 and 10, got [1]"),
        ({"salt_spoons": 10.0000000001}, "soup: salt-spoons: must be a number between 0 and 10, got 10.0000000001"),
        ({"salt_spoons": 1e300}, "soup: salt-spoons: must be a number between 0 and 10, got 1e+300"),
        ({"salt_spoons": 10**400}, f"soup: salt-spoons: must be a number between 0 and 10, got 1{'0' * 58}…"),
        ({"salt_spoons": 1e-320}, "soup: salt-spoons: must be 0 or at least 1e-12, got 1e-320"),
        ({"salt_spoons": -1e-320}, "soup: salt-spoons: must be a number between 0 and 10, got -1e-320"),
        ({"heat": 9e-13}, "soup: heat: must be at least 1e-12, got 9e-13"),
        ({"price": 1e-101}, "soup: price: must be a number at least 1e-100 and below 1000000, got 1e-101"),
        ({"covered": "true"}, 'soup: covered: must be true or false, got "true"'),
        ({"pot": "\x1b[31m"}, "soup: pot: must be one of iron, clay, got \\x1b[31m"),
        ({"note": "\udcff"}, "soup: note: must be plain text, got \\udcff"),
        ({"spices": ["salt", "\udcff"]}, "soup: spices: must be plain text, got \\udcff"),
        ({"salt_spoons": "two"}, "soup: salt-spoons: must be a number between 0 and 10, got two"),
        ({"minutes": 3.0}, "soup: minutes: must be a whole number at least 1, got 3.0"),
        ({"minutes": 3.5}, "soup: minutes: must be a whole number at least 1, got 3.5"),
        ({"minutes": False}, "soup: minutes: must be a whole number at least 1, got false"),
        ({"covered": 1}, "soup: covered: must be true or false, got 1"),
        ({"pot": "gold"}, "soup: pot: must be one of iron, clay, got gold"),
        ({"stove": "coal"}, "soup: stove: must be one of gas, wood, got coal"),
        ({"guests": 9}, "soup: guests: must be a whole number between 1 and 8, got 9"),
        ({"spices": "salt"}, "soup: spices: must be a list, got salt"),
        ({"broth": 1}, "soup: broth: no such parameter. Known here: salt-spoons, heat, minutes, seed, covered, pot, "
                       "stove, guests, note, spices, price."),
        ({"\x1b[31m": 1}, "soup: \\x1b[31m: no such parameter. Known here: salt-spoons, heat, minutes, seed, covered, "
                          "pot, stove, guests, note, spices, price."),
        ({"\udcff": 1}, "soup: \\udcff: no such parameter. Known here: salt-spoons, heat, minutes, seed, covered, "
                        "pot, stove, guests, note, spices, price."),
        ({"heat": 1, "salt-spoons": 1, "salt_spoons": 1}, "soup: salt-spoons: is given twice. Leave one of them out."),
    ],
)  # fmt: skip
def test_a_refusal_is_one_sentence(values: dict[str, Any], sentence: str) -> None:
    assert refused(**values) == sentence


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_field_without_limits_takes_only_finite_numbers(value: float) -> None:
    class Kettle(Part):
        """It whistles."""

        litres: float = 1.0

    with pytest.raises(BadInput, match=rf"^kettle: litres: must be a number, got {value}$"):
        Kettle(litres=value)


def test_a_long_value_is_cut() -> None:
    assert refused(pot="x" * 5000) == f"soup: pot: must be one of iron, clay, got {'x' * 59}…"


def test_a_missing_value_is_named() -> None:
    class Bread(Part):
        """Flour and water."""

        flour: int

    with pytest.raises(BadInput, match=r"^bread: flour: is missing and has no default$"):
        Bread()


def test_the_message_of_a_validator_is_kept() -> None:
    class Stew(Part):
        """Slow."""

        hours: int = 1
        pots: int = 1

        @field_validator("hours")
        @classmethod
        def _patience(cls, value: int) -> int:
            if value == 13:
                raise ValueError("brings bad luck")
            if value == 14:
                raise refusal("stew", "must be eaten", value, "Invite guests")
            return value

        @model_validator(mode="after")
        def _enough(self) -> Stew:
            if self.pots > self.hours:
                raise ValueError("too many pots")
            return self

    for values, sentence in (
        ({"hours": 13}, "stew: hours: brings bad luck"),
        ({"hours": 14}, "stew: must be eaten, got 14. Invite guests."),
        ({"hours": 1, "pots": 2}, "stew: too many pots"),
    ):
        with pytest.raises(BadInput) as caught:
            Stew(**values)
        assert str(caught.value) == sentence


def test_a_part_is_frozen() -> None:
    with pytest.raises(ValidationError):
        Recipe().minutes = 3  # type: ignore[misc]


def test_names_have_hyphens_and_underscores_are_accepted() -> None:
    assert hyphened("salt_spoons") == "salt-spoons"
    hyphens: dict[str, Any] = {"salt-spoons": 2.0}
    assert Recipe(**hyphens) == Recipe(salt_spoons=2) == Recipe().with_(salt_spoons=2.0)
    assert "salt-spoons" in Recipe().values() and "salt_spoons" not in Recipe().values()


def test_with_keeps_the_rest_and_validates_again() -> None:
    first = Recipe(minutes=7, stove="gas")
    second = first.with_(pot="clay")
    assert (second.minutes, second.stove, second.pot, first.pot) == (7, "gas", "clay", "iron")
    with pytest.raises(BadInput, match="must be a whole number"):
        first.with_(minutes=0)
    salted: dict[str, Any] = {"salt-spoons": 3.0}
    assert Recipe(salt_spoons=2.0).with_(**salted).salt_spoons == 3.0  # both spellings name one field


def test_a_list_from_json_becomes_a_tuple() -> None:
    listed: dict[str, Any] = {"spices": ["salt", "dill"]}
    assert Recipe(**listed).spices == ("salt", "dill")
    assert hash(Recipe(**listed)) == hash(Recipe(spices=("salt", "dill")))


def test_a_tiny_number_is_accepted_where_a_field_allows_it() -> None:
    assert Recipe(price=1e-100, heat=1e-12).price == 1e-100


def test_minus_zero_is_zero() -> None:
    assert math.copysign(1, Recipe(salt_spoons=-0.0).salt_spoons) == 1


@given(
    salt=st.just(0.0) | st.floats(1e-12, 10),
    minutes=st.integers(1, 10**9),
    guests=st.none() | st.integers(1, 8),
    spices=st.lists(st.text()).map(tuple),
)
def test_values_make_an_equal_part(salt: float, minutes: int, guests: int | None, spices: tuple[str, ...]) -> None:
    part = Recipe(salt_spoons=salt, minutes=minutes, guests=guests, spices=spices)
    assert Recipe(**part.values()) == part


def test_later_fields_at_their_default_are_left_out() -> None:
    class Older(Part):
        """The first version."""

        heat: float = 1.0

    class Newer(Older):
        """The version with a new field."""

        later = ("lid_mm",)
        lid_mm: int | None = None

    assert Newer().identity() == Older().identity() == {"heat": 1.0}
    assert Newer(lid_mm=3).identity() == {"heat": 1.0, "lid-mm": 3}
    assert Newer().values() == {"heat": 1.0, "lid-mm": None}


def test_the_summary_is_the_first_sentence() -> None:
    assert Recipe.summary() == "How a soup is made."


def test_a_part_has_no_problems_by_default() -> None:
    assert Recipe().problems(object()) == ()
    assert Problem("a", "b").fatal


def test_a_message_names_a_record_by_its_class_and_a_part_by_its_name() -> None:
    class Plate(Declared):
        """Round."""

    assert (Plate.label(), Recipe.label()) == ("plate", "soup")
