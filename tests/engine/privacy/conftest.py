"""Tests that replace a part of the accounting must not see answers that another test computed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.privacy.worst_case import shared_worst_case


@pytest.fixture(autouse=True)
def no_shared_answers() -> Iterator[None]:
    shared_worst_case.cache_clear()
    yield
    shared_worst_case.cache_clear()
