"""The exported page and the list of runs show a membership attack with its interval and its curve."""

from __future__ import annotations

import shlex
from datetime import date

import pytest

from app.export import page
from app.export import texts as export_texts
from app.screens.runs import listing
from app.texts import membership as texts
from engine.events import Finished, Scored, Started, encode
from engine.jobs.store import Store
from engine.specs import attack_grid
from engine.specs.attack import MembershipSpec
from engine.specs.run import RunSpec
from tests.app.conftest import Screen
from tests.app.export.makers import RUN, Node, parsed, stored_run
from tests.app.makers import RunMaker
from tests.app.reading import lines

TPR = {"0.1": 0.25, "0.01": 0.03}
ROC = ((0.002, 0.01), (0.01, 0.03), (0.1, 0.25), (1.0, 1.0))


@pytest.fixture
def run() -> RunSpec:
    return RunSpec(**RUN)


def stored(store: Store, run: RunSpec, auc: float, interval: tuple[float, float]) -> str:
    """A finished membership attack on this run."""
    spec = MembershipSpec(run=run.canonical())
    scored = Scored("loss-threshold", "outsider", "record", 4, None, 600, 600, auc, interval, TPR, ROC)
    store.submit(spec.id, spec.canonical(), {})
    RunMaker(store).tell(spec.id, Started(spec.id, spec.canonical(), {}), scored, Finished(0, 1.5))
    return spec.id


def shown(store: Store, run: str) -> Node:
    return parsed(page(store, run, date(2026, 3, 1)))


def test_a_page_of_an_attack_has_its_sentence_its_curve_and_its_table(store: Store, run: RunSpec) -> None:
    stored_run(store, run)
    attack = stored(store, run, 0.71, (0.68, 0.74))
    node = shown(store, attack)
    assert node.all("h1")[0].text == "Loss threshold against UDP-FedAvg, noise 0.5 on Fashion-MNIST"
    assert "names the member in 71 of 100 pairs (95 % interval 68 to 74; 600 records against 600)" in node.text
    assert "It tells members apart better than guessing." in node.text
    assert texts.NO_PROOF in node.text and texts.HOW["record"] in node.text
    titles = [title.text for title in node.all("title")]
    assert titles.count(texts.CURVE) == 1 and texts.GUESSING in node.text
    rows = [[cell.text for cell in (*row.all("th"), *row.all("td"))] for row in node.all("tr")]
    assert ["10 %", "25.0 %"] in rows and ["1 %", "3.0 %"] in rows
    commands = [shlex.split(block.text) for block in node.all("pre")]
    assert commands[-1][:6] == ["python3", "-m", "engine", "attack", run.id, "--attack"]
    assert "--restarts" not in commands[-1] and "--unit" in commands[-1]


def test_an_attack_that_fails_is_never_called_protection(store: Store, run: RunSpec) -> None:
    stored_run(store, run)
    text = shown(store, stored(store, run, 0.51, (0.48, 0.54))).text
    assert "With this many records, that cannot be told from guessing." in text


def test_the_page_of_a_run_has_its_attacks_next_to_the_baseline(store: Store, run: RunSpec) -> None:
    baseline = attack_grid.baseline_of(run)
    assert baseline is not None
    stored_run(store, run)
    stored(store, run, 0.51, (0.48, 0.54))
    stored(store, baseline, 0.9, (0.88, 0.92))
    node = shown(store, run.id)
    assert (
        "UDP-FedAvg, noise 0.5, seen by an outsider" in node.text
        and "Without protection, seen by an outsider" in node.text
    )
    assert "names the member in 90 of 100 pairs" in node.text


@pytest.mark.slow
def test_the_list_of_runs_names_it_and_its_result(store: Store, run: RunSpec, screen: Screen) -> None:
    attack = stored(store, run, 0.71, (0.68, 0.74))
    page = screen("runs")
    assert not page.exception
    line = lines(page)[attack]
    assert line.startswith("Loss threshold on UDP-FedAvg: which records were in the training data? last round")
    assert "tells apart 71 % of pairs (68 to 74); guessing 50 %" in line
    (button,) = [button for button in page.button if str(button.key) == f"open:{attack}"]
    assert button.disabled and button.help == texts.NO_SCREEN


def test_the_list_reads_the_score_from_the_events() -> None:
    scored = Scored("loss-threshold", "server", "user", 1, 0, 10, 10, 1.0, (0.7, 1.0), {}, ((1.0, 1.0),))
    assert listing.fold([encode(scored)], "server").auc == (1.0, 0.7, 1.0)


def test_an_attack_of_a_package_that_is_missing_does_not_block_the_page(store: Store, run: RunSpec) -> None:
    stored_run(store, run)
    spec = {**MembershipSpec(run=run.canonical()).canonical(), "attack": {"name": "of-another-package"}}
    store.submit("abc123abc123", spec, {})
    RunMaker(store).tell("abc123abc123", Started("abc123abc123", spec, {}), Finished(0, 1.5))
    text = shown(store, run.id).text
    assert export_texts.NOT_HERE.format(count=1) in text and "of-another-package" not in text


def test_an_interval_below_guessing_has_its_own_sentence() -> None:
    scored = Scored("loss-threshold", "outsider", "record", 4, None, 600, 600, 0.2, (0.17, 0.23), TPR, ROC)
    assert "worse than guessing" in texts.verdict(scored, "FedAvg")
