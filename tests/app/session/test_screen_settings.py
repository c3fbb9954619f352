"""The settings of every screen: one declaration gives defaults, checks, and what the address holds."""

from __future__ import annotations

import pytest

from app.session import screens
from app.session.screen_settings import MOST_NOTES
from app.texts import links
from engine.errors import BadInput

DECLARED = [screen.name for screen in screens.SCREENS if screen.settings]


@pytest.mark.parametrize("name", DECLARED)
def test_the_address_of_the_default_settings_gives_them_back(name: str) -> None:
    settings = screens.settings_class(name)
    default = settings.default()
    assert settings.screen == name
    assert settings.read_link(default.link(), default) == (default, [])


@pytest.mark.parametrize("name", DECLARED)
@pytest.mark.parametrize("text", ["", "[", "NaN", "1e999", "-1", "x" * 5000, "\ud800", "null"])
def test_a_damaged_value_changes_nothing_or_is_a_valid_one(name: str, text: str) -> None:
    settings = screens.settings_class(name)
    default = settings.default()
    for field in settings.own_fields():
        read, notes = settings.read_link({**default.link(), field: text}, default)
        assert settings.read_link(read.link(), default)[0] == read
        assert read == default or not notes or field in ("methods", "against", "attacks", "of")
        assert all(len(note) < 400 for note in notes)


def test_a_value_that_breaks_its_rule_is_named_with_the_rule() -> None:
    settings = screens.settings_class("tradeoff")
    _, notes = settings.read_link({"noises": "1", "seeds": "99"}, settings.default())
    assert notes == ["The link has seeds = 99. It must be a whole number between 1 and 10, so the default is used."]
    with pytest.raises(BadInput, match="tradeoff: seeds: must be a whole number between 1 and 10, got 99"):
        settings.default().changed(seeds=99)


@pytest.mark.parametrize(
    ("name", "field", "rule"),
    [
        ("leak", "attacks", links.LIST),
        ("leak", "against", links.WORD_RULES["against"]),
        ("runs", "states", links.LIST),
        ("tradeoff", "methods", "must name at least one method with noise"),
    ],
)
def test_a_list_without_a_known_word_is_one_note_and_the_default(name: str, field: str, rule: str) -> None:
    settings = screens.settings_class(name)
    default = settings.default()
    link = {**default.link(), field: "nonsense,udp-fedavg@abc"}
    read, notes = settings.read_link(link, default)
    assert notes == [f"The link has {field} = nonsense,udp-fedavg@abc. It {rule}, so the default is used."]
    assert getattr(read, field) == getattr(default, field)


def test_many_notes_are_counted() -> None:
    settings = screens.settings_class("tradeoff")
    params = {"noises": "1", "methods": ",".join(["fedceo", *(f"m{number}" for number in range(60))])}
    _, notes = settings.read_link(params, settings.default())
    assert len(notes) == MOST_NOTES + 1 and notes[-1].startswith("40 more settings")
