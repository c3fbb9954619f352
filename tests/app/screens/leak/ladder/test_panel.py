"""Who sees what: four adversaries beside each other, each with its own ε."""

from __future__ import annotations

import html
from dataclasses import replace
from types import SimpleNamespace

import pytest

from app.screens.leak import settings as leak_settings
from app.screens.leak.ladder import panel as ladder_panel
from app.screens.leak.settings import LeakSettings
from app.session import services
from app.texts import attack_series as series_texts
from app.texts import attacks as attack_texts
from engine.results.attack_summary import AttackEvents, collect_cell
from engine.specs.attack_grid import NONE, RequestedAttack
from tests.app.reading import press, text
from tests.app.screens.leak.makers import tell, visit, whole

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]


@pytest.fixture
def small() -> LeakSettings:
    usual = leak_settings.usual()
    return replace(usual, against=(NONE, "udp-fedavg:1", "udp-fedavg:0.1"), iterations=3)


def test_the_loudest_stands_beside_the_control(small: LeakSettings) -> None:
    columns = leak_settings.columns(small)
    assert ladder_panel.loudest(columns) == "udp-fedavg:1"
    assert ladder_panel.loudest([columns[0], replace(columns[1], noise=None)]) == "udp-fedavg:1"
    found = ladder_panel.rows(small, "udp-fedavg:1", "map")
    assert [row.column.key for row in found] == [NONE, "udp-fedavg:1"]
    assert [one.spec.view for row in found for one in row.asked if one.spec] == list(ladder_panel.VIEWS) * 2


def test_the_servers_cell_is_that_of_the_grid(small: LeakSettings) -> None:
    """Asked once, however many panels show it."""
    first = ladder_panel.rows(small, "udp-fedavg:1", "map")[1].asked[0]
    assert first.id in {one.id for one in leak_settings.cells(small)}


def test_all_are_asked_and_shown(small: LeakSettings) -> None:
    page = visit(small, "ladder")
    assert page.button(key="ladder-ask").label == series_texts.ladder(8, 8)
    for view in ladder_panel.VIEWS:
        assert series_texts.ADVERSARIES[view] in text(page)
        assert html.escape(series_texts.HOLDS[view]) in text(page)
    press(page, "ladder-ask")
    asked = [one for row in ladder_panel.rows(small, "udp-fedavg:1", "map") for one in row.asked]
    assert [row.id for row in reversed(services.store().runs())] == [one.id for one in asked]
    for one in asked:
        good = one.column == NONE and one.spec is not None and one.spec.view == "server"
        tell(one.id, whole(one.id, [30.0 if good else 14.5], "converged" if good else "not converged"))
    page.run()
    assert text(page).count("ll-number ll-leaking") == 1 and f"converged · {attack_texts.LEAKS}" in text(page)
    assert text(page).count("did not converge</span>") == 7
    assert 'alt="What the curious server got back with no protection: converged, 30.0 dB"' in text(page)
    assert series_texts.GREY.format(value="14.0 dB") in text(page) and attack_texts.NO_PROOF in text(page)
    assert not [one for one in page.button if str(one.key).startswith("ladder-")]


def test_each_adversary_has_its_own_epsilon(small: LeakSettings) -> None:
    page = visit(small, "ladder")
    promise = services.forecast_of(leak_settings.columns(small)[1].spec.canonical())
    for answer in promise.answers:
        assert series_texts.epsilon(answer) in text(page)
        assert "δ = 1e-5" in series_texts.epsilon(answer) and "per client" in series_texts.epsilon(answer)
    assert text(page).count("there is no finite ε") == 4  # nothing is promised without protection


def test_another_protection_is_another_row(small: LeakSettings) -> None:
    page = visit(small, "ladder")
    page.selectbox(key="ladder-column:udp-fedavg:1,udp-fedavg:0.1").select("udp-fedavg:0.1").run()
    assert '<p class="ll-row">UDP-FedAvg, noise 0.1</p>' in text(page) and "noise 1</p>" not in text(page)


def test_without_protections_there_is_one_row(small: LeakSettings) -> None:
    page = visit(replace(small, against=(NONE,)), "ladder")
    assert page.button(key="ladder-ask").label == series_texts.ladder(4, 4)
    assert any(one.value == series_texts.ONLY_CONTROL for one in page.caption)


def test_a_view_that_is_not_there_says_why(small: LeakSettings) -> None:
    row = ladder_panel.rows(small, "udp-fedavg:1", "map")[0]
    why = "n/a, because there is no server <here>"
    promise = replace(row.promise, guarantee=SimpleNamespace(absent={"server": why}))  # type: ignore[arg-type]
    cells = [collect_cell(replace(row.asked[0], spec=None, problem="x"), None)]
    cells += [collect_cell(one, AttackEvents("finished", tuple(whole(one.id, [20.0])))) for one in row.asked[1:]]
    found = ladder_panel.rungs(replace(row, promise=promise), cells)
    assert [one.absent for one in found] == [why, "", "", ""]
    drawn = ladder_panel._figure(found[0], "no protection")
    assert "there is no server &lt;here&gt;" in drawn and series_texts.NOT_HERE in drawn and "<img" not in drawn
    assert "20.0 dB" in ladder_panel._figure(found[1], "no protection")


def test_an_attack_that_does_not_fit_says_why() -> None:
    cell = collect_cell(RequestedAttack(NONE, "map", None, "needs a linear layer"), None)
    assert "needs a linear layer" in ladder_panel._figure(
        ladder_panel.LadderCell("server", cell, "", ""), "no protection"
    )
