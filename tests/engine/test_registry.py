"""A shelf imports its modules, refuses a duplicate name, and lists the known names for an unknown one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field, create_model

from engine.errors import BadInput, LeakLensError, UnknownName
from engine.metrics import METRICS
from engine.metrics.membership.auc import Auc
from engine.metrics.membership.base import ScoreMetric
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
    """A package with a shelf and two fruits, in files whose order differs from that of their names."""
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

    fruits: Shelf[Any] = import_module(f"{PACKAGE}.base").FRUITS
    return fruits


def test_every_module_is_imported_once_on_first_use(shelf: Shelf[Any]) -> None:
    loaded = sys.modules[f"{PACKAGE}.base"].LOADED
    assert loaded == []
    assert shelf.names() == ("apple", "wild-pear")
    assert shelf.names() == ("apple", "wild-pear")
    assert loaded == [f"{PACKAGE}.a_pear", f"{PACKAGE}.z_apple"]
    assert [part.name for part in shelf] == ["apple", "wild-pear"]


def test_the_class_has_its_registered_name_title_and_source(shelf: Shelf[Any]) -> None:
    pear = shelf["wild-pear"]
    assert (pear.name, pear.title, pear.source, pear.label()) == ("wild-pear", "wild-pear!", "a tree", "wild-pear")


@pytest.mark.parametrize("name", ["HV_Bad", "two words", "-apple", "apple-", "äpfel", ""])
def test_a_name_that_no_command_could_name_is_refused(name: str) -> None:
    with pytest.raises(LeakLensError, match="small letters, digits and hyphens"):
        METRICS.add(name, title="a test metric", source="tests")(Auc)
    assert name not in METRICS.names()


def test_a_class_that_cannot_be_made_is_refused_with_what_it_lacks() -> None:
    class Unfinished(ScoreMetric):
        better = "higher"

    with pytest.raises(LeakLensError) as caught:
        METRICS.add("unfinished", title="a test metric", source="tests")(Unfinished)
    assert str(caught.value).startswith("metric unfinished: Unfinished does not define measure. Define every abstract")
    assert "unfinished" not in METRICS.names()


def test_a_duplicate_name_is_refused_with_both_modules(shelf: Shelf[Any], orchard: Path) -> None:
    (orchard / "zz_copy.py").write_text(FRUIT.format(package=PACKAGE, name="apple"))
    with pytest.raises(LeakLensError) as caught:
        shelf.names()
    modules = f"{PACKAGE}.z_apple and {PACKAGE}.zz_copy"
    assert str(caught.value) == f"fruit apple is registered twice: in {modules}. Rename one of them."


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("plum", "fruit: no plum. Known here: apple, wild-pear."),
        ("aple", "fruit: no aple. Did you mean apple? Known here: apple, wild-pear."),
        ("wild_pears", "fruit: no wild-pears. Did you mean wild-pear? Known here: apple, wild-pear."),
    ],
)
def test_the_message_for_an_unknown_name_lists_the_known_ones(shelf: Shelf[Any], name: str, sentence: str) -> None:
    with pytest.raises(UnknownName) as caught:
        shelf.make(name)
    assert str(caught.value) == sentence


def test_a_part_is_made_from_a_part_a_name_or_an_object(shelf: Shelf[Any]) -> None:
    pear = shelf["wild_pear"](sugar_g=3.0)
    assert shelf.make(pear) is pear
    assert shelf.make("wild_pear") == shelf["wild-pear"]()
    assert shelf.make({"name": "wild_pear", "sugar_g": 3.0}) == pear == shelf.make(shelf.dump(pear))
    assert shelf.dump(pear) == {"name": "wild-pear", "sugar-g": 3.0, "peeled": False}


def test_a_later_field_is_left_out_at_its_default(shelf: Shelf[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    pear = shelf["wild-pear"]
    monkeypatch.setattr(pear, "later", ("peeled",))
    assert shelf.dump(pear()) == {"name": "wild-pear", "sugar-g": 1.0}
    assert shelf.dump(pear(peeled=True)) == {"name": "wild-pear", "sugar-g": 1.0, "peeled": True}
    assert shelf.make(shelf.dump(pear())) == pear()


@pytest.mark.parametrize("value", [3, None, True, ["apple"], {}, {"sugar-g": 1.0}, {"name": 3}])
def test_anything_else_is_refused(shelf: Shelf[Any], value: Any) -> None:
    with pytest.raises(BadInput, match=r"^fruit: must be a name, or an object with a name, got "):
        shelf.make(value)


def test_a_parameter_is_validated_by_its_part(shelf: Shelf[Any]) -> None:
    with pytest.raises(BadInput, match=r"^apple: peeled: must be true or false, got 1$"):
        shelf.make({"name": "apple", "peeled": 1})


def test_a_part_of_another_shelf_is_refused(shelf: Shelf[Any]) -> None:
    class Stone(Part):
        """Hard."""

    class Apple(Part):
        """Has the name of a fruit but is no Fruit."""

    Apple.name = "apple"
    for other in (Stone(), Apple()):
        with pytest.raises(BadInput, match=f"^fruit: {type(other).__name__} is not on this shelf$"):
            shelf.make(other)


def test_a_field_typed_with_the_base_class_dumps_the_whole_part(shelf: Shelf[Any]) -> None:
    """Pydantic alone writes `{}`. Then all specs would have the same id."""
    base = sys.modules[f"{PACKAGE}.base"].Fruit
    annotation: Any = (Annotated[base, *shelf.field()], Field("apple", validate_default=True))
    models: list[Any] = [create_model("Bare", fruit=(base, ...)), create_model("Whole", fruit=annotation)]
    bare, whole = models
    pear = shelf["wild-pear"](sugar_g=3.0)
    assert bare(fruit=pear).model_dump(mode="json") == {"fruit": {}}
    assert whole(fruit=pear).model_dump(mode="json") == {"fruit": shelf.dump(pear)}
    assert whole(**whole(fruit=pear).model_dump(mode="json")).fruit == pear
    assert whole().fruit == shelf["apple"]()
