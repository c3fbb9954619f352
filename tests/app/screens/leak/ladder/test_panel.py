"""The ladder: four views next to each other, each with its own ε."""

from __future__ import annotations

import html
from dataclasses import replace
from types import SimpleNamespace

import pytest

from app.screens.leak import columns as leak_columns
from app.screens.leak.ladder import panel as ladder_panel
from app.screens.leak.settings import LeakSettings
from app.session import services
from app.texts import attack_series as series_texts
from app.texts import attacks as attack_texts
from engine.results.attack_summary import AttackEvents, collect_cell
from engine.specs.attack_grid import NONE, RequestedAttack
from engine.specs.attack_series import VIEWS
from tests.app.reading import press, text
from tests.app.screens.leak.makers import append_events, finished_attack, visit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]


@pytest.fixture
def small() -> LeakSettings:
    default = LeakSettings.default()
    return default.with_(against=(NONE, "udp-fedavg:1", "udp-fedavg:0.1"), iterations=3)


def test_the_protection_with_most_noise_is_compared_with_the_baseline(small: LeakSettings) -> None:
    columns = leak_columns.columns(small)
    assert ladder_panel.most_noise(columns) == "udp-fedavg:1"
    assert ladder_panel.most_noise([columns[0], replace(columns[1], noise=None)]) == "udp-fedavg:1"
    rows = ladder_panel.rows(small, "udp-fedavg:1", "map")
    assert [row.column.key for row in rows] == [NONE, "udp-fedavg:1"]
    views = [request.spec.view for row in rows for request in row.requests if request.spec]
    assert views == list(VIEWS) * 2


def test_the_cell_of_the_server_view_is_a_cell_of_the_grid(small: LeakSettings) -> None:
    """One attack runs once, even if several panels show it."""
    first = ladder_panel.rows(small, "udp-fedavg:1", "map")[1].requests[0]
    assert first.id in {request.id for request in small.grid.requests()}


def test_all_views_are_attacked_and_shown(small: LeakSettings) -> None:
    page = visit(small, "ladder")
    assert page.button(key="ladder-ask").label == series_texts.ladder(8, 8)
    for view in VIEWS:
        assert series_texts.ADVERSARIES[view] in text(page)
        assert html.escape(series_texts.HOLDS[view]) in text(page)
    press(page, "ladder-ask")
    rows = ladder_panel.rows(small, "udp-fedavg:1", "map")
    requests = [request for row in rows for request in row.requests]
    assert [row.id for row in reversed(services.store().runs())] == [request.id for request in requests]
    for request in requests:
        leaks = request.column == NONE and request.spec is not None and request.spec.view == "server"
        events = (
            finished_attack(request.id, [30.0], "converged")
            if leaks
            else finished_attack(request.id, [14.5], "not converged")
        )
        append_events(request.id, events)
    page.run()
    assert text(page).count("ll-number ll-leaking") == 1 and text(page).count(">comes back</span>") == 1
    assert text(page).count("not recognised</span>") == 7
    assert 'alt="What the curious server got back with no protection: comes back, 30.0 dB"' in text(page)
    assert series_texts.GREY.format(value="14.0 dB") in text(page) and attack_texts.NO_PROOF in text(page)
    assert not [button for button in page.button if str(button.key).startswith("ladder-")]


def test_each_adversary_has_its_own_epsilon(small: LeakSettings) -> None:
    page = visit(small, "ladder")
    forecast = services.forecast_of(leak_columns.columns(small)[1].spec.canonical())
    for answer in forecast.answers:
        assert series_texts.epsilon(answer) in text(page)
        assert "δ = 1e-5" in series_texts.epsilon(answer) and "per client" in series_texts.epsilon(answer)
    assert text(page).count("there is no finite ε") == 4  # the baseline has no guarantee


def test_another_protection_replaces_the_row(small: LeakSettings) -> None:
    page = visit(small, "ladder")
    page.selectbox(key="ladder-column:udp-fedavg:1,udp-fedavg:0.1").select("udp-fedavg:0.1").run()
    assert '<p class="ll-row">UDP-FedAvg, noise 0.1 ' in text(
        page
    ) and '<p class="ll-row">UDP-FedAvg, noise 1 ' not in text(page)


def test_a13_the_row_names_who_adds_the_noise(small: LeakSettings) -> None:
    page = visit(small, "ladder")
    row = '<p class="ll-row">UDP-FedAvg, noise 1 <span class="ll-faint">each client adds all the noise</span></p>'
    assert row in text(page) and text(page).count("adds all the noise") == 1


def test_without_protections_only_the_baseline_is_shown(small: LeakSettings) -> None:
    page = visit(small.with_(against=(NONE,)), "ladder")
    assert page.button(key="ladder-ask").label == series_texts.ladder(4, 4)
    assert any(caption.value == series_texts.ONLY_CONTROL for caption in page.caption)


def test_a_missing_view_has_its_reason(small: LeakSettings) -> None:
    row = ladder_panel.rows(small, "udp-fedavg:1", "map")[0]
    reason = "n/a, because there is no server <here>"
    forecast = replace(row.forecast, guarantee=SimpleNamespace(absent={"server": reason}))  # type: ignore[arg-type]
    cells = [collect_cell(replace(row.requests[0], spec=None, problem="x"), None)]
    for request in row.requests[1:]:
        events = AttackEvents("finished", tuple(finished_attack(request.id, [20.0])))
        cells.append(collect_cell(request, events))
    ladder = ladder_panel.ladder_cells(replace(row, forecast=forecast), cells)
    assert [cell.absent for cell in ladder] == [reason, "", "", ""]
    drawn = ladder_panel._figure(ladder[0], "no protection")
    assert "there is no server &lt;here&gt;" in drawn and series_texts.NOT_HERE in drawn and "<img" not in drawn
    assert "20.0 dB" in ladder_panel._figure(ladder[1], "no protection")


def test_an_attack_that_does_not_fit_has_its_reason() -> None:
    cell = collect_cell(RequestedAttack(NONE, "map", None, "needs a linear layer"), None)
    ladder_cell = ladder_panel.LadderCell("server", cell, "", "")
    assert "needs a linear layer" in ladder_panel._figure(ladder_cell, "no protection")
