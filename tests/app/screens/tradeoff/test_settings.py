"""The settings of the Trade-off screen: their points, their link and their refusals."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from app.screens.tradeoff import sweep_points
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import links, run_settings
from app.texts import sweep as sweep_texts
from engine.cli.arguments import read_spec
from engine.cli.main import parser
from engine.cli.sweep import read_grid
from engine.cli.table import chosen
from engine.errors import BadInput
from engine.examples import start, sweep
from engine.specs.run import RunSpec
from engine.specs.sweep import points as points_of


def changed(**changes: Any) -> TradeoffSettings:
    return TradeoffSettings.default().changed(**changes)


def refusal(settings: TradeoffSettings) -> str:
    with pytest.raises(BadInput) as error:
        sweep_points.all_points(settings)
    return str(error.value)


# --- points ------------------------------------------------------------------------------------------------


def test_a_first_visit_has_the_points_of_the_stored_frontier() -> None:
    ids = {point.id for point in sweep_points.all_points(TradeoffSettings.default())}
    assert ids == {point.id for point in sweep.requested_points()}


def test_the_baseline_has_no_noise_and_can_be_left_out() -> None:
    settings = changed(methods=("udp-fedavg",), noises="1", steps="", seeds=2)
    points = sweep_points.all_points(settings)
    assert [(point.method, point.noise, point.seed) for point in points] == [
        ("udp-fedavg", 1.0, 0), ("fedavg", None, 0), ("udp-fedavg", 1.0, 1), ("fedavg", None, 1),
    ]  # fmt: skip
    assert len(sweep_points.all_points(settings.with_(plain=False))) == 2


def test_fields_of_one_method_apply_to_that_method_only() -> None:
    of = {"fedceo": {"every": 3}}
    settings = changed(methods=("udp-fedavg", "fedceo"), noises="1", steps="", seeds=1, of=of)
    methods = {point.method: point.spec.method for point in sweep_points.all_points(settings)}
    assert getattr(methods["fedceo"], "every", None) == 3
    assert sweep_points.method_fields(changed(of=of), "fedceo")["every"] == 3
    assert not {"noise", "server-step", "name"} & set(sweep_points.method_fields(changed(), "fedceo"))


@pytest.mark.parametrize("text", ["0.5, 1,2", "0.5 1 2", "0.5;1;;2", " 0.5,1.0,2,1 "])
def test_numbers_have_any_separator(text: str) -> None:
    assert sweep_points.numbers("noises", text) == (0.5, 1.0, 2.0)


@pytest.mark.parametrize(
    ("changes", "message", "field"),
    [
        ({"noises": "0.5, x"}, "sweep: noises: must be numbers with a comma and a space between, got x", "noises"),
        ({"noises": " "}, "sweep: noises: at least one is needed", "noises"),
        ({"noises": "-1"}, "udp-fedavg: noise: must be a number between 0 and 1000, got -1", "noises"),
        ({"steps": "0"}, "server-step: must be a number above 0", "steps"),
        ({"steps": "fast"}, "sweep: server-steps: must be numbers", "steps"),
        ({"methods": ()}, "sweep: methods: at least one is needed", "methods"),
        ({"of": {"fedceo": {"every": 0}}}, "fedceo: every: must be", "of"),
        ({"noises": ", ".join(map(str, range(1, 99))), "seeds": 10}, "sweep: points: must be at most 500", "points"),
        (
            {"run": {**TradeoffSettings.default_run, "sampled": 200}},
            "run: sampled: must be at most the 100 clients",
            "sampled",
        ),
    ],
)
def test_a_refusal_is_shown_at_its_field(changes: dict[str, Any], message: str, field: str) -> None:
    text = refusal(changed(**changes))
    assert message in text and sweep_points.field_of_refusal(text) == field


def test_a_method_without_noise_does_not_decide_the_sampling() -> None:
    canonical = RunSpec(method="fedavg", rounds=3).canonical()
    assert run_settings.flat(canonical)["sampling"] == "fixed"
    settings, notes = TradeoffSettings.read_link(links.tradeoff_link_of_run(canonical), changed())
    assert not notes
    specs = [point.spec for point in sweep_points.all_points(settings)]
    assert {(spec.sampling, spec.rounds) for spec in specs} == {("poisson", 3)}


# --- links -------------------------------------------------------------------------------------------------


def test_a_link_holds_everything() -> None:
    settings = changed(
        methods=("dp-fedavg", "fedceo"), noises="0.5, 3", steps="", seeds=7, plain=False, eyes="server",
        whose="personal", of={"fedceo": {"every": 3, "unsampled-clients": "mean"}},
        run={**TradeoffSettings.default_run, "rounds": 9, "dataset": "mnist"},
    )  # fmt: skip
    default = TradeoffSettings.default()
    assert TradeoffSettings.read_link(settings.link(), default) == (settings, [])
    assert TradeoffSettings.read_link(default.link(), settings) == (default, [])


def test_a_link_can_hold_the_table_of_a_paper() -> None:
    settings = changed(table="1/cifar10/quick/released", seeds=2, eyes="server")
    assert TradeoffSettings.read_link(settings.link(), TradeoffSettings.default()) == (settings, [])
    assert sweep_points.command(settings) == (
        "python3 -m engine table 1 --rows cifar10 --scale quick --reading released --seeds 2 --view server"
    )
    arguments = parser().parse_args(shlex.split(sweep_points.command(settings))[3:])
    expected = [cell.point(seed).id for seed in (0, 1) for cell in chosen(arguments)]
    assert [point.id for point in sweep_points.all_points(settings)] == expected


@pytest.mark.parametrize(
    "table",
    ["1", "1/cifar10/huge/written", "9/cifar10/quick/written", "1/none/quick/written", "1/cifar10/quick/x"],
)
def test_an_unknown_table_in_a_link_is_left_out_with_a_note(table: str) -> None:
    settings, notes = TradeoffSettings.read_link({"noises": "1", "table": table}, TradeoffSettings.default())
    assert settings.table == "" and len(notes) == 1


def test_invalid_values_in_a_link_are_left_out_with_a_note() -> None:
    params = {
        "methods": "fedceo,none,fedavg", "noises": "1", "seeds": "99", "plain": "maybe", "eyes": "god",
        "whose": "mine", "of": "fedceo.every=5;fedceo.noise=3;none.x=1;fedceo.every=lots", "rounds": "many",
    }  # fmt: skip
    settings, notes = TradeoffSettings.read_link(params, TradeoffSettings.default())
    assert settings == changed(methods=("fedceo",), noises="1", of={"fedceo": {"every": 5}})
    for word in ("none", "fedavg", "99", "maybe", "god", "mine", "fedceo.noise=3", "none.x=1", "every=lots", "many"):
        assert any(word in note for note in notes), word


def test_a_link_from_try_changes_only_the_run() -> None:
    start = changed(noises="3, 4", seeds=2, of={"fedceo": {"every": 3}, "ppsgd": {"head-epochs": 2}})
    spec = RunSpec(method={"name": "fedceo", "every": 7}, rounds=5, sampling="poisson")
    settings, notes = TradeoffSettings.read_link(links.tradeoff_link_of_run(spec.canonical()), start)
    assert not notes and (settings.noises, settings.seeds, settings.methods) == ("3, 4", 2, start.methods)
    assert settings.run["rounds"] == 5 and settings.of == {"ppsgd": {"head-epochs": 2}}
    assert sweep_points.method_fields(settings, "fedceo")["every"] == 7


def test_a_method_outside_the_family_replaces_the_others() -> None:
    spec = RunSpec(method="dp-fedavg", target_epsilon=8.0, view="server")
    settings, _ = TradeoffSettings.read_link(links.tradeoff_link_of_run(spec.canonical()), changed())
    assert settings.methods == ("dp-fedavg",)
    noises = {point.noise for point in sweep_points.all_points(settings)}
    assert noises == {0.5, 1.0, 2.0, 4.0, None}  # the target ε of the run is not used


def test_a_point_links_to_its_runs_in_try() -> None:
    points = sweep_points.all_points(changed(methods=("fedceo",), noises="1", steps="", plain=False))
    canonical = points[0].spec.canonical()
    ids = [point.id for point in points]
    link = sweep_points.point_link(canonical, ids)
    run, notes = run_settings.read_link(link, {})
    assert not notes and run_settings.spec_of(run).id == ids[0]
    assert link["seeds"] == "3"
    assert "seeds" not in sweep_points.point_link(canonical, ids[:1])


def test_the_command_runs_the_same_points() -> None:
    settings = changed(
        methods=("ppsgd", "fedceo"), seeds=2, of={"ppsgd": {"head-epochs": 0, "noise-split": "paper"}},
        run={**TradeoffSettings.default_run, "seed": 4, "method": "fedceo",
              "method.smoothing": 0.5, "method.clip": 2.0},
    )  # fmt: skip
    words = shlex.split(sweep_points.command(settings))
    assert words[:3] == ["python3", "-m", "engine"]
    arguments = parser().parse_args(words[3:])
    arguments.method = arguments.method or arguments.methods.split(",")[0]
    spec = read_spec(arguments)
    command_points = points_of(spec, read_grid(arguments, spec))
    assert [point.id for point in command_points] == [point.id for point in sweep_points.all_points(settings)]


# --- the run -----------------------------------------------------------------------------------------------


def test_varied_values_do_not_refuse_the_run() -> None:
    params = {"noises": "1", "steps": "0.1", "method": "udp-fedavg", "method.noise": "-1", "method.server-step": "-1"}
    settings, _ = TradeoffSettings.read_link(params, TradeoffSettings.default())
    assert sweep_points.all_points(settings) and not sweep_points.run_is_refused(settings)
    assert sweep_points.run_is_refused(changed(run={**TradeoffSettings.default().run, "method.clip": -1.0}))
    assert not sweep_points.run_is_refused(changed(of={"fedceo": {"clip": -1.0}}))


def test_the_server_step_of_the_run_is_used_if_none_is_given() -> None:
    run = {**TradeoffSettings.default().run, "method.server-step": 0.7}
    points = sweep_points.all_points(changed(run=run, steps="", plain=False))
    assert {point.step for point in points} == {0.7}


def test_the_summary_of_the_run_has_every_changed_field() -> None:
    assert sweep_points.changed_fields(TradeoffSettings.default().run) == {}
    fields = {
        "honest-share": 0.5, "momentum": 0.9, "weight-decay": 0.01, "partition": "dirichlet", "partition.alpha": 0.07,
    }  # fmt: skip
    run = changed(run={**TradeoffSettings.default().run, **fields}).run
    summary = sweep_texts.rest(run, "by Dirichlet", sweep_points.changed_fields(run))
    for words in ("honest share 0.5", "momentum 0.9", "weight decay 0.01", "partition alpha 0.07"):
        assert words in summary


def test_a_link_of_the_stored_example_of_try_keeps_the_stored_sweep() -> None:
    example, finished = start.start_example(), sweep.sweep_example()
    assert example and finished
    link = links.tradeoff_link_of_run(example.stops[-1].run.spec)
    settings, notes = TradeoffSettings.read_link(link, TradeoffSettings.default())
    stored = {result.point.id for result in finished.results}
    assert not notes and {point.id for point in sweep_points.all_points(settings)} == stored
