"""The CSV file of Try holds every number of its runs."""

from __future__ import annotations

import csv
import io

from app.charts.base import Track
from app.screens.try_it.details.takeaway import table_csv
from engine.events import Measured, Spent
from tests.app.charts.makers import smoothed

SPENT = Spent(1, "outsider", 2.5, "user", "zero-out", 1e-5, "rdp", "poisson")


def test_every_number_has_a_line() -> None:
    track = Track("this run", "main", "fedceo", (Measured(1, "accuracy", 0.5), SPENT, smoothed(10)), "a")
    rows = list(csv.DictReader(io.StringIO(table_csv([track]))))
    values = {(row["name"], row["who"]): row["value"] for row in rows}
    assert values["accuracy", "global"] == "0.5" and values["epsilon", "outsider"] == "2.5"
    assert values["threshold", "server"] == "1.0"
    assert values["singular value", "hidden.weight, frequency 1, rank 4"] == "0.125"
    assert values["roughness before smoothing", "client 7, class 0"] == "8.0"
    assert values["roughness after smoothing", "client 40, class 1"] == "0.0"
    assert values["accuracy before smoothing", "client 7, class 1"] == "0.25"
    assert values["accuracy after smoothing", "client 7, class 1"] == "0.75"
    smoothing = [row for row in rows if row["round"] == "10"]
    assert len(smoothing) == 1 + 8 + 4 + 2 + 4 * 6 and len(rows) == len(smoothing) + 2
