"""What is taken away from the Lab holds every number on it."""

from __future__ import annotations

import csv
import io

from app.charts.base import Track
from app.screens.lab.results import table_csv
from engine.events import Measured, Spent
from tests.app.charts.makers import smoothed

SPENT = Spent(1, "outsider", 2.5, "user", "zero-out", 1e-5, "rdp", "poisson")


def test_every_number_has_its_line() -> None:
    track = Track("this run", "main", "fedceo", (Measured(1, "accuracy", 0.5), SPENT, smoothed(10)), "a")
    rows = list(csv.DictReader(io.StringIO(table_csv([track]))))
    found = {(row["name"], row["who"]): row["value"] for row in rows}
    assert found["accuracy", "global"] == "0.5" and found["epsilon", "outsider"] == "2.5"
    assert found["threshold", "server"] == "1.0"
    assert found["singular value", "hidden.weight, frequency 1, rank 4"] == "0.125"
    assert found["roughness before smoothing", "client 7, class 0"] == "8.0"
    assert found["roughness after smoothing", "client 40, class 1"] == "0.0"
    assert found["accuracy before smoothing", "client 7, class 1"] == "0.25"
    assert found["accuracy after smoothing", "client 7, class 1"] == "0.75"
    smoothing = [row for row in rows if row["round"] == "10"]
    assert len(smoothing) == 1 + 8 + 4 + 2 + 4 * 6 and len(rows) == len(smoothing) + 2
