"""A link opens the same screen with the same settings and asks for the same runs, however old it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contracts.doors import dashboard, of_the_lab
from tests.contracts.goldens import entries
from tests.contracts.visits import linked, visit

LINKS = entries("links", "links")
READ = [name for name, known in LINKS.items() if "asks" in known]
PATHS = ("/", "/lab", "/tradeoff", "/runs", "/machine")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One dashboard for all visits: nothing is asked there."""
    with dashboard(tmp_path_factory.mktemp("links") / "empty"):
        yield


def test_every_screen_has_links() -> None:
    assert {known["opens"] for known in LINKS.values()} == set(PATHS)
    assert len(LINKS) >= 10


@pytest.mark.parametrize("name", READ)
def test_a_link_asks_for_the_same_runs(name: str) -> None:
    known = LINKS[name]
    linked_page = linked(known["opens"], known["params"])
    assert linked_page
    assert linked_page.asks == known.get("asks today", known["asks"])
    assert linked_page.left_out == known["left out"]


@pytest.mark.parametrize("name", READ)
def test_the_settings_of_a_link_are_written_as_they_were(name: str) -> None:
    known: dict[str, Any] = LINKS[name]
    linked_page = linked(known["opens"], known["params"])
    expected = known.get("link today", known["link"])  # a later version may add settings, or change a default
    again = linked(known["opens"], expected)
    assert linked_page and again
    assert {key: linked_page.link.get(key) for key in expected} == expected
    assert (again.asks, again.link, again.left_out) == (linked_page.asks, linked_page.link, 0)


@pytest.mark.parametrize("name", [name for name in READ if "every setting" in name])
def test_a_link_with_every_setting_is_written_unchanged(name: str) -> None:
    known = LINKS[name]
    assert {**known["params"], **known["address"]} == known["params"]
    assert known["address"].keys() == known["params"].keys()


@pytest.mark.parametrize("name", [name for name, known in LINKS.items() if known["path"] == "/"])
def test_a_link_to_the_first_page_is_told_from_one_of_the_lab(name: str) -> None:
    assert of_the_lab(LINKS[name]["params"]) == (LINKS[name]["opens"] == "/lab")


@pytest.mark.slow
@pytest.mark.parametrize("name", LINKS)
def test_an_address_opens_its_screen_and_shows_what_it_holds(name: str, shown: None) -> None:
    known = LINKS[name]
    opens, address = visit(known["path"], known["params"])
    assert opens == known.get("opens today", known["opens"])  # screens have moved, and old links open them
    expected = known.get("address today", known.get("link today", known["address"]))
    assert {key: address.get(key) for key in expected} == expected
    assert visit(opens, address) == (opens, address)


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_every_path_exists(path: str, shown: None) -> None:
    assert visit(path, {})[0] == {"/lab": "/try"}.get(path, path)
