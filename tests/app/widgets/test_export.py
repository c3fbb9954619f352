"""The control Export passes on what the PNG shows, and nothing else."""

from __future__ import annotations

from app.session import url
from app.widgets import export


def test_the_data_of_the_png_has_no_earlier_guesses() -> None:
    cell = {"src": "last", "frames": ["first", "last"], "word": "comes back"}
    data = export.png_data({"columns": [], "rows": [{"title": "a", "cells": [cell]}]}, "terms")
    assert data["rows"][0]["cells"] == [{"src": "last", "frames": [], "word": "comes back"}]
    assert data["foot"] == "terms" and cell["frames"]


def test_the_address_of_a_list_has_its_ids_and_the_view() -> None:
    assert url.export_list_path("sweep", ["a", "b"], view="server") == "/export/sweep.html?ids=a,b&view=server"
