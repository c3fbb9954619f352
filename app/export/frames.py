"""The scrubber of an exported page: the guesses of every attack over its progress, and its controls."""

from __future__ import annotations

import json
from typing import Any

from app.charts.base import thinned
from app.export import texts as export_texts
from app.export.markup import Html, tag
from engine.events import Pictured
from engine.results.attack_summary import AttackCell, guess_of

FRAMES = 240  # pictures on one page at most, so that the file stays small
FEWEST = 6  # pictures of one cell at least


class ScrubberFrames:
    """The data of the scrubber: the guesses of each cell, thinned if there are many."""

    def __init__(self, cells: int) -> None:
        self.most = max(FEWEST, FRAMES // max(1, cells))
        self.cells: list[dict[str, Any]] = []

    def add(self, cell: AttackCell, picture: int, name: str) -> str:
        """Adds the guesses of one cell for one original, and returns the id of its element."""
        path = [cell.path[place] for place in thinned(len(cell.path), self.most)]
        key = f"cell-{len(self.cells)}"
        frames: list[str | None] = []
        psnr: list[float | None] = []
        for guess in path:
            png, value = guess_of(guess, picture) or (None, None)
            frames.append(png)
            psnr.append(None if value is None else round(value, 4))
        self.cells.append(
            {
                "id": key,
                "what": name,
                "shares": [share(guess) for guess in path],
                "iterations": [guess.iteration for guess in path],
                "of": path[-1].of if path else 0,
                "frames": frames,
                "psnr": psnr,
            }
        )
        return key

    @property
    def moments(self) -> list[float]:
        """The stops of the scrubber, as a fraction of each attack."""
        return sorted({share for cell in self.cells for share in cell["shares"]} | {1.0})

    def script(self) -> Html:
        """The data as JSON. `<` is escaped, so that no text can end the script element."""
        words = {
            "now": export_texts.NOW,
            "at": export_texts.AT,
            "play": export_texts.PLAY,
            "pause": export_texts.PAUSE,
            "step": export_texts.STEP,
        }
        body = {"moments": self.moments, "cells": self.cells, "words": words}
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        return tag("script", Html(text), type="application/json", id="frames")


def share(guess: Pictured) -> float:
    return round(guess.iteration / guess.of, 4) if guess.of else 1.0


def player(moments: int) -> Html:
    """The scrubber. It is hidden until the script runs."""
    last = moments - 1
    slider = tag("input", type="range", id="scrub", min=0, max=last, value=last, step=1, aria_valuetext="100 %")
    return tag(
        "div",
        tag("button", export_texts.PLAY, type="button", id="play"),
        tag("label", export_texts.SCRUB, for_="scrub"),
        slider,
        tag("output", export_texts.NOW.format(share=100), id="now", for_="scrub", aria_live="polite"),
        class_="player",
        id="player",
        hidden=True,
    )
