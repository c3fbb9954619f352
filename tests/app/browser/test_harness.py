"""A machine without a browser skips the browser tests, unless REQUIRE_BROWSER is set."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.app.browser.conftest import NewProfile, absent
from tests.app.browser.server import Server


@pytest.mark.parametrize("value", ["", "0"])
def test_without_a_browser_the_tests_are_skipped(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUIRE_BROWSER", value)
    with pytest.raises(pytest.skip.Exception, match="no browser"):
        absent("no browser")


def test_without_a_required_browser_the_tests_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="no browser"):
        absent("no browser")


@pytest.mark.slow
def test_b13_an_error_dialog_of_streamlit_is_noticed(
    chromium: Browser, new_profile: NewProfile, server: Server, dialogs: list[str]
) -> None:
    with new_profile(chromium) as profile:
        page = profile.new_page()
        page.goto(f"{server.address}/no-such-screen")
        expect(page.get_by_role("dialog", name="Page not found")).to_be_visible()
        page.wait_for_timeout(500)
    assert len(dialogs) == 1 and "Page not found" in dialogs[0]
    dialogs.clear()
