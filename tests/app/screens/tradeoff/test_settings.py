"""The question of the Trade-off screen: its points, its link, and what it says of what cannot be asked."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest

from app.screens.tradeoff import settings as tradeoff_settings
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import links, run_settings
from app.texts import sweep as sweep_texts
from engine.cli.arguments import read_spec
from engine.cli.main import parser
from engine.cli.sweep import read_grid
from engine.cli.table import chosen
from engine.errors import BadInput
from engine.examples import sweep
from engine.specs.run import RunSpec
from engine.specs.sweep import points


def asked(**changes: Any) -> TradeoffSettings:
    return tradeoff_settings.settled(replace(tradeoff_settings.usual(), **changes))


def refused(question: TradeoffSettings) -> str:
    with pytest.raises(BadInput) as told:
        tradeoff_settings.laid_out(question)
    return str(told.value)


# --- points ------------------------------------------------------------------------------------------------


def test_a_first_visit_asks_what_ships() -> None:
    assert {one.id for one in tradeoff_settings.laid_out(tradeoff_settings.usual())} == {
        one.id for one in sweep.questions()
    }


def test_the_reference_has_neither_noise_nor_protection_and_may_be_left_out() -> None:
    found = tradeoff_settings.laid_out(asked(methods=("udp-fedavg",), noises="1", steps="", seeds=2))
    assert [(one.method, one.noise, one.seed) for one in found] == [
        ("udp-fedavg", 1.0, 0), ("fedavg", None, 0), ("udp-fedavg", 1.0, 1), ("fedavg", None, 1),
    ]  # fmt: skip
    assert (
        len(tradeoff_settings.laid_out(asked(methods=("udp-fedavg",), noises="1", steps="", seeds=2, plain=False))) == 2
    )


def test_fields_of_one_method_reach_it_alone() -> None:
    of = {"fedceo": {"every": 3}}
    found = tradeoff_settings.laid_out(asked(methods=("udp-fedavg", "fedceo"), noises="1", steps="", seeds=1, of=of))
    assert {one.method: getattr(one.spec.method, "every", None) for one in found}["fedceo"] == 3
    assert tradeoff_settings.in_force(asked(of=of), "fedceo")["every"] == 3
    assert not {"noise", "server-step", "name"} & set(tradeoff_settings.in_force(asked(), "fedceo"))


@pytest.mark.parametrize("text", ["0.5, 1,2", "0.5 1 2", "0.5;1;;2", " 0.5,1.0,2,1 "])
def test_numbers_as_people_type_them(text: str) -> None:
    assert tradeoff_settings.numbers("noises", text) == (0.5, 1.0, 2.0)


@pytest.mark.parametrize(
    ("changes", "said", "field"),
    [
        ({"noises": "0.5, x"}, "sweep: noises: must be numbers with commas between, got x", "noises"),
        ({"noises": " "}, "sweep: noises: at least one is needed", "noises"),
        ({"noises": "-1"}, "udp-fedavg: noise: must be a number between 0 and 1000, got -1", "noises"),
        ({"steps": "0"}, "server-step: must be a number above 0", "steps"),
        ({"steps": "fast"}, "sweep: server-steps: must be numbers", "steps"),
        ({"methods": ()}, "sweep: methods: at least one is needed", "methods"),
        ({"of": {"fedceo": {"every": 0}}}, "fedceo: every: must be", "of"),
        ({"noises": ",".join(map(str, range(1, 99))), "seeds": 10}, "sweep: points: must be at most 500", "points"),
        (
            {"run": {**tradeoff_settings.RUN, "sampled": 200}},
            "run: sampled: must be at most the 100 clients",
            "sampled",
        ),
    ],
)
def test_a_refusal_knows_its_field(changes: dict[str, Any], said: str, field: str) -> None:
    told = refused(asked(**changes))
    assert said in told and tradeoff_settings.blamed(told) == field


def test_a_method_that_protects_nobody_does_not_decide_how_clients_are_drawn() -> None:
    run = run_settings.flat(RunSpec(method="fedavg", rounds=3).canonical())
    assert run["sampling"] == "fixed"
    found, told = tradeoff_settings.read_link(
        links.tradeoff_link_of_run(RunSpec(method="fedavg", rounds=3).canonical()), asked()
    )
    assert not told
    assert {(one.spec.sampling, one.spec.rounds) for one in tradeoff_settings.laid_out(found)} == {("poisson", 3)}


# --- links -------------------------------------------------------------------------------------------------


def test_a_link_holds_everything() -> None:
    whole = asked(
        methods=("dp-fedavg", "fedceo"), noises="0.5, 3", steps="", seeds=7, plain=False, eyes="server",
        whose="personal", of={"fedceo": {"every": 3, "unsampled-clients": "mean"}},
        run={**tradeoff_settings.RUN, "rounds": 9, "dataset": "mnist"},
    )  # fmt: skip
    assert tradeoff_settings.read_link(tradeoff_settings.link(whole), tradeoff_settings.usual()) == (whole, [])
    assert tradeoff_settings.read_link(tradeoff_settings.link(tradeoff_settings.usual()), whole) == (
        tradeoff_settings.usual(),
        [],
    )


def test_a_link_may_hold_a_table_of_a_paper() -> None:
    whole = asked(table="1/cifar10/quick/released", seeds=2, eyes="server")
    assert tradeoff_settings.read_link(tradeoff_settings.link(whole), tradeoff_settings.usual()) == (whole, [])
    assert tradeoff_settings.command(whole) == (
        "python3 -m engine table 1 --rows cifar10 --scale quick --reading released --seeds 2 --view server"
    )
    told = parser().parse_args(shlex.split(tradeoff_settings.command(whole))[3:])
    cells = chosen(told)
    assert [one.id for one in tradeoff_settings.laid_out(whole)] == [
        cell.point(seed).id for seed in (0, 1) for cell in cells
    ]
    for nonsense in (
        "1",
        "1/cifar10/huge/written",
        "9/cifar10/quick/written",
        "1/none/quick/written",
        "1/cifar10/quick/x",
    ):
        found, said = tradeoff_settings.read_link({"noises": "1", "table": nonsense}, tradeoff_settings.usual())
        assert found.table == "" and len(said) == 1


def test_what_cannot_be_meant_is_left_out_with_a_sentence() -> None:
    params = {
        "methods": "fedceo,none,fedavg", "noises": "1", "seeds": "99", "plain": "maybe", "eyes": "god",
        "whose": "mine", "of": "fedceo.every=5;fedceo.noise=3;none.x=1;fedceo.every=lots", "rounds": "many",
    }  # fmt: skip
    found, told = tradeoff_settings.read_link(params, tradeoff_settings.usual())
    assert found == asked(methods=("fedceo",), noises="1", of={"fedceo": {"every": 5}})
    for word in ("none", "fedavg", "99", "maybe", "god", "mine", "fedceo.noise=3", "none.x=1", "every=lots", "many"):
        assert any(word in said for said in told), word


def test_from_the_lab_only_the_run_changes() -> None:
    mine = asked(noises="3, 4", seeds=2, of={"fedceo": {"every": 3}, "ppsgd": {"head-epochs": 2}})
    spec = RunSpec(method={"name": "fedceo", "every": 7}, rounds=5, sampling="poisson")
    found, told = tradeoff_settings.read_link(links.tradeoff_link_of_run(spec.canonical()), mine)
    assert not told and (found.noises, found.seeds, found.methods) == ("3, 4", 2, mine.methods)
    assert found.run["rounds"] == 5 and found.of == {"ppsgd": {"head-epochs": 2}}
    assert tradeoff_settings.in_force(found, "fedceo")["every"] == 7


def test_a_method_outside_the_family_is_what_is_asked_about() -> None:
    spec = RunSpec(method="dp-fedavg", target_epsilon=8.0, view="server")
    found, _ = tradeoff_settings.read_link(links.tradeoff_link_of_run(spec.canonical()), asked())
    assert found.methods == ("dp-fedavg",)
    assert {one.noise for one in tradeoff_settings.laid_out(found)} == {
        0.25,
        0.5,
        1.0,
        2.0,
        None,
    }  # the target has no say here


def test_a_spot_leads_to_its_runs_in_the_lab() -> None:
    found = tradeoff_settings.laid_out(asked(methods=("fedceo",), noises="1", steps="", plain=False))
    link = tradeoff_settings.of_spot(found[0].spec.canonical(), [one.id for one in found])
    settings, told = run_settings.read_link(link, {})
    assert not told and run_settings.spec_of(settings).id == found[0].id
    assert link["seeds"] == "3" and link["run"] == ",".join(one.id for one in found)
    assert "seeds" not in tradeoff_settings.of_spot(found[0].spec.canonical(), [found[0].id])


def test_the_command_asks_the_same() -> None:
    mine = asked(
        methods=("ppsgd", "fedceo"), seeds=2, of={"ppsgd": {"head-epochs": 0, "noise-split": "paper"}},
        run={**tradeoff_settings.RUN, "seed": 4, "method": "fedceo", "method.smoothing": 0.5, "method.clip": 2.0},
    )  # fmt: skip
    words = shlex.split(tradeoff_settings.command(mine))
    assert words[:3] == ["python3", "-m", "engine"]
    told = parser().parse_args(words[3:])
    told.method = told.method or told.methods.split(",")[0]
    spec = read_spec(told)
    assert [one.id for one in points(spec, read_grid(told, spec))] == [
        one.id for one in tradeoff_settings.laid_out(mine)
    ]


# --- the run -----------------------------------------------------------------------------------------------


def test_what_is_varied_has_no_say_in_whether_the_run_can_be_asked() -> None:
    params = {"noises": "1", "steps": "0.1", "method": "udp-fedavg", "method.noise": "-1", "method.server-step": "-1"}
    found, _ = tradeoff_settings.read_link(params, tradeoff_settings.usual())
    assert tradeoff_settings.laid_out(found) and not tradeoff_settings.of_the_run(found)
    assert tradeoff_settings.of_the_run(asked(run={**tradeoff_settings.usual().run, "method.clip": -1.0}))
    assert not tradeoff_settings.of_the_run(asked(of={"fedceo": {"clip": -1.0}}))


def test_a_step_of_the_run_holds_where_none_is_varied() -> None:
    run = {**tradeoff_settings.usual().run, "method.server-step": 0.7}
    assert {one.step for one in tradeoff_settings.laid_out(asked(run=run, steps="", plain=False))} == {0.7}


def test_the_rest_of_the_run_holds_all_that_is_not_as_usual() -> None:
    assert tradeoff_settings.unusual(tradeoff_settings.usual().run) == {}
    odd = {
        "honest-share": 0.5, "momentum": 0.9, "weight-decay": 0.01, "partition": "dirichlet", "partition.alpha": 0.07,
    }  # fmt: skip
    run = asked(run={**tradeoff_settings.usual().run, **odd}).run
    said = sweep_texts.rest(run, "by Dirichlet", tradeoff_settings.unusual(run))
    for words in ("honest share 0.5", "momentum 0.9", "weight decay 0.01", "partition alpha 0.07"):
        assert words in said
