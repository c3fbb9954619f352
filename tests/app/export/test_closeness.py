"""Every exported page compares itself with another system, and says that it proves nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from app.export import gather, grid_content, page
from app.export.closeness import content, section, texts
from app.export.served import served_export
from engine.examples import attacks as attack_examples
from engine.examples.closeness import CHOICES, RiskMove
from engine.examples.literature import CitedMove
from engine.jobs.batches import Batch, BatchMember
from engine.jobs.store import Store
from engine.specs import attack_grid
from engine.specs.run import RunSpec
from tests.app.export.makers import RUN, Node, attack_on, parsed, stored_attack, stored_run

PAPER = CitedMove("less", "It is harder", "A paper, 2022")


@pytest.fixture
def run() -> RunSpec:
    return RunSpec(**RUN)


def closeness(text: str) -> Node:
    (node,) = [each for each in parsed(text).all("section") if each.attributes.get("id") == "closeness"]
    return node


def data(text: str) -> Mapping[str, Any]:
    (node,) = [script for script in parsed(text).all("script") if script.attributes.get("id") == "stored"]
    return dict(json.loads(node.raw()))


def chosen(node: Node) -> dict[str, str]:
    """The value of each select when the page opens."""
    values = {}
    for select in node.all("select"):
        selected = [option for option in select.all("option") if "selected" in option.attributes]
        assert len(selected) == 1
        values[str(select.attributes["name"])] = str(selected[0].attributes["value"])
    return values


@pytest.mark.slow
def test_every_kind_of_page_has_the_sentence(store: Store, run: RunSpec) -> None:
    stored_run(store, run)
    attack = attack_on(run)
    stored_attack(store, attack, [20.0])
    batch = Batch("leak grid", "", (BatchMember(attack.id, attack.canonical()),))
    store.batches.request(batch)
    kinds = {"run": run.id, "attack": attack.id, "batch": batch.id, "grid": attack.id, "sweep": run.id}
    for kind, id in {**kinds, "example": "noise-1"}.items():
        exported = served_export(store, kind, id, "")
        assert exported.status == 200, exported.text
        text = closeness(exported.text).text
        assert "A simulation on public pictures." in text, kind
        assert "It did not test: " in text and "It is not evidence that your system is safe." in text
        tested = "It tested no attack." if kind in ("sweep", "example") else "this 1 attack: Most probable picture."
        assert tested in text, kind


@pytest.mark.slow
def test_the_sentence_names_what_ran_and_what_did_not(store: Store, run: RunSpec) -> None:
    stored_run(store, run)
    for name in ("map", "inverting-gradients"):
        stored_attack(store, attack_on(run, attack=name), [20.0])
    tested, _, rest = closeness(page(store, run.id)).text.partition("It did not test: ")
    assert "these 2 attacks: Most probable picture, Inverting Gradients." in tested
    for title in ("Robbing the Fed", "Loss threshold", texts.NO_MEMBERSHIP, "sentences", "real private data"):
        assert title in rest, title
    assert "Inverting Gradients" not in rest.partition("It is not evidence")[0]


@pytest.mark.slow
def test_a_page_with_a_part_of_the_results_speaks_of_these_alone(store: Store, run: RunSpec) -> None:
    every = len(attack_examples.attack_examples())
    text = closeness(served_export(store, "example", attack_examples.NAME, "").text).text
    assert every > grid_content.MOST
    assert f"This page shows {grid_content.MOST} of {every} results of attacks." in text
    assert "The results that it shows did not test: " in text and "It did not test: " not in text


@pytest.mark.slow
def test_a_run_with_more_attacks_than_its_page_has_speaks_of_these_alone(
    store: Store, run: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_run(store, run)
    for name in ("map", "inverting-gradients"):
        stored_attack(store, attack_on(run, attack=name), [20.0])
    monkeypatch.setattr(gather, "MOST", 1)
    assert "This page shows 1 of 2 results of attacks." in closeness(page(store, run.id)).text


def test_an_unfinished_attack_was_not_tested(store: Store, run: RunSpec) -> None:
    ended, waiting = attack_on(run), attack_on(run, attack="inverting-gradients")
    stored_attack(store, ended, [20.0])
    store.submit(waiting.id, waiting.canonical(), {})
    exported = served_export(store, "grid", f"{waiting.id},{ended.id}", "")
    tested, _, rest = closeness(exported.text).text.partition("It did not test: ")
    assert "this 1 attack: Most probable picture." in tested and "Inverting Gradients" in rest


def test_a_page_opens_with_the_values_of_a_run_with_noise(store: Store, run: RunSpec) -> None:
    baseline = attack_grid.baseline_of(run)
    assert baseline is not None
    specs = [attack_on(baseline), attack_on(run)]
    for spec in specs:
        stored_attack(store, spec, [20.0])
    for ids in (specs, specs[::-1]):
        exported = served_export(store, "grid", ",".join(spec.id for spec in ids), "")
        assert chosen(closeness(exported.text))["noise"] == "shared"


def test_the_values_of_the_result_are_chosen_and_in_a_table(store: Store, run: RunSpec) -> None:
    stored_run(store, run)
    stored_attack(store, attack_on(run, view="aggregate"), [20.0])
    node = closeness(page(store, run.id))
    values = chosen(node)
    assert list(values) == list(CHOICES)
    assert (values["pictures"], values["aggregation"], values["noise"]) == ("one", "yes", "shared")
    (table,) = node.all("table")
    for name, value in values.items():
        assert texts.CHOICES[name] in table.text and texts.VALUES[name][value] in table.text


def test_a_page_without_attacks_has_the_values_of_its_ordinary_upload(store: Store, run: RunSpec) -> None:
    stored_run(store, run)
    values = chosen(closeness(page(store, run.id)))
    assert (values["pictures"], values["steps"], values["trained"]) == ("many", "several", "later")


def test_the_values_with_noise_are_chosen_first() -> None:
    runs = [RunSpec(**{**RUN, "method": "fedavg"}), RunSpec(**{**RUN, "method": "udp-fedavg"})]
    for ordered in (runs, runs[::-1]):
        system = content.of_runs(ordered)
        assert [choices.noise for choices in system.choices] == ["shared", "none"]
        assert system.main.noise == "shared"


def test_the_own_result_is_the_first_of_the_table(store: Store, run: RunSpec) -> None:
    stored_run(store, run)
    attack = attack_on(run)
    stored_attack(store, attack, [30.0])
    first, *others = data(page(store, run.id))["results"]
    assert first["own"] and first["ids"] == [attack.id] and first["verdict"] == "comes back"
    assert others and not any(other["own"] for other in others)


@pytest.mark.parametrize(
    ("move", "words"),
    [
        (
            RiskMove("noise", "none", "client", less=2, same=1),
            "less came back in 2, no difference in 1. The strength",
        ),
        (
            RiskMove("steps", "one", "several", cited=CitedMove("less", "It is harder", "A paper, 2022")),
            "A paper, 2022",
        ),
        (RiskMove("noise", "none", "shared"), texts.NOT_MEASURED),
    ],
)
def test_each_direction_has_its_source(move: RiskMove, words: str) -> None:
    assert words in section.source(move)
    assert ("on 3 pairs" in section.source(move)) == (move.pairs == 3)


def test_every_change_of_a_value_has_a_direction(store: Store, run: RunSpec) -> None:
    stored_run(store, run)
    body = data(page(store, run.id))
    changes = {
        f"{name} {old} {new}" for name, values in CHOICES.items() for old in values for new in values if old != new
    }
    assert set(body["moves"]) == changes
    for move in body["moves"].values():
        assert move["sign"] == texts.DIRECTIONS[move["direction"]] and move["source"]


def test_an_outsider_is_named_because_no_choice_describes_it(store: Store, run: RunSpec) -> None:
    stored_run(store, run)
    attack = attack_on(run, view="outsider")
    stored_attack(store, attack, [20.0])
    node = closeness(page(store, attack.id))
    assert chosen(node)["aggregation"] == "yes" and "(outsider), who sees no more than the sum" in node.text


@pytest.mark.slow
def test_the_sentence_says_which_data_were_used(store: Store, run: RunSpec) -> None:
    stored_run(store, run)
    stored_attack(store, attack_on(run, pictures=(f"own-{'a' * 16}-3",)), [15.0])
    assert "A simulation on public pictures and uploaded ones." in closeness(page(store, run.id)).text
    text_run = RunSpec(**{**RUN, "dataset": "movie-reviews", "model": "lstm"})
    stored_run(store, text_run)
    text = closeness(page(store, text_run.id)).text
    assert "A simulation on public sentences." in text and ", pictures, larger models" in text
