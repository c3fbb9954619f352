"""The cliff: where it is expected before a run, and what the measured points say of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from streamlit.testing.v1 import AppTest

from app.charts import cliff
from app.charts.cliff import TopAxis
from app.screens.leak import settings as leak_settings
from app.screens.leak.blind_test import texts as blind_test_texts
from app.screens.leak.cliff import panel as cliff_panel
from app.screens.leak.settings import LeakSettings
from app.session import run_settings, services, session
from app.texts import attack_series as series_texts
from app.texts import attacks as attack_texts
from engine.events import Event, Seen
from engine.results.attack_summary import AttackCell, AttackEvents
from engine.results.attack_summary import collect_cell as collected
from engine.results.cliff import LEAST, MOST, Cliff, collect_cliff, levels
from engine.specs.attack_grid import NONE, RequestedAttack
from engine.training.forecast import REGION
from tests.app.reading import press, text
from tests.app.screens.leak.makers import GREY, judged, seen, tell, visit, whole

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]
NOISES: Mapping[str, float | None] = {NONE: None, "quiet": 0.1, "middle": 1.0, "loud": 10.0}
TITLES = {"map": "Most probable", "other": "Other"}


def events(psnr: float, ratio: float, state: str = "converged", **facts: float | str) -> list[Event]:
    told = whole("x", [psnr], state)
    return [replace(one, facts={**one.facts, "noise-to-signal": ratio, **facts}) if isinstance(one, Seen) else one
            for one in told]  # fmt: skip


def cell(key: str, told: Sequence[Event], attack: str = "map") -> AttackCell:
    return replace(
        collected(RequestedAttack(key, attack, None), AttackEvents("finished", tuple(told))), id=f"{key}-{attack}"
    )


def measured(*heights: float, ratios: Sequence[float] = (0.0, 0.03, 0.3, 3.0), control: str = "converged") -> Cliff:
    states = [control, *["converged" if height > GREY + 3 else "not converged" for height in heights[1:]]]
    three = zip(NOISES, heights, ratios, states, strict=False)
    return collect_cliff(NOISES, [cell(key, events(psnr, at, how)) for key, psnr, at, how in three], TITLES)


# --- before any run ----------------------------------------------------------------------------------------


def test_noises_stand_around_the_region() -> None:
    found = levels(10_000)
    shares = [noise * 100 for noise in found]  # the square root of 10,000
    assert len(found) == 9 and shares[0] == pytest.approx(LEAST) and shares[-1] == pytest.approx(MOST)
    steps = [math.log10(after / before) for before, after in pairwise(shares)]
    assert steps == pytest.approx([0.5] * 8, abs=0.005)
    assert sum(REGION[0] * 0.99 <= share <= REGION[1] * 1.01 for share in shares) == 3


def test_the_expectation_is_said_in_noise() -> None:
    said = series_texts.expected(10_000, 0.001, 0.01)
    assert "noise 0.001 to 0.01, wherever the clip binds" in said and "d = 10,000 parameters" in said


# --- what was measured -------------------------------------------------------------------------------------


def test_the_best_attack_counts_by_the_truth() -> None:
    cells = [
        cell(NONE, events(31.0, 0.0)),
        cell("quiet", events(15.0, 0.2)),
        cell("quiet", events(22.0, 0.2, "not converged"), "other"),
    ]
    found = collect_cliff(NOISES, cells, TITLES)
    (point,) = found.points
    assert (point.psnr, point.attack, point.state, point.ratio) == (22.0, "Other", "not converged", 0.2)
    assert point.leaks and (point.done, point.of) == (2, 2)
    assert found.control and found.control.psnr == 31.0 and found.trivial == GREY


def test_a_point_appears_as_soon_as_one_attack_is_over() -> None:
    forming = replace(cell("quiet", [seen()], "other"), status="running")
    found = collect_cliff(NOISES, [cell("quiet", events(20.0, 0.2)), forming], TITLES)
    assert (found.points[0].done, found.points[0].of, found.complete) == (1, 2, False)
    assert "so far 1 of 2 attacks" in series_texts.point(found.points[0], "")
    assert series_texts.verdict(found, REGION) == ""


@pytest.mark.parametrize(
    ("heights", "ratios", "when", "said"),
    [
        ((31, 30, 14, 14), (0, 0.03, 0.3, 3), "inside", "It still does at noise / signal 0.03. From 0.3 on"),
        ((31, 14, 14, 14), (0, 0.03, 0.3, 3), "sooner", "31.0 dB. From 0.03 on"),
        ((31, 30, 30, 14), (0, 0.03, 2.0, 3), "later", "at noise / signal 2. From 3 on"),
        ((31, 30, 14, 14), (0, 0.03, 0.101, 3), "sooner", "From 0.1 on"),
        ((31, 30, 30, 14), (0, 0.03, 0.99, 3), "later", "at noise / signal 0.99. From 3 on"),
        ((31, 30, 30, 30), (0, 0.03, 0.3, 3), "", "At every noise measured here it does so, too."),
        ((31, 14, 30, 14), (0, 0.03, 0.3, 3), "inside", "at noise / signal 0.3. From 3 on"),
    ],
)
def test_where_the_picture_disappears(
    heights: tuple[float, ...], ratios: tuple[float, ...], when: str, said: str
) -> None:
    found = measured(*heights, ratios=ratios)
    assert found.when(REGION) == when
    text = series_texts.verdict(found, REGION)
    assert said in text and (not when or text.endswith(f"{series_texts.WHEN[when]}."))


@pytest.mark.parametrize("found", [measured(15, 14, 14, 14), measured(31, 14, 14, 14, control="not converged")])
def test_without_a_working_control_nothing_follows(found: Cliff) -> None:
    assert series_texts.verdict(found, REGION) == series_texts.SAYS_NOTHING


def test_a_clip_that_does_not_bind_is_told() -> None:
    short = [cell("quiet", events(20.0, 0.2, clip="whole-update", signal=0.5, bound=1.0))]
    found = collect_cliff(NOISES, short, TITLES)
    assert (found.signal, found.bound) == (0.5, 1.0)
    assert "2 times as loud" in series_texts.unbound(0.5, 1.0)


# --- the figure --------------------------------------------------------------------------------------------


def drawn(found: Cliff, dark: bool = False) -> dict:
    above = TopAxis("ε of the server", ((0.03, "8·10⁶"), (3.0, "900")), lambda noise: f"ε at {noise}")
    body: dict = cliff.draw(found, above, REGION, dark).to_plotly_json()
    return body


def test_the_region_is_there_before_anything_is_measured() -> None:
    found = drawn(collect_cliff(NOISES, [], TITLES))
    (shape,) = found["layout"]["shapes"]
    assert (shape["x0"], shape["x1"]) == REGION
    texts = [one["text"] for one in found["layout"]["annotations"]]
    assert texts == [series_texts.REGION_LEFT, series_texts.REGION, series_texts.REGION_RIGHT]
    assert list(found["layout"]["xaxis2"]["ticktext"]) == ["8·10⁶", "900"]
    assert found["layout"]["xaxis2"]["range"] == found["layout"]["xaxis"]["range"]
    assert not [trace for trace in found["data"] if trace.get("text")]


def test_a_shape_says_how_an_attack_ended_and_no_failure_is_called_private() -> None:
    found = drawn(measured(31, 30, 14, 14))
    marks = {trace["name"]: trace for trace in found["data"] if trace.get("text")}
    good, lost = marks[series_texts.SHAPES["converged"]], marks[series_texts.SHAPES["not converged"]]
    assert list(good["y"]) == [31, 30] and list(lost["y"]) == [14, 14] and list(lost["x"]) == [0.3, 3.0]
    assert good["marker"]["symbol"] != lost["marker"]["symbol"]
    assert set(good["marker"]["color"]) == {"#C2410C"} and set(lost["marker"]["color"]) == {"#0F172A"}
    assert 0 < good["x"][0] < 0.02  # the control has a place of its own at the left edge
    assert "no noise" in good["text"][0] and "did not converge: it leaves" in lost["text"][0]
    assert "ε at 1.0" in lost["text"][0]


def test_a_perfect_copy_does_not_flatten_the_rest() -> None:
    found = drawn(measured(154, 30, 14, 14))
    marks = next(trace for trace in found["data"] if trace.get("text"))
    assert list(marks["y"]) == [cliff.CEILING, 30] and marks["text"][0].startswith("154.0 dB")
    assert found["layout"]["yaxis"]["ticktext"][-1] == series_texts.OR_MORE == f"{cliff.CEILING:g}+"
    assert "ticktext" not in drawn(measured(31, 30, 14, 14))["layout"]["yaxis"]


def test_the_chart_in_words() -> None:
    said = series_texts.cliff_alt(measured(31, 30, 14, 14), "server")
    for part in ("seen by the server", "Without noise 31.0 dB", "at 0.3 14.0 dB, did not converge", "14.0 dB"):
        assert part in said
    assert "Nothing is measured yet" in series_texts.cliff_alt(collect_cliff(NOISES, [], TITLES), "server")


# --- the panel ---------------------------------------------------------------------------------------------


@pytest.fixture
def small() -> LeakSettings:
    usual = leak_settings.usual()
    run = run_settings.settled({**usual.run, "model": "lenet-sigmoid"})
    return replace(usual, run=run, attacks=("analytic", "map"), iterations=3)


def figure(page: AppTest) -> str:
    return str(page.get("plotly_chart")[0].proto.spec)


def test_a_click_asks_the_series_and_points_appear(small: LeakSettings) -> None:
    page = visit(small)
    assert "We expect the picture to disappear" in text(page) and "15,826" in text(page)
    assert page.button(key="cliff-ask").label == "Measure the cliff (10 attacks)"  # analytic does not fit this model
    press(page, "cliff-ask")
    rows = list(reversed(services.store().runs()))
    plan = cliff_panel.plan(small)
    assert plan and [row.id for row in rows] == [one.id for one in plan.asked] and len(rows) == 10
    assert rows[0].spec["run"]["method"]["name"] == "fedavg"
    method = rows[1].spec["run"]["method"]
    assert (method["name"], method["noise-split"]) == ("udp-fedavg", "full-local")
    assert "0 of 10 attacks done" in page.get("progress")[0].text
    tell(rows[0].id, whole(rows[0].id, [31.0]))
    page.run()
    assert series_texts.SHAPES["converged"] in figure(page) and attack_texts.GREY in figure(page)
    press(page, "cliff-cancel")
    assert [row.status for row in services.store().runs()].count("cancelled") == 9
    assert page.button(key="cliff-ask").label == "Measure the rest (9 attacks)"


def test_a_measured_series_says_what_happened(small: LeakSettings) -> None:
    plan = cliff_panel.plan(small)
    assert plan and plan.before.cliff
    page = press(visit(small), "cliff-ask")
    for one in plan.asked:
        noise = plan.noises[one.column]
        loud = 0.0 if noise is None else noise * plan.before.cliff.parameters**0.5
        tell(one.id, events(31.0 if loud < 0.2 else 14.0, loud, "converged" if loud < 0.2 else "not converged"))
    page.run()
    assert series_texts.WHEN["inside"] in text(page) and attack_texts.NO_PROOF in text(page)
    assert not [one for one in page.button if str(one.key).startswith("cliff-")]


def test_epsilon_on_top_has_its_view_unit_and_delta(small: LeakSettings) -> None:
    page = visit(small)
    assert "per client, seen by the server, \\u03b4 = 1e-5" in figure(page) or "δ = 1e-5" in figure(page)
    before = figure(page)
    page.selectbox(key="cliff-view:server").select("outsider").run()
    assert "seen by an outsider" in figure(page) and figure(page) != before


def test_what_others_watch_goes_on(small: LeakSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    page = press(visit(small), "cliff-ask")
    monkeypatch.setattr(services, "others_watching", lambda run: 1)
    press(page, "cliff-cancel")
    assert {row.status for row in services.store().runs()} == {"queued"}
    assert "Somebody else asked for 10 of these attacks" in text(page)


def test_in_class_a_visitor_has_one_series_at_a_time(small: LeakSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKLENS_CLASS", "1")
    monkeypatch.setattr(session, "visitor", lambda: "me")
    press(visit(small), "cliff-ask")
    page = press(visit(replace(small, whose="test-1")), "cliff-ask")
    assert series_texts.BUSY[0] in text(page) and len(services.store().runs()) == 10


def test_no_attack_is_a_sentence(small: LeakSettings) -> None:
    assert series_texts.NO_ATTACK in text(visit(replace(small, attacks=("analytic",))))


def test_one_panel_at_a_time(small: LeakSettings) -> None:
    page = visit(small)
    for name, title in (("ladder", series_texts.LADDER), ("test", blind_test_texts.TEST)):
        page.segmented_control(key="leak-more").set_value(name).run()
        assert title in text(page) and series_texts.CLIFF not in text(page)


def test_judged_alone_is_no_point() -> None:
    assert collect_cliff(NOISES, [cell("quiet", [judged([20.0])])], TITLES).points == ()
