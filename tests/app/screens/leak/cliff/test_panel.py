"""The cliff: where it is expected before a run, and the verdict on the measured points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from streamlit.testing.v1 import AppTest

from app import theme
from app.charts import cliff
from app.charts.cliff import TopAxis
from app.screens.leak.blind_test import texts as blind_test_texts
from app.screens.leak.cliff import panel as cliff_panel
from app.screens.leak.settings import LeakSettings
from app.session import run_settings, services, session
from app.texts import attack_series as series_texts
from app.texts import attacks as attack_texts
from app.texts.verdicts import NOT_A_PROMISE
from engine.events import Event, Seen
from engine.results.attack_summary import AttackCell, AttackEvents, collect_cell
from engine.results.cliff import ABOVE, BELOW, Cliff, collect_cliff, levels
from engine.results.verdict import COMES_BACK, NOT_RECOGNISED
from engine.specs.attack_grid import NONE, RequestedAttack
from tests.app.reading import press, text
from tests.app.screens.leak.makers import GREY, append_events, finished_attack, judged, seen, visit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]
NOISES: Mapping[str, float | None] = {NONE: None, "quiet": 0.1, "middle": 1.0, "loud": 10.0}
REGION = (0.1, 1.0)
TITLES = {"map": "Most probable", "other": "Other"}


def events(psnr: float, ratio: float, state: str = "converged", **facts: float | str) -> list[Event]:
    changed: list[Event] = []
    for event in finished_attack("x", [psnr], state):
        if isinstance(event, Seen):
            event = replace(event, facts={**event.facts, "noise-to-signal": ratio, **facts})
        changed.append(event)
    return changed


def cell(key: str, events: Sequence[Event], attack: str = "map") -> AttackCell:
    collected = collect_cell(RequestedAttack(key, attack, None), AttackEvents("finished", tuple(events)))
    return replace(collected, id=f"{key}-{attack}")


def measured(*heights: float, ratios: Sequence[float] = (0.0, 0.03, 0.3, 3.0), baseline: str = "converged") -> Cliff:
    """Return a cliff with one attack at each noise. `heights` holds their PSNR."""
    states = [baseline]
    states += ["converged" if height > GREY + 3 else "not converged" for height in heights[1:]]
    cells = []
    for key, psnr, ratio, state in zip(NOISES, heights, ratios, states, strict=False):
        cells.append(cell(key, events(psnr, ratio, state)))
    return collect_cliff(NOISES, cells, TITLES)


# --- before any run ----------------------------------------------------------------------------------------


def test_a15_the_noises_surround_the_region() -> None:
    region = (2.0, 64.0)
    noises = levels(region, 10_000)
    ratios = [noise * 100 for noise in noises]  # 100 is the square root of 10,000
    assert len(noises) == 9
    assert ratios[0] == pytest.approx(2.0 / BELOW, rel=0.01) and ratios[-1] == pytest.approx(64.0 * ABOVE, rel=0.01)
    steps = [math.log10(after / before) for before, after in pairwise(ratios)]
    assert steps == pytest.approx([0.5] * 8, abs=0.01)
    assert sum(region[0] * 0.99 <= ratio <= region[1] * 1.01 for ratio in ratios) == 4


def test_a13_the_cliff_names_who_adds_the_noise() -> None:
    assert "Every point is UDP-FedAvg: each client adds all the noise." in text(visit(LeakSettings.default(), "cliff"))


def test_the_expectation_is_given_in_noise() -> None:
    sentence = series_texts.expected((0.1, 1.0), (0.001, 0.01))
    assert "is 0.1 to 1 times as large as the signal" in sentence and "noise 0.001 to 0.01 if the clip" in sentence
    assert "10,000 for 784" in series_texts.basis(10_000, 784)


# --- what was measured -------------------------------------------------------------------------------------


def test_the_attack_nearest_to_the_original_counts() -> None:
    cells = [
        cell(NONE, events(31.0, 0.0)),
        cell("quiet", events(15.0, 0.2)),
        cell("quiet", events(22.0, 0.2, "not converged"), "other"),
    ]
    result = collect_cliff(NOISES, cells, TITLES)
    (point,) = result.points
    assert (point.psnr, point.attack, point.state, point.ratio) == (22.0, "Other", "not converged", 0.2)
    assert point.leaks and (point.done, point.of) == (2, 2)
    assert result.baseline and result.baseline.psnr == 31.0 and result.trivial == GREY


def test_a_point_appears_as_soon_as_one_attack_has_ended() -> None:
    running = replace(cell("quiet", [seen()], "other"), status="running")
    result = collect_cliff(NOISES, [cell("quiet", events(20.0, 0.2)), running], TITLES)
    assert (result.points[0].done, result.points[0].of, result.complete) == (1, 2, False)
    assert "so far 1 of 2 attacks" in series_texts.point(result.points[0], "")
    assert series_texts.verdict(result, REGION) == ""


@pytest.mark.parametrize(
    ("heights", "ratios", "when", "sentence"),
    [
        (
            (31, 30, 14, 14),
            (0, 0.03, 0.3, 3),
            "inside",
            "At noise 0.1 (0.03 times the signal) something of it still comes back. From noise 1 (0.3 times",
        ),
        ((31, 14, 14, 14), (0, 0.03, 0.3, 3), "sooner", "comes back. From noise 0.1 (0.03 times the signal) on"),
        (
            (31, 30, 30, 14),
            (0, 0.03, 2.0, 3),
            "later",
            "At noise 1 (2 times the signal) something of it still comes back. From noise 10 (3 ",
        ),
        ((31, 30, 14, 14), (0, 0.03, 0.101, 3), "sooner", "From noise 1 (0.1 times the signal) on"),
        (
            (31, 30, 30, 14),
            (0, 0.03, 0.99, 3),
            "later",
            "(0.99 times the signal) something of it still comes back. From",
        ),
        ((31, 30, 30, 30), (0, 0.03, 0.3, 3), "", series_texts.ALWAYS),
        (
            (31, 14, 30, 14),
            (0, 0.03, 0.3, 3),
            "inside",
            "(0.3 times the signal) something of it still comes back. From",
        ),
    ],
)
def test_where_the_picture_is_hidden(
    heights: tuple[float, ...], ratios: tuple[float, ...], when: str, sentence: str
) -> None:
    result = measured(*heights, ratios=ratios)
    assert result.position(REGION) == when
    verdict = series_texts.verdict(result, REGION)
    assert sentence in verdict and " dB" not in verdict
    assert not when or verdict.endswith(f"{series_texts.WHEN[when]} {NOT_A_PROMISE}")


@pytest.mark.parametrize("result", [measured(15, 14, 14, 14), measured(16, 14, 14, 14, baseline="not converged")])
def test_without_a_successful_attack_on_the_baseline_there_is_no_verdict(result: Cliff) -> None:
    assert series_texts.verdict(result, REGION) == series_texts.SAYS_NOTHING


def test_a_clip_that_does_not_bind_is_reported() -> None:
    short = [cell("quiet", events(20.0, 0.2, clip="whole-update", signal=0.5, bound=1.0))]
    result = collect_cliff(NOISES, short, TITLES)
    assert (result.signal, result.bound) == (0.5, 1.0)
    assert "2 times as large" in series_texts.unbound(0.5, 1.0)


# --- the figure --------------------------------------------------------------------------------------------


def drawn(result: Cliff, dark: bool = False) -> dict:
    above = TopAxis("ε of the server", ((0.03, "8·10⁶"), (3.0, "900")), lambda noise: f"ε at {noise}")
    body: dict = cliff.draw(result, above, REGION, dark).to_plotly_json()
    return body


def test_the_region_is_drawn_before_anything_is_measured() -> None:
    chart = drawn(collect_cliff(NOISES, [], TITLES))
    (shape,) = chart["layout"]["shapes"]
    assert (shape["x0"], shape["x1"]) == REGION
    texts = [annotation["text"] for annotation in chart["layout"]["annotations"]]
    assert texts == [series_texts.REGION_LEFT, series_texts.REGION, series_texts.REGION_RIGHT]
    assert list(chart["layout"]["xaxis2"]["ticktext"]) == ["8·10⁶", "900"]
    assert chart["layout"]["xaxis2"]["range"] == chart["layout"]["xaxis"]["range"]
    assert not [trace for trace in chart["data"] if trace.get("text")]


def test_no_expectation_has_the_colour_of_a_promise_or_of_a_leak() -> None:
    chart = drawn(collect_cliff(NOISES, [], TITLES))
    colours = {annotation["font"]["color"] for annotation in chart["layout"]["annotations"]}
    assert colours == {theme.FAINT["light"]}


def test_b08_labels_of_epsilon_have_room_on_a_phone() -> None:
    ticks = [(10.0**power, str(power)) for power in range(-2, 7)]
    kept = cliff.spaced(ticks, (0.01, 1e6))
    assert [text for _, text in kept] == ["-2", "0", "2", "4", "6"]
    assert cliff.spaced([(1.0, "a"), (1.1, "b")], (0.01, 100.0)) == [(1.1, "b")]


def test_b08_the_label_of_the_baseline_has_room_on_a_phone() -> None:
    chart = drawn(collect_cliff(NOISES, [], TITLES))
    axis = chart["layout"]["xaxis"]
    start, end = axis["range"]
    baseline, first = (math.log10(place) for place in axis["tickvals"][:2])
    assert axis["ticktext"][0] == series_texts.NO_NOISE and axis["tickangle"] == 0
    assert 300 * (first - baseline) / (end - start) > 45  # px on a phone; the labels do not touch


def test_the_shape_shows_the_verdict_and_no_failure_has_the_private_colour() -> None:
    chart = drawn(measured(31, 30, 14, 14))
    marks = {trace["name"]: trace for trace in chart["data"] if trace.get("text")}
    leaking = marks[COMES_BACK]
    failed = marks[NOT_RECOGNISED]
    assert list(leaking["y"]) == [31, 30] and list(failed["y"]) == [14, 14] and list(failed["x"]) == [0.3, 3.0]
    assert leaking["marker"]["symbol"] != failed["marker"]["symbol"]
    assert (leaking["marker"]["color"], failed["marker"]["color"]) == ("#C2410C", "#0F172A")
    assert 0 < leaking["x"][0] < 0.02  # the baseline has its own place at the left edge
    assert "no noise" in leaking["text"][0] and "The attack did not converge: it leaves" in failed["text"][0]
    assert "ε at 1.0" in failed["text"][0]


def test_a_perfect_copy_does_not_flatten_the_rest() -> None:
    chart = drawn(measured(154, 30, 14, 14))
    marks = next(trace for trace in chart["data"] if trace.get("text"))
    assert list(marks["y"]) == [cliff.CEILING, 30] and marks["text"][0].startswith("comes back, 154.0 dB")
    assert chart["layout"]["yaxis"]["ticktext"][-1] == series_texts.OR_MORE == f"{cliff.CEILING:g}+"
    assert "ticktext" not in drawn(measured(31, 30, 14, 14))["layout"]["yaxis"]


def test_the_chart_in_words() -> None:
    alt = series_texts.cliff_alt(measured(31, 30, 14, 14), REGION, "server")
    for part in (
        "against the server",
        "fade from 0.1 to 1.",
        "Without noise 31.0 dB",
        "at 0.3 14.0 dB, not recognised",
        "14.0 dB",
    ):
        assert part in alt
    assert "Nothing is measured yet" in series_texts.cliff_alt(collect_cliff(NOISES, [], TITLES), REGION, "server")


# --- the panel ---------------------------------------------------------------------------------------------


@pytest.fixture
def small() -> LeakSettings:
    default = LeakSettings.default()
    run = run_settings.completed({**default.run, "model": "lenet-sigmoid"})
    return default.with_(run=run, attacks=("analytic", "map"), iterations=3)


def figure(page: AppTest) -> str:
    return str(page.get("plotly_chart")[0].proto.spec)


def test_a_click_runs_the_series_and_points_appear(small: LeakSettings) -> None:
    page = visit(small)
    assert "We expect the picture to fade" in text(page) and "15,826" in text(page)
    assert page.button(key="cliff-ask").label == "Run 10 attacks"  # analytic does not fit this model
    press(page, "cliff-ask")
    rows = list(reversed(services.store().runs()))
    plan = cliff_panel.plan(small)
    assert plan and [row.id for row in rows] == [request.id for request in plan.requests] and len(rows) == 10
    assert rows[0].spec["run"]["method"]["name"] == "fedavg"
    method = rows[1].spec["run"]["method"]
    assert (method["name"], method["noise-split"]) == ("udp-fedavg", "full-local")
    assert "0 of 10 attacks done" in page.get("progress")[0].text
    append_events(rows[0].id, finished_attack(rows[0].id, [31.0]))
    page.run()
    assert COMES_BACK in figure(page) and attack_texts.GREY in figure(page)
    press(page, "cliff-cancel")
    assert [row.status for row in services.store().runs()].count("cancelled") == 9
    assert page.button(key="cliff-ask").label == "Run 9 attacks"


def test_b11_points_of_the_grid_are_drawn_and_not_requested(small: LeakSettings) -> None:
    grid = small.with_(against=(NONE, "udp-fedavg:0.5"))
    plan = cliff_panel.plan(grid)
    assert plan
    (request,) = plan.of_grid
    assert request.id in {cell.id for cell in grid.grid.requests()}
    assert request.id not in {cell.id for cell in plan.requests}
    assert request.spec
    services.store().submit(request.id, request.spec.canonical(), visitor="me")
    assert "noise 0.5" not in figure(visit(grid))
    append_events(request.id, events(22.0, 3.0))
    page = visit(grid)
    assert "noise 0.5," in figure(page)
    assert page.button(key="cliff-ask").label == "Run 10 attacks"


def test_a15_the_region_follows_the_model_and_the_pictures(small: LeakSettings) -> None:
    single, pair = cliff_panel.plan(small), cliff_panel.plan(small.with_(many=2))
    assert single and pair
    assert pair.expected.region == pytest.approx([end / 2**0.5 for end in single.expected.region])
    ratios = [noise * single.expected.parameters**0.5 for noise in single.noises.values() if noise is not None]
    assert ratios[0] < single.expected.region[0] < single.expected.region[1] < ratios[-1]


def test_a_measured_series_has_a_verdict(small: LeakSettings) -> None:
    plan = cliff_panel.plan(small)
    assert plan
    page = press(visit(small), "cliff-ask")
    for request in plan.requests:
        noise = plan.noises[request.column]
        ratio = 0.0 if noise is None else noise * plan.expected.parameters**0.5
        leaks = ratio < 2 * plan.expected.region[0]
        append_events(request.id, events(31.0, ratio, "converged") if leaks else events(14.0, ratio, "not converged"))
    page.run()
    assert f"{series_texts.WHEN['inside']} {NOT_A_PROMISE}" in text(page)
    assert not [button for button in page.button if str(button.key).startswith("cliff-")]


def test_epsilon_on_top_has_its_view_unit_and_delta(small: LeakSettings) -> None:
    page = visit(small)
    assert "against the server, per client, \\u03b4 = 1e-5" in figure(page) or "δ = 1e-5" in figure(page)
    before = figure(page)
    page.session_state["observer"] = "outsider"
    page.run()
    assert "against an outsider" in figure(page) and figure(page) != before


def test_attacks_that_others_requested_continue(small: LeakSettings) -> None:
    page = press(visit(small), "cliff-ask")
    for row in services.store().runs():
        services.store().submit(row.id, row.spec, visitor="another")
    press(page, "cliff-cancel")
    assert {row.status for row in services.store().runs()} == {"queued"}
    assert "Someone else requested 10 of these attacks" in text(page)


def test_in_class_mode_a_visitor_has_one_series_at_a_time(small: LeakSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKLENS_CLASS", "1")
    monkeypatch.setattr(session, "visitor", lambda: "me")
    press(visit(small), "cliff-ask")
    page = press(visit(small.with_(whose="test-1")), "cliff-ask")
    assert series_texts.BUSY[0] in text(page) and len(services.store().runs()) == 10


def test_without_an_attack_the_panel_has_a_message(small: LeakSettings) -> None:
    assert series_texts.NO_ATTACK in text(visit(small.with_(attacks=("analytic",))))


def test_one_panel_at_a_time(small: LeakSettings) -> None:
    page = visit(small)
    for name, title in (("ladder", series_texts.LADDER), ("test", blind_test_texts.TITLE)):
        page.pills(key="leak-closer").set_value(name).run()
        assert title in text(page) and series_texts.CLIFF not in text(page)


def test_a_column_of_the_grid_counts_once_all_of_its_attacks_have_finished() -> None:
    done, forming = cell("a", events(14.0, 0.3)), cell("a", events(14.0, 0.3)[:2], "b")
    other = cell("c", events(14.0, 0.4))
    assert cliff_panel._finished_columns([done, forming, other]) == [other]


def test_a_score_without_an_observed_upload_is_no_point() -> None:
    assert collect_cliff(NOISES, [cell("quiet", [judged([20.0])])], TITLES).points == ()
