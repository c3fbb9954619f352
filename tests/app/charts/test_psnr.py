"""The PSNR chart draws every attack, the baseline in its own colour, and a line for the grey square."""

from __future__ import annotations

import pytest

from app import theme
from app.charts import psnr
from app.charts.psnr import PsnrCurve
from app.texts import attacks as attack_texts

CURVES = [
    PsnrCurve("Map", "no protection", 0, 0, (0, 10, 20), (14.0, 20.0, 31.0)),
    PsnrCurve("Map", "noise 1", 0, 1, (0, 10, 20), (14.0, 13.0, 12.5)),
    PsnrCurve("At once", "no protection", 1, 0, (1,), (60.0,)),
]


@pytest.mark.parametrize("dark", [False, True])
def test_every_attack_is_drawn(dark: bool) -> None:
    figure = psnr.draw(CURVES, 13.5, dark)
    lines = [trace for trace in figure.data if trace.x[0] is not None]
    assert [tuple(line.y) for line in lines] == [curve.psnr for curve in CURVES]
    assert lines[0].line.color == theme.baseline(dark) != lines[1].line.color
    assert lines[0].line.dash == lines[1].line.dash != lines[2].line.dash
    assert lines[0].marker.symbol == lines[1].marker.symbol != lines[2].marker.symbol  # a single point has no dash
    assert figure.layout.shapes[0].y0 == 13.5
    entries = [trace.name for trace in figure.data if trace.showlegend is None]
    assert entries == ["no protection", "noise 1", "Map", "At once"]


def test_no_protection_has_the_colour_of_the_baseline() -> None:
    for dark in (False, True):
        shades = [psnr.colour(place, dark) for place in range(8)]
        assert len(set(shades)) == len(shades)


def test_the_chart_in_words() -> None:
    words = psnr.describe(CURVES, 13.5)
    assert "Map against no protection ends at 31.0 dB" in words and "At once against no protection" in words
    assert f"{attack_texts.GREY.capitalize()} reaches 13.5 dB" in words
    assert "reaches" not in psnr.describe(CURVES, None)
