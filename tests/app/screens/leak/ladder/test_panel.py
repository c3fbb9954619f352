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
from app.texts import privacy
from app.texts.verdicts import NOT_A_PROMISE
from engine.epsilon import Epsilon
from engine.results.attack_summary import AttackEvents, collect_cell
from engine.results.verdict import COMES_BACK, KIND, NOT_RECOGNISED, OUTLINES, Verdict
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
    assert page.button(key="ladder-ask").label == series_texts.run(8, 8) == "Run 8 attacks"
    for view in VIEWS:
        assert text(page).count(f"<b>{series_texts.ladder_title(view)}</b>") == 2
        assert html.escape(privacy.OBSERVER_SEES[view]) in text(page)
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
    assert text(page).count('"ll-word ll-leaking">comes back</b>') == 1
    assert text(page).count('"ll-word ll-ink">not recognised</b>') == 7
    alt = 'alt="What the server got back with no protection: comes back"'
    assert f'{alt} title="PSNR 30.0 dB; a grey square: 14.0 dB"' in text(page)
    assert "Without protection the server gets the picture back; an aggregator" in text(page)
    assert not [button for button in page.button if str(button.key).startswith("ladder-")]


def test_each_observer_has_its_own_epsilon_and_the_size_of_its_promise(small: LeakSettings) -> None:
    page = visit(small.with_(against=(NONE, "udp-fedavg:4")), "ladder")
    forecast = services.forecast_of(leak_columns.columns(small.with_(against=("udp-fedavg:4",)))[1].spec.canonical())
    assert len(forecast.answers) == 4
    for answer in forecast.answers:
        words, size = series_texts.promise(answer)
        assert f"{size.sign} {size.word}</span>" in text(page)
        assert f"<span>{words}</span>" in text(page) if words else size == privacy.NO_PROMISE
    assert text(page).count(f"{series_texts.NO_EPSILON}</span>") == 4  # the baseline has no guarantee


@pytest.mark.parametrize(
    ("value", "words", "size"),
    [
        (0.9, "ε 0.9 against the server, per client, δ = 1e-5", "strong promise"),
        (8.1, "ε 8.1 against the server, per client, δ = 1e-5", "weak promise"),
        (10.5, "", "no meaningful promise"),
        (None, "", "no promise"),
    ],
)
def test_an_epsilon_above_10_has_no_number(value: float | None, words: str, size: str) -> None:
    answer = Epsilon(value, "server", "user", "zero-out", 1e-5, "prv", "all")
    promise = series_texts.promise(answer)
    assert (promise[0], promise[1].word) == (words, size)


# --- the sentence ------------------------------------------------------------------------------------------

NOTHING_SEEN = dict.fromkeys(VIEWS, NOT_RECOGNISED)


@pytest.mark.parametrize(
    ("baseline", "protected", "sentence"),
    [
        (
            {**NOTHING_SEEN, "server": COMES_BACK, "client": OUTLINES}, NOTHING_SEEN,
            "Without protection the server gets the picture back; another participant gets outlines of the picture; "
            "an aggregator and an outsider get nothing that is recognised. "
            "With UDP at noise 1 no observer gets anything of the picture back. That is not a promise.",
        ),
        (
            dict.fromkeys(VIEWS, COMES_BACK), dict.fromkeys(VIEWS, COMES_BACK),
            "Without protection every observer gets the picture back. "
            "With UDP at noise 1 every observer gets the picture back.",
        ),
        (NOTHING_SEEN, {"server": KIND}, series_texts.LADDER_SAYS_NOTHING),
        ({}, {}, ""),
    ],
)  # fmt: skip
def test_b12_the_ladder_ends_with_what_was_seen(
    baseline: dict[str, Verdict], protected: dict[str, Verdict], sentence: str
) -> None:
    assert series_texts.observed({"no protection": baseline, "UDP, noise 1": protected}) == sentence


def test_b12_next_to_a_promise_the_sentence_says_which_one_it_is() -> None:
    rows = {"no protection": dict.fromkeys(VIEWS, COMES_BACK), "UDP, noise 8": NOTHING_SEEN}
    assert series_texts.observed(rows, promised=True).endswith(f"{NOT_A_PROMISE} {series_texts.ONLY_EPSILON}")


def test_b12_the_sentence_waits_for_all_attacks(small: LeakSettings) -> None:
    page = press(visit(small, "ladder"), "ladder-ask")
    requests = [request for row in ladder_panel.rows(small, "udp-fedavg:1", "map") for request in row.requests]
    for request in requests[:-1]:
        append_events(request.id, finished_attack(request.id, [30.0]))
    assert "Without protection" not in text(page.run())
    append_events(requests[-1].id, finished_attack(requests[-1].id, [30.0]))
    assert "Without protection every observer gets the picture back." in text(page.run())


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
    assert page.button(key="ladder-ask").label == series_texts.run(4, 4)
    assert any(caption.value == series_texts.ONLY_BASELINE for caption in page.caption)


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
    ladder_cell = ladder_panel.LadderCell("server", cell, "", None)
    assert "needs a linear layer" in ladder_panel._figure(ladder_cell, "no protection")
