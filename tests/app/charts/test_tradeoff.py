"""The trade-off charts and sentences show the numbers of the results, and no axis serves two units."""

from __future__ import annotations

import math
from typing import Any

import pytest

from app import theme
from app.charts import frontiers as frontier_chart
from app.charts import tradeoff as panel
from app.charts.tradeoff import Frontier
from app.screens.tradeoff import cells as tradeoff_cells
from app.screens.tradeoff.cells import TradeoffCell
from app.screens.tradeoff.settings import TradeoffSettings
from app.texts import privacy, product, states, sweep_verdicts
from app.texts import sweep as sweep_texts
from engine.epsilon import Epsilon
from engine.results.summary import PointResult
from engine.specs.run import RunSpec
from engine.specs.sweep import SweepPoint

TITLES = {"udp-fedavg": "UDP-FedAvg", "fedceo": "FedCEO", "ppsgd": "PPSGD", "dp-fedavg": "DP", "fedavg": "FedAvg"}
SPEC = RunSpec()


def cell(
    method: str, noise: float | None, seed: int, accuracy: float, epsilon: float | None = 2.0, **more: Any
) -> TradeoffCell:
    unit = {"fedavg": None, "dp-fedavg": "record"}.get(method, "user")
    terms = (unit or "user", "zero-out", 1e-5, more.pop("accountant", "prv"), "", more.pop("bound", ""))
    seen = Epsilon(epsilon, "outsider", *terms, reason="no reason")
    personal = more.pop("personal", None)
    point = SweepPoint(method, noise, more.pop("step", 0.1), seed, SPEC)
    result = PointResult(point, accuracy, personal, {"outsider": seen}, unit)
    return TradeoffCell(point, "finished", result)


CELLS = (
    cell("udp-fedavg", 1.0, 0, 0.70, 4.0), cell("udp-fedavg", 1.0, 1, 0.72, 5.0),
    cell("udp-fedavg", 0.1, 0, 0.80, 90.0), cell("udp-fedavg", 0.1, 1, 0.81, 80.0),
    cell("fedceo", 1.0, 0, 0.69, 38.0), cell("fedceo", 1.0, 1, 0.73, 38.0),
    cell("fedceo", 0.1, 0, 0.60, None), cell("fedceo", 0.1, 1, 0.61, 400.0),
    cell("fedavg", None, 0, 0.83, None), cell("fedavg", None, 1, 0.85, None),
)  # fmt: skip


def frontier(cells: tuple[TradeoffCell, ...] = CELLS, **settings: Any) -> Frontier:
    seen = TradeoffSettings(**{"eyes": "outsider", **settings})
    (only,) = tradeoff_cells.frontiers(cells, TITLES, seen)
    return only


def lines(figure: Any) -> dict[str, Any]:
    return {trace.name: trace for trace in figure.data if trace.name}


def notes(figure: Any) -> list[str]:
    return [note.text for note in figure.layout.annotations]


# --- what is drawn -----------------------------------------------------------------------------------------


def test_a_line_is_the_mean_over_seeds_and_its_band_reaches_from_worst_to_best() -> None:
    figure = panel.by_noise(frontier(), (50, 90), False)
    line = lines(figure)["UDP-FedAvg"]
    assert list(line.x) == [0.1, 1.0] and list(line.y) == pytest.approx([80.5, 71.0])
    assert line.line.color == theme.colour("udp-fedavg")
    band = figure.data[0]
    assert sorted(band.y) == pytest.approx([70.0, 72.0, 80.0, 81.0]) and band.fill == "toself"
    assert figure.layout.xaxis.type == "log" and list(figure.layout.yaxis.range) == [50, 90]


def test_b44_protection_grows_to_the_right_in_both_charts() -> None:
    noise = panel.by_noise(frontier(), (50, 90), False)
    price = panel.by_epsilon(frontier(), (50, 90), False)
    assert noise.layout.xaxis.range[0] < noise.layout.xaxis.range[1]  # much noise last
    assert price.layout.xaxis.range[0] > price.layout.xaxis.range[1]  # a small ε last
    for figure in (noise, price):
        more = next(note for note in figure.layout.annotations if product.MORE_PROTECTION in note.text)
        less = next(note for note in figure.layout.annotations if product.LESS_PROTECTION in note.text)
        assert (less.x, less.font.color) == (0, theme.LEAKING["light"])
        assert (more.x, more.font.color) == (1, theme.INK["light"])  # teal would mean a proven promise


def test_the_chart_by_epsilon_shows_the_worst_seed_and_leaves_out_infinite_epsilon() -> None:
    users = frontier()
    figure = panel.by_epsilon(users, (50, 90), False)
    assert list(lines(figure)["UDP-FedAvg"].x) == [5.0, 90.0]
    assert list(lines(figure)["FedCEO"].x) == [38.0]  # at noise 0.1 one seed has no finite ε
    assert frontier_chart.missing_epsilon_reasons(users) == [
        "FedCEO at noise 0.1: no ε seen by an outsider, because no reason."
    ]
    assert figure.layout.xaxis.title.text == "ε per client, seen by an outsider"
    assert sweep_texts.VACUOUS in notes(figure)


def test_small_epsilons_are_not_called_vacuous() -> None:
    cells = tuple(cell("udp-fedavg", noise, 0, 0.5, 1 / noise) for noise in (1.0, 2.0))
    texts = notes(panel.by_epsilon(frontier(cells), (0, 100), True))
    assert not {sweep_texts.WEAK, sweep_texts.VACUOUS} & set(texts)


def test_the_baseline_is_a_horizontal_line_with_a_label() -> None:
    figure = panel.by_noise(frontier(), (50, 90), True)
    assert any("no protection, 84.0 %" in text for text in notes(figure))
    assert "FedAvg" not in lines(figure)
    level = next(shape for shape in figure.layout.shapes if shape.type == "line")
    assert level.y0 == pytest.approx(84.0) and level.line.color == theme.baseline(dark=True)


def test_a_single_point_has_a_bar_and_noise_0_has_a_linear_axis() -> None:
    cells = (cell("udp-fedavg", 0.0, 0, 0.6, None), cell("udp-fedavg", 0.0, 1, 0.7, None))
    figure = panel.by_noise(frontier(cells), (50, 90), False)
    assert list(figure.data[0].y) == pytest.approx([60.0, 70.0]) and figure.layout.xaxis.type == "linear"
    assert not frontier(cells).finite
    empty = panel.by_epsilon(frontier(cells), (50, 90), False)
    assert not lines(empty)


def test_the_label_of_a_point_has_its_accuracy_and_all_terms_of_its_epsilon() -> None:
    line = lines(panel.by_epsilon(frontier(), (50, 90), False))["UDP-FedAvg"]
    label = line.text[0].replace("<br>", " ")
    for word in ("UDP-FedAvg, noise 1", "server step 0.1", "71.0 % (70.0 to 72.0 over 2 seeds)", "ε = 5", "per client",
                 "seen by an outsider", "zero-out", "δ = 1e-5", "prv", "worst seed"):  # fmt: skip
        assert word in label
    assert list(line.customdata[0]) == ["udp-fedavg", 1.0]


def at_budget(points: Frontier) -> str:
    by_title = {line.title: line.points for line in points.lines}
    return sweep_verdicts.at_budget(by_title, points.baselines[0].points[0], points.view, points.own)


def test_b46_methods_are_compared_within_a_budget_and_not_at_equal_noise() -> None:
    sentence = at_budget(frontier())
    assert sentence == (
        "With ε at most 10 against an outsider, UDP-FedAvg reaches 71.0 %. Without protection it would be 84.0 %."
    )
    cheap = (*CELLS, cell("fedceo", 2.0, 0, 0.60, 8.0), cell("fedceo", 2.0, 1, 0.61, 9.0))
    assert "UDP-FedAvg reaches 71.0 %, FedCEO 60.5 %: the difference is larger than" in at_budget(frontier(cheap))


def test_no_method_within_the_budget_is_said_with_the_smallest_epsilon() -> None:
    dear = [cell("udp-fedavg", 1.0, seed, 0.5, 42.0) for seed in (0, 1)]
    dear += [cell("fedceo", 1.0, seed, 0.5, 60.0) for seed in (0, 1)]
    words = at_budget(frontier((*dear, *CELLS[-2:])))
    assert words == "No method here keeps ε at most 10 against an outsider: the smallest is 42, with UDP-FedAvg."
    without = [cell("ppsgd", 1.0, seed, 0.7, None) for seed in (0, 1)]
    silent = at_budget(frontier((*CELLS[:2], *without, *CELLS[-2:])))
    assert silent.endswith("PPSGD makes no promise against an outsider.")
    none = at_budget(frontier((cell("ppsgd", 1.0, 0, 0.7, None), *CELLS[-2:])))
    assert none == "No method here makes a promise against an outsider."


def test_two_units_have_two_charts_with_the_same_range_of_accuracy() -> None:
    cells = (*CELLS, cell("dp-fedavg", 1.0, 0, 0.35, 6.0))
    users, records = tradeoff_cells.frontiers(cells, TITLES, TradeoffSettings())
    assert (users.unit, records.unit) == ("user", "record")
    assert [line.title for line in users.lines] == ["UDP-FedAvg", "FedCEO"]
    assert [line.title for line in records.lines] == ["DP"] and records.baselines == users.baselines
    assert panel.accuracy_range((users, records)) == (30.0, 90.0)
    assert "per record" in panel.by_epsilon(records, (30, 90), False).layout.xaxis.title.text


def test_every_line_names_whose_model_it_shows() -> None:
    cells = (
        cell("ppsgd", 1.0, 0, 0.5, personal=0.8, step=0.1), cell("ppsgd", 1.0, 0, 0.4, personal=0.9, step=1.0),
        cell("udp-fedavg", 1.0, 0, 0.6),
    )  # fmt: skip
    assert [(line.title, line.points[0].step) for line in frontier(cells).lines] == [
        ("PPSGD", 0.1),
        ("UDP-FedAvg", 0.1),
    ]
    own = frontier(cells, whose="personal")
    assert [line.title for line in own.lines] == ["PPSGD · own models", "UDP-FedAvg · shared model"]
    traces = lines(panel.by_noise(own, (0, 100), False))
    assert list(traces["PPSGD · own models"].y) == [90.0] and list(traces["UDP-FedAvg · shared model"].y) == [60.0]


def test_two_versions_of_a_method_share_its_colour_and_differ_in_dash_and_symbol() -> None:
    cells = list[TradeoffCell]()
    for label in ("FedCEO ϑ=1", "FedCEO ϑ>1"):
        for noise in (1.0, 2.0):
            point = SweepPoint("fedceo", noise, 0.1, 0, SPEC, label)
            cells.append(TradeoffCell(point, "finished", PointResult(point, 0.5, None, {}, "user")))
    first, second = lines(panel.by_noise(frontier(tuple(cells)), (0, 100), False)).values()
    assert [first.name, second.name] == ["FedCEO ϑ=1", "FedCEO ϑ>1"] and first.line.color == second.line.color
    assert first.line.dash != second.line.dash and first.marker.symbol != second.marker.symbol


@pytest.mark.parametrize(
    ("low", "high", "ticks"), [(0.5, 20, [0.5, 1, 2, 5, 10, 20]), (0.02, 5000, [0.1, 1, 10, 100, 1000])]
)
def test_ticks_of_a_log_axis(low: float, high: float, ticks: list[float]) -> None:
    assert panel.decades(low, high) == ticks
    assert all(low <= tick <= high for tick in panel.decades(low, high))


def test_an_epsilon_of_0_is_reported_next_to_the_log_axis() -> None:
    cells = (cell("udp-fedavg", 1.0, 0, 0.5, 0.0), cell("udp-fedavg", 2.0, 0, 0.5, 1.0))
    sentences = frontier_chart.missing_epsilon_reasons(frontier(cells))
    assert [sentence.split(", ")[0] for sentence in sentences] == ["UDP-FedAvg at noise 1: ε = 0 seen by an outsider"]
    line = lines(panel.by_epsilon(frontier(cells), (0, 100), False))["UDP-FedAvg"]
    assert all(math.isfinite(x) for x in line.x)


# --- in words ----------------------------------------------------------------------------------------------


def test_the_charts_in_words() -> None:
    users = frontier()
    assert "UDP-FedAvg: noise 0.1 80.5 %, noise 1 71.0 %" in panel.describe_by_noise(users)
    assert "FedAvg: no noise 84.0 %" in panel.describe_by_noise(users)
    words = panel.describe_by_epsilon(users)
    assert "per client, seen by an outsider" in words and "UDP-FedAvg: ε 5 71.0 %, ε 90 80.5 %" in words
    assert sweep_texts.NONE_SHOWN in panel.describe_by_epsilon(frontier(without_epsilon()))


def without_epsilon() -> tuple[TradeoffCell, ...]:
    return tuple(cell("udp-fedavg", noise, 0, 0.5, None) for noise in (1.0, 2.0))


def verdict(cells: tuple[TradeoffCell, ...], **settings: Any) -> str:
    points = frontier(cells, **settings)
    baseline = points.baselines[0].points[0] if points.baselines else None
    by_title = {line.title: line.points for line in points.lines}
    return sweep_verdicts.at_noise(by_title, baseline, points.view, points.own)


def test_the_two_best_methods_are_compared_with_the_difference_between_seeds() -> None:
    text = verdict(CELLS)
    assert text.startswith(
        "At noise 1, UDP-FedAvg reaches 71.0 %, FedCEO 71.0 %: the difference is not larger than that"
    )
    assert "Without protection it would be 84.0 %." in text
    assert "ε 5 for UDP-FedAvg; ε 38 for FedCEO" in text and privacy.AGAINST["outsider"] in text
    assert "Ahead by more than seeds differ: UDP-FedAvg at 1 of 2 noises." in text


def test_a_clear_difference_is_reported() -> None:
    cells = (
        cell("udp-fedavg", 1.0, 0, 0.5), cell("udp-fedavg", 1.0, 1, 0.5 + 0.01),
        cell("fedceo", 1.0, 0, 0.6), cell("fedceo", 1.0, 1, 0.6 + 0.01),
    )  # fmt: skip
    assert "At noise 1, FedCEO reaches 60.5 %, UDP-FedAvg 50.5 %: the difference is larger" in verdict(cells)
    assert "ε" not in verdict(cells)  # both have the same ε


def test_with_one_seed_no_difference_is_claimed() -> None:
    cells = (
        cell("udp-fedavg", 1.0, 0, 0.5), cell("udp-fedavg", 2.0, 0, 0.5),
        cell("fedceo", 1.0, 0, 0.6), cell("fedceo", 2.0, 0, 0.6),
    )  # fmt: skip
    assert "with one seed no one can tell" in verdict(cells) and "Ahead" not in verdict(cells)


def test_a_single_method_has_no_comparison() -> None:
    assert verdict((cell("udp-fedavg", 1.0, 0, 0.5),)) == ""


def test_the_note_explains_bands_and_server_steps() -> None:
    summaries = frontier().points
    assert "worst seed to the best" in sweep_texts.bands(summaries, False) and "test data" not in sweep_texts.bands(
        summaries, False
    )
    assert "uses test data, and no ε counts it" in sweep_texts.bands(summaries, True)
    tried = (cell("udp-fedavg", 1.0, 0, 0.5), cell("udp-fedavg", 1.0, 0, 0.5, step=1.0))
    assert tradeoff_cells.several_steps(tried) and not tradeoff_cells.several_steps(CELLS)


# --- while runs are unfinished -----------------------------------------------------------------------------


def test_methods_are_compared_on_their_common_seeds() -> None:
    cells = (
        cell("udp-fedavg", 1.0, 0, 0.50), cell("udp-fedavg", 1.0, 1, 0.51), cell("udp-fedavg", 1.0, 2, 0.90),
        cell("fedceo", 1.0, 0, 0.60), cell("fedceo", 1.0, 1, 0.61),
        cell("fedavg", None, 0, 0.80, None), cell("fedavg", None, 2, 0.99, None),
    )  # fmt: skip
    text = verdict(cells)
    assert text.startswith(
        "At noise 1, on the 2 seeds that all have, FedCEO reaches 60.5 %, UDP-FedAvg 50.5 %: the difference is larger"
    )
    assert "Without protection it would be 80.0 %." in text
    text = verdict((*cells[:3], cells[3]))
    assert "on the one seed that all have, FedCEO reaches 60.0 %" in text and "with one seed no one can tell" in text
    assert verdict((cells[0], cells[4])) == ""  # no common seed


# --- the terms of ε ----------------------------------------------------------------------------------------


def terms_of(frontier: Frontier) -> list[tuple[str, float | None, Epsilon]]:
    """Every point of a chart with its ε."""
    rows = []
    for line in frontier.lines:
        for summary in line.points:
            rows.append((line.title, summary.noise, summary.results[0].epsilons["outsider"]))
    return rows


def test_each_method_is_listed_with_its_own_terms() -> None:
    rdp: dict[str, Any] = {"accountant": "rdp", "bound": "upper bound"}
    cells = (
        cell("udp-fedavg", 1.0, 0, 0.5), cell("udp-fedavg", 2.0, 0, 0.5), cell("ppsgd", 1.0, 0, 0.5, **rdp),
        cell("fedceo", 1.0, 0, 0.5), cell("fedceo", 2.0, 0, 0.5, **rdp),
    )  # fmt: skip
    rows = terms_of(frontier(cells))
    same = "per client, seen by an outsider, zero-out, δ = 1e-5"
    assert sweep_texts.grouped_terms(rows) == [
        f"UDP-FedAvg, FedCEO at noise 1: ε {same}, prv, worst client.",
        f"PPSGD, FedCEO at noise 2: ε {same}, rdp, worst client, upper bound.",
    ]
    assert sweep_texts.grouped_terms(rows[:2]) == [f"ε {same}, prv, worst client."]


def test_two_accountants_of_one_guarantee_share_a_sentence() -> None:
    cells = (cell("udp-fedavg", 1.0, 0, 0.5), cell("ppsgd", 0.2, 0, 0.5, accountant="rdp"))
    rows = terms_of(frontier(cells))
    [sentence] = sweep_texts.grouped_terms(rows)
    assert sentence == "ε per client, seen by an outsider, zero-out, δ = 1e-5, prv or rdp, worst client."


def test_the_descriptions_of_two_units_differ() -> None:
    cells = (cell("udp-fedavg", 1.0, 0, 0.5), cell("dp-fedavg", 1.0, 0, 0.5))
    users, records = tradeoff_cells.frontiers(cells, TITLES, TradeoffSettings())
    assert "per client" in panel.describe_by_noise(users) and "per record" not in panel.describe_by_noise(users)
    assert "per record" in panel.describe_by_noise(records) and "per client" not in panel.describe_by_noise(records)


def test_a_method_without_a_shared_last_layer_has_no_shared_model() -> None:
    cells = (cell("ppsgd", 1.0, 0, 0.5, personal=0.7), cell("udp-fedavg", 1.0, 0, 0.5))
    for whose, title in (("global", "PPSGD · heads averaged"), ("personal", "PPSGD · own models")):
        (points,) = tradeoff_cells.frontiers(cells, TITLES, TradeoffSettings().with_(whose=whose), ("ppsgd",))
        assert points.lines[0].title == title
    assert frontier(cells).lines[0].title == "PPSGD"


def test_sentences_have_a_singular_and_a_plural() -> None:
    assert sweep_texts.stored(1, "2026-01-02") == "1 of these runs comes from a stored example, run on 2026-01-02."
    assert sweep_texts.stored(12, "2026-01-02").startswith("12 of these runs come from a stored example")
    assert states.shared(1, "runs") == "Someone else requested 1 of these runs: it continues."
    assert states.shared(3, "runs") == "Someone else requested 3 of these runs: they continue."
