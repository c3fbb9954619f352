"""A paper's table on the Trade-off screen runs as published."""

from __future__ import annotations

import html

import pytest

from app.screens.tradeoff import sweep_points
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import services
from app.texts import sweep as sweep_texts
from tests.app.reading import text
from tests.app.screens.tradeoff.makers import captions, charts, clicked, finish, link, tradeoff_of, visit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]

TABLE = "1/cifar10/quick/written"


def test_the_table_of_a_paper_runs_as_published(small: TradeoffSettings) -> None:
    page = visit(small.with_(table=TABLE))
    cells = sweep_points.cells(TABLE)
    assert f"{2 * len(cells)} runs. Expected time here: " in captions(page)
    assert cells[0].row.settings["quick"].words["written"].split(",")[0] in text(page)
    clicked(page, "tradeoff-run")
    submitted = [row.id for row in services.store().runs()[::-1]]
    assert submitted == [cell.point(seed).id for seed in (0, 1) for cell in cells]
    for place, point in enumerate(sweep_points.all_points(small.with_(table=TABLE))):
        finish(point, 0.3 + place / 1000)
    page.run()
    assert "FedCEO ϑ=1: noise 1" in charts(page)[0] and "FedCEO ϑ&gt;1 is " in text(page)
    row = cells[0].row.settings["quick"].words["written"]
    assert text(page).count(html.escape(row)) == 2  # below the form, and next to the paper's numbers
    assert next(iter(page.dataframe[0].value["reported"])) == cells[0].reported
    page.selectbox(key="tradeoff-paper-reading").select("released").run()
    assert not page.exception
    assert (link(page)["table"], link(page)["eyes"]) == ("1/cifar10/quick/released", "outsider")


def test_from_your_own_sweep_to_a_table_and_back(small: TradeoffSettings) -> None:
    page = visit(small)
    page.segmented_control(key="tradeoff-kind").set_value(sweep_texts.OF_PAPER).run()
    assert not page.exception and link(page)["table"].startswith("1/")
    page.selectbox(key="tradeoff-paper-table").select("6").run()
    assert not page.exception and link(page)["table"] == "6/cifar10-alexnet/quick/written"
    page.segmented_control(key="tradeoff-kind").set_value(sweep_texts.OF_OWN).run()
    assert not page.exception and tradeoff_of(page) == small
