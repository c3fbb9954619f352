"""The list *Details* of Try: what each entry shows, for one side and for two."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.try_it import sides
from app.screens.try_it.details import table, takeaway
from app.screens.try_it.settings import TrySettings
from app.session import services
from engine.epsilon import Epsilon
from engine.examples.start import start_example
from engine.specs.run import RunSpec
from tests.app.charts.makers import run_events, smoothed
from tests.app.conftest import MAIN, PATIENCE_S
from tests.app.makers import RunMaker
from tests.app.reading import open_screen, press, text

pytestmark = pytest.mark.usefixtures("home", "resting")
OF_B = "method.noise=0.3;method.server-step=0.1"  # a stored stop of Start


def opened(closer: str = "", **params: str) -> AppTest:
    """Try with this entry open. Its default run ships, so everything is there without a click."""
    assert services.shared().ready(PATIENCE_S)
    page = open_screen(AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S), "try")
    for name, value in {"closer": closer, **params}.items():
        if value:
            page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def offered(page: AppTest) -> list[str]:
    return [str(option) for option in page.button_group(key="try-closer").options]


def charts(page: AppTest) -> list[str]:
    """The names of the charts on the page."""
    return [chart.proto.id.rpartition("chart-")[2] for chart in page.get("plotly_chart")]


def rows_of(page: AppTest) -> list[dict[str, str]]:
    """The rows of the table on the page, by the heads of its columns."""
    (table_text,) = re.findall(r'<div class="ll-rows".*?</table>', text(page), re.DOTALL)
    heads, *rows = [re.findall(r'<t[hd](?: scope="\w+")?>(.*?)</t[hd]>', row) for row in table_text.split("</tr>")[:-1]]
    return [dict(zip(heads, row, strict=True)) for row in rows]


@pytest.mark.slow
def test_the_list_is_closed_at_first_and_offers_what_there_is() -> None:
    page = opened()
    assert offered(page) == [
        "Privacy, view by view", "ε by round", "Accuracy by class", "Who holds what", "Runs and seeds", "Take it away",
    ]  # fmt: skip
    assert not page.button_group(key="try-closer").value
    assert 'class="ll-views"' not in text(page)


def test_an_open_entry_is_in_the_address() -> None:
    page = opened()
    page.button_group(key="try-closer").set_value("seeds").run()
    assert page.query_params["closer"] in ("seeds", ["seeds"])
    assert len(rows_of(page)) == 2


def test_privacy_shows_every_observer_of_both_sides() -> None:
    html = text(opened("privacy", b=OF_B))
    assert html.count('class="ll-views"') == 2
    assert html.count("against another participant") >= 2 and "Side B" in html
    assert "each client adds all the noise" in html


def test_a_chart_of_both_sides_can_be_saved() -> None:
    page = opened("epsilon", b=OF_B)
    assert "epsilon" in charts(page)
    assert 'data-save="png" data-chart="epsilon"' in text(page)


def test_the_same_partition_is_drawn_once() -> None:
    page = opened("partition", b=OF_B)
    assert [name for name in charts(page) if name.startswith("partition")] == ["partition-A"]
    assert "Both sides divide the data in the same way." in [caption.value for caption in page.caption]


def test_each_run_has_a_row_with_its_epsilon_against_the_observer() -> None:
    rows = rows_of(opened("seeds", b=OF_B, eyes="outsider"))
    assert [row["side"] for row in rows] == ["A", "A, without protection", "B", "B, without protection"]
    assert rows[0]["ε against an outsider, per client"] != "–"


def test_seeds_are_summed_up() -> None:
    assert "A: 3 seeds reach" in text(opened("seeds", seeds="3"))


def test_what_smooths_has_an_inside(ask: RunMaker) -> None:
    link = {"method": "fedceo", "rounds": "12"}
    settings, _ = TrySettings.read_link(link, TrySettings.default())
    spec = sides.requests_of(settings)[0].spec
    run = ask("queued", **{name: value for name, value in spec.canonical().items() if name != "format"})
    ask.tell(run, *run_events(smoothed(10)))
    page = opened("inside", **link)
    assert "Inside FedCEO" in offered(page)
    assert {"smoothness", "spectrum"} <= set(charts(page))


def test_pinned_runs_are_named_by_what_differs_and_can_be_unpinned() -> None:
    example = start_example()
    assert example is not None
    weak = next(stop for stop in example.stops if stop.noise == 0.3)
    page = opened("table", pins=weak.run.id)
    rows = rows_of(page)
    assert [row["run"] for row in rows] == ["A", "noise 0.3, server step 0.1"]
    assert [row["noise"] for row in rows] == ["2", "0.3"] and "clients" not in rows[0]
    assert "pinned" in charts(page)
    press(page, "unpin", weak.run.id)
    assert "Table of pinned runs" not in offered(page)


def test_two_protected_units_have_two_columns(ask: RunMaker) -> None:
    page = opened("table", pins=ask("finished", method="dp-fedavg"))
    assert {"run", "accuracy", "ε against the server, per client"} <= set(rows_of(page)[0])


def test_two_kinds_of_epsilon_have_two_columns() -> None:
    """A reader saw ε of another adjacency and of another δ in one column."""
    client = Epsilon(3.0, "server", "user", "zero-out", 1e-5, "exact", "all")
    record = replace(client, unit="record", adjacency="replace")
    assert table._heads([client, None, record], "server") == [
        "ε against the server, per client", "", "ε against the server, per record",
    ]  # fmt: skip
    for other in (replace(client, adjacency="add or remove"), replace(client, delta=1e-6)):
        heads = table._heads([client, other, client], "server")
        assert heads[0] == heads[2] == "ε against the server, per client, zero-out, δ = 1e-5" != heads[1]


def test_a_pinned_run_that_is_not_here_can_be_unpinned() -> None:
    page = opened("table", pins="0123456789ab")
    assert "not on this machine" in page.button(key="unpin:0123456789ab").label
    assert "pins runs that are not on this machine: 0123456789ab" in text(page)
    press(page, "unpin", "0123456789ab")
    assert "pins" not in page.query_params


def test_what_a_link_names_wrongly_is_a_note_and_leaves_the_address() -> None:
    page = opened("nope", pins="nope,0123456789ab")
    assert "closer = nope. It must be an entry of the list Details" in text(page)
    assert "names nope under pins" in text(page)
    assert "closer" not in page.query_params and page.query_params["pins"] == "0123456789ab"


def test_everything_can_be_taken_away() -> None:
    page = opened("take", b=OF_B)
    code = [block.value for block in page.code]
    commands = [block for block in code if block.startswith("python3 -m engine run")]
    assert len(commands) == 2 and "--set noise=0.3" in commands[1]
    assert sum("RunSpec(" in block for block in code) == 2
    labels = {button.proto.label for button in page.get("download_button")}
    assert labels == {"Every number as CSV", "Receipt as JSON"}


def test_a_receipt_has_every_run_with_its_spec_and_result() -> None:
    assert services.shared().ready(PATIENCE_S)
    shown = [sides.with_results(request) for request in sides.requests_of(TrySettings.default())]
    body = json.loads(takeaway.receipt(shown))
    assert [run["id"] for run in body["runs"]] == [shown[0].spec.id, shown[0].baselines[0].id]
    assert RunSpec(**body["runs"][0]["spec"]).id == shown[0].spec.id
    assert 0 < body["runs"][0]["report"]["accuracy"] < 1


def test_only_what_differs_is_compared() -> None:
    first = RunSpec(method={"name": "udp-fedavg", "noise": 1.0}).canonical()
    second = RunSpec(method={"name": "udp-fedavg", "noise": 2.0}, clients=50).canonical()
    assert table.differing([first, second]) == [{"noise": "1", "clients": "100"}, {"noise": "2", "clients": "50"}]
