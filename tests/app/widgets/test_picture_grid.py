"""What the browser receives of a grid of pictures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.widgets.picture_grid import ColumnHead, GridSheet, grid_json
from engine.events import Pictured
from tests.app.screens.leak.makers import GREY, guess, judged, seen
from tests.engine.results.test_attack_summary import cell, ended


def psnr(entry: dict[str, Any]) -> str:
    """Return the PSNR of a picture; empty before the end of its attack."""
    return entry["scores"][0]["text"] if entry["scores"] else ""


def sheet(frames: bool = True, picture: int = 0) -> GridSheet:
    cells = [
        ended(31.0), ended(14.0, "a"), ended(19.0, attack="other", state="not converged"),
        cell([seen(), guess(5, [20.0])], "a", "other", "running"),
    ]  # fmt: skip
    heads = [ColumnHead("none", "no protection"), ColumnHead("a", "noise 0.1")]
    return GridSheet(heads, {"map": "Most probable", "other": "Other"}, cells, picture, frames)


def test_rows_are_the_attacks_and_the_best_of_them() -> None:
    grid = grid_json(sheet())
    assert [row["title"] for row in grid["rows"]] == ["Most probable", "Other", "best of 2"]
    assert [[psnr(entry) for entry in row["cells"]] for row in grid["rows"]] == [
        ["31.0 dB", "14.0 dB"],
        ["19.0 dB", ""],
        ["31.0 dB", ""],  # that attack has not ended
    ]
    assert grid["rows"][2]["cells"][1]["by"] == "by Other; 1 of 2 attacks so far"


def test_the_best_of_a_column_has_its_verdict() -> None:
    best = grid_json(sheet())["rows"][2]["cells"][0]
    assert (best["word"], best["by"]) == ("comes back", "by Most probable")


def test_each_score_is_a_bar_next_to_that_of_a_grey_square() -> None:
    bars = {bar["name"]: bar for bar in grid_json(sheet())["rows"][0]["cells"][0]["scores"]}
    assert list(bars) == ["PSNR", "SSIM", "LPIPS"]
    assert bars["PSNR"] == {"name": "PSNR", "text": "31.0 dB", "share": 0.775, "grey": GREY / 40}
    assert (bars["LPIPS"]["share"], bars["LPIPS"]["grey"]) == (0.05, 0.8)
    assert grid_json(sheet())["rows"][1]["cells"][1]["scores"] == []  # a running attack has no score yet


def test_a_leak_is_shown_in_words_too() -> None:
    (first, second), (third, fourth), _ = (row["cells"] for row in grid_json(sheet())["rows"])
    assert first["tone"] == "leaking" and first["word"] == "comes back"
    assert second["tone"] == "" and second["word"] == "not recognised"
    assert third["tone"] == "leaking" and third["word"] == "outlines come back"
    assert third["remark"].endswith("The attack did not converge: it leaves 60% of the upload unexplained")
    assert fourth["tone"] == "" and fourth["word"].startswith("forming")  # the result can still change


def test_one_scrubber_goes_through_all_moments() -> None:
    grid = grid_json(sheet())
    assert grid["moments"] == 3 and len(grid["labels"]) == 3
    assert len(grid["rows"][0]["cells"][0]["frames"]) == 3
    assert grid["labels"] == ["iteration 0 of 20", "iteration 10 of 20", "iteration 20 of 20"]
    assert grid_json(sheet(frames=False))["moments"] == 0 and grid_json(sheet(frames=False))["labels"] == []


def test_attacks_of_different_length_share_the_scrubber() -> None:
    long = [seen(), *(Pictured("map", at, 90, 0, 1.0, ("x",), (0,), (20.0,)) for at in (0, 30, 60, 90)), judged([20.0])]
    cells = [ended(31.0), cell(long, attack="other")]
    grid = grid_json(GridSheet([ColumnHead("none", "no protection")], {"map": "A", "other": "B"}, cells, frames=True))
    assert grid["labels"] == [
        "0 % of each attack",
        "33 % of each attack",
        "67 % of each attack",
        "100 % of each attack",
    ]


def test_a_picture_that_is_not_in_the_upload_is_empty() -> None:
    grid = grid_json(sheet(picture=5))
    assert grid["original"]["src"] == "" and all(entry["src"] == "" for row in grid["rows"] for entry in row["cells"])


def test_the_original_is_that_of_the_shown_picture() -> None:
    two = replace(seen(2), originals=("first", "second"))
    finished = cell([two, guess(20, [20.0, 25.0]), judged([20.0, 25.0])])
    for picture, name in enumerate(two.originals):
        shown = grid_json(GridSheet([ColumnHead("none", "no protection")], {"map": "A"}, [finished], picture))
        assert shown["original"]["src"] == name


def test_a_column_without_a_guess_says_that_its_attacks_wait() -> None:
    waiting = cell([], status="queued")
    grid = grid_json(
        GridSheet([ColumnHead("none", "no protection")], {"map": "A", "other": "B"}, [waiting], each=False)
    )
    assert grid["rows"][0]["cells"][0]["word"] == "waiting" and grid["rows"][0]["cells"][0]["by"] == ""
