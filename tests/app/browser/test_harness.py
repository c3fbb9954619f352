"""A machine without a browser skips the browser tests, unless REQUIRE_BROWSER is set."""

from __future__ import annotations

import pytest

from tests.app.browser.conftest import absent


@pytest.mark.parametrize("value", ["", "0"])
def test_without_a_browser_the_tests_are_skipped(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUIRE_BROWSER", value)
    with pytest.raises(pytest.skip.Exception, match="no browser"):
        absent("no browser")


def test_without_a_required_browser_the_tests_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="no browser"):
        absent("no browser")
