"""Who sees what: four adversaries beside each other, each with its own ε."""

from __future__ import annotations

import html
from dataclasses import replace
from types import SimpleNamespace

import pytest

from app import leak_ladder, leaks, state, words_leak, words_leak_more
from app.leak_cells import Told, collect
from app.leaks import NONE, Asked, Leak
from tests.app.leaking import tell, visit, whole
from tests.app.reading import press, text

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]


@pytest.fixture
def small() -> Leak:
    usual = leaks.usual()
    return replace(usual, against=(NONE, "udp-fedavg:1", "udp-fedavg:0.1"), iterations=3)


def test_the_loudest_stands_beside_the_control(small: Leak) -> None:
    columns = leaks.columns(small)
    assert leak_ladder.loudest(columns) == "udp-fedavg:1"
    assert leak_ladder.loudest([columns[0], replace(columns[1], noise=None)]) == "udp-fedavg:1"
    found = leak_ladder.rows(small, "udp-fedavg:1", "map")
    assert [row.column.key for row in found] == [NONE, "udp-fedavg:1"]
    assert [one.spec.view for row in found for one in row.asked if one.spec] == list(leak_ladder.VIEWS) * 2


def test_the_servers_cell_is_that_of_the_grid(small: Leak) -> None:
    """Asked once, however many panels show it."""
    first = leak_ladder.rows(small, "udp-fedavg:1", "map")[1].asked[0]
    assert first.id in {one.id for one in leaks.cells(small)}


def test_all_are_asked_and_shown(small: Leak) -> None:
    page = visit(small, "ladder")
    assert page.button(key="ladder-ask").label == words_leak_more.ladder(8, 8)
    for view in leak_ladder.VIEWS:
        assert words_leak_more.ADVERSARIES[view] in text(page)
        assert html.escape(words_leak_more.HOLDS[view]) in text(page)
    press(page, "ladder-ask")
    asked = [one for row in leak_ladder.rows(small, "udp-fedavg:1", "map") for one in row.asked]
    assert [row.id for row in reversed(state.store().runs())] == [one.id for one in asked]
    for one in asked:
        good = one.column == NONE and one.spec is not None and one.spec.view == "server"
        tell(one.id, whole(one.id, [30.0 if good else 14.5], "converged" if good else "not converged"))
    page.run()
    assert text(page).count("ll-number ll-leaking") == 1 and f"converged · {words_leak.LEAKS}" in text(page)
    assert text(page).count("did not converge</span>") == 7
    assert 'alt="What the curious server got back with no protection: converged, 30.0 dB"' in text(page)
    assert words_leak_more.GREY.format(value="14.0 dB") in text(page) and words_leak.NO_PROOF in text(page)
    assert not [one for one in page.button if str(one.key).startswith("ladder-")]


def test_each_adversary_has_its_own_epsilon(small: Leak) -> None:
    page = visit(small, "ladder")
    promise = state.forecast_of(leaks.columns(small)[1].spec.canonical())
    for answer in promise.answers:
        assert words_leak_more.epsilon(answer) in text(page)
        assert "δ = 1e-5" in words_leak_more.epsilon(answer) and "per client" in words_leak_more.epsilon(answer)
    assert text(page).count("there is no finite ε") == 4  # nothing is promised without protection


def test_another_protection_is_another_row(small: Leak) -> None:
    page = visit(small, "ladder")
    page.selectbox(key="ladder-column:udp-fedavg:1,udp-fedavg:0.1").select("udp-fedavg:0.1").run()
    assert '<p class="ll-row">UDP-FedAvg, noise 0.1</p>' in text(page) and "noise 1</p>" not in text(page)


def test_without_protections_there_is_one_row(small: Leak) -> None:
    page = visit(replace(small, against=(NONE,)), "ladder")
    assert page.button(key="ladder-ask").label == words_leak_more.ladder(4, 4)
    assert any(one.value == words_leak_more.ONLY_CONTROL for one in page.caption)


def test_a_view_that_is_not_there_says_why(small: Leak) -> None:
    row = leak_ladder.rows(small, "udp-fedavg:1", "map")[0]
    why = "n/a, because there is no server <here>"
    promise = replace(row.promise, guarantee=SimpleNamespace(absent={"server": why}))  # type: ignore[arg-type]
    cells = [collect(replace(row.asked[0], spec=None, problem="x"), None)]
    cells += [collect(one, Told("finished", tuple(whole(one.id, [20.0])))) for one in row.asked[1:]]
    found = leak_ladder.rungs(replace(row, promise=promise), cells)
    assert [one.absent for one in found] == [why, "", "", ""]
    drawn = leak_ladder._figure(found[0], "no protection")
    assert "there is no server &lt;here&gt;" in drawn and words_leak_more.NOT_HERE in drawn and "<img" not in drawn
    assert "20.0 dB" in leak_ladder._figure(found[1], "no protection")


def test_an_attack_that_does_not_fit_says_why() -> None:
    cell = collect(Asked(NONE, "map", None, "needs a linear layer"), None)
    assert "needs a linear layer" in leak_ladder._figure(leak_ladder.Rung("server", cell, "", ""), "no protection")
