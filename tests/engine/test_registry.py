"""A shelf finds its files, refuses a name taken twice, and answers an unknown name with the known ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field, create_model

from engine.errors import BadInput, LeakLensError, UnknownName
from engine.part import Part
from engine.registry import Shelf

SHELF = """
from engine.part import Part
from engine.registry import Shelf
class Fruit(Part):
    "A fruit."
FRUITS = Shelf("{package}", "fruit")
LOADED = []
"""
FRUIT = """
from {package}.base import FRUITS, Fruit, LOADED
LOADED.append(__name__)
@FRUITS.add("{name}", title="{name}!", source="a tree")
class Grown(Fruit):
    "It grew."
    sugar_g: float = 1.0
    peeled: bool = False
"""
PACKAGE = "orchard_of_tests"


@pytest.fixture
def orchard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with a shelf and two fruits, in files that stand in another order than their names."""
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "base.py").write_text(SHELF.format(package=PACKAGE))
    for file, name in (("a_pear", "wild-pear"), ("z_apple", "apple")):
        (folder / f"{file}.py").write_text(FRUIT.format(package=PACKAGE, name=name))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for module in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
        del sys.modules[module]


@pytest.fixture
def shelf(orchard: Path) -> Shelf[Any]:
    from importlib import import_module

    found: Shelf[Any] = import_module(f"{PACKAGE}.base").FRUITS
    return found


def test_every_file_is_found_once_at_the_first_question(shelf: Shelf[Any]) -> None:
    loaded = sys.modules[f"{PACKAGE}.base"].LOADED
    assert loaded == []
    assert shelf.names() == ("apple", "wild-pear")
    assert shelf.names() == ("apple", "wild-pear")
    assert loaded == [f"{PACKAGE}.a_pear", f"{PACKAGE}.z_apple"]
    assert [part.name for part in shelf] == ["apple", "wild-pear"]


def test_what_was_told_stands_on_the_class(shelf: Shelf[Any]) -> None:
    pear = shelf["wild-pear"]
    assert (pear.name, pear.title, pear.source, pear.called()) == ("wild-pear", "wild-pear!", "a tree", "wild-pear")


def test_a_name_taken_twice_names_both_files(shelf: Shelf[Any], orchard: Path) -> None:
    (orchard / "zz_copy.py").write_text(FRUIT.format(package=PACKAGE, name="apple"))
    with pytest.raises(LeakLensError) as caught:
        shelf.names()
    assert str(caught.value) == f"fruit apple is told twice: in {PACKAGE}.z_apple and {PACKAGE}.zz_copy"


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("plum", "fruit: no plum. Known here: apple, wild-pear."),
        ("aple", "fruit: no aple. Did you mean apple? Known here: apple, wild-pear."),
        ("wild_pears", "fruit: no wild-pears. Did you mean wild-pear? Known here: apple, wild-pear."),
    ],
)
def test_an_unknown_name_is_answered_with_the_known_ones(shelf: Shelf[Any], asked: str, sentence: str) -> None:
    with pytest.raises(UnknownName) as caught:
        shelf.make(asked)
    assert str(caught.value) == sentence


def test_a_part_is_made_from_itself_its_name_or_an_object(shelf: Shelf[Any]) -> None:
    pear = shelf["wild_pear"](sugar_g=3.0)
    assert shelf.make(pear) is pear
    assert shelf.make("wild_pear") == shelf["wild-pear"]()
    assert shelf.make({"name": "wild_pear", "sugar_g": 3.0}) == pear == shelf.make(shelf.dump(pear))
    assert shelf.dump(pear) == {"name": "wild-pear", "sugar-g": 3.0, "peeled": False}


def test_a_field_that_came_later_is_left_out_at_its_default(shelf: Shelf[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    pear = shelf["wild-pear"]
    monkeypatch.setattr(pear, "later", ("peeled",))
    assert shelf.dump(pear()) == {"name": "wild-pear", "sugar-g": 1.0}
    assert shelf.dump(pear(peeled=True)) == {"name": "wild-pear", "sugar-g": 1.0, "peeled": True}
    assert shelf.make(shelf.dump(pear())) == pear()


@pytest.mark.parametrize("value", [3, None, True, ["apple"], {}, {"sugar-g": 1.0}, {"name": 3}])
def test_anything_else_is_refused(shelf: Shelf[Any], value: Any) -> None:
    with pytest.raises(BadInput, match=r"^fruit: must be a name, or an object with a name, got "):
        shelf.make(value)


def test_a_parameter_is_judged_by_its_part(shelf: Shelf[Any]) -> None:
    with pytest.raises(BadInput, match=r"^apple: peeled: must be true or false, got 1$"):
        shelf.make({"name": "apple", "peeled": 1})


def test_a_part_of_another_shelf_does_not_fit(shelf: Shelf[Any]) -> None:
    class Stone(Part):
        """Hard."""

    class Apple(Part):
        """Looks like one."""

    Apple.name = "apple"
    for other in (Stone(), Apple()):
        with pytest.raises(BadInput, match=f"^fruit: {type(other).__name__} is not on this shelf$"):
            shelf.make(other)


def test_a_field_typed_with_the_base_class_dumps_the_whole_part(shelf: Shelf[Any]) -> None:
    """Pydantic alone writes `{}`, and then every question would be the same question."""
    base = sys.modules[f"{PACKAGE}.base"].Fruit
    told: Any = (Annotated[base, *shelf.field()], Field("apple", validate_default=True))
    models: list[Any] = [create_model("Bare", fruit=(base, ...)), create_model("Whole", fruit=told)]
    bare, whole = models
    pear = shelf["wild-pear"](sugar_g=3.0)
    assert bare(fruit=pear).model_dump(mode="json") == {"fruit": {}}
    assert whole(fruit=pear).model_dump(mode="json") == {"fruit": shelf.dump(pear)}
    assert whole(**whole(fruit=pear).model_dump(mode="json")).fruit == pear
    assert whole().fruit == shelf["apple"]()
