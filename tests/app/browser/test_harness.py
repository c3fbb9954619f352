"""A machine without a browser may skip these tests, unless it must have one."""

from __future__ import annotations

import pytest

from tests.app.browser.conftest import absent


@pytest.mark.parametrize("said", ["", "0"])
def test_what_is_absent_is_skipped(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUIRE_BROWSER", said)
    with pytest.raises(pytest.skip.Exception, match="no browser"):
        absent("no browser")


def test_what_is_required_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="no browser"):
        absent("no browser")
