"""The slides of an exported page are parts of the page itself."""

from __future__ import annotations

import pytest

from app.export import page
from app.export.served import served_export
from app.export.slides import deck
from app.export.slides.picks import picks
from engine.jobs.store import Store
from engine.results.attack_summary import AttackCell, AttackEvents, collect_cell
from engine.specs import attack_grid
from engine.specs.attack_grid import RequestedAttack
from engine.specs.run import RunSpec
from tests.app.export.makers import RUN, Node, attack_on, parsed, stored_attack, stored_run
from tests.app.screens.leak.makers import finished_attack


def every(node: Node) -> list[Node]:
    nodes = [node]
    for child in node.inside:
        if isinstance(child, Node):
            nodes += every(child)
    return nodes


def slides(text: str) -> list[Node]:
    return [node for node in every(parsed(text)) if node.attributes.get("data-slide")]


def cell(column: str, attack: str, psnr: list[float]) -> AttackCell:
    events = tuple(finished_attack("id", psnr))
    return collect_cell(RequestedAttack(column, attack, None), AttackEvents("finished", events))


@pytest.mark.slow
def test_each_kind_of_page_has_its_slides(store: Store) -> None:
    run = RunSpec(**RUN)
    stored_run(store, run)
    attack = attack_on(run)
    stored_attack(store, attack, [20.0])
    shared = {deck.QUESTION, deck.COST, deck.LIMITS, deck.CLOSE, deck.SETTINGS}
    expected = {
        ("run", run.id): shared | {deck.ANSWER, deck.OBSERVERS},
        ("attack", attack.id): shared | {deck.ANSWER, deck.OBSERVERS},
        ("grid", attack.id): shared | {deck.ANSWER},
        ("sweep", run.id): shared | {deck.ANSWER},
        ("example", "noise-1"): shared | {deck.OBSERVERS},
    }
    for (kind, id), kinds in expected.items():
        exported = served_export(store, kind, id, "")
        assert exported.status == 200, exported.text
        assert {node.attributes["data-slide"] for node in slides(exported.text)} == kinds, kind


@pytest.mark.slow
def test_at_most_three_uploads_are_on_slides(store: Store) -> None:
    text = page(store, "leaks")
    answers = [node for node in slides(text) if node.attributes["data-slide"] == deck.ANSWER]
    uploads = [node for node in every(parsed(text)) if node.attributes.get("class") == "upload"]
    assert len(answers) == deck.ANSWERS < len(uploads)


@pytest.mark.parametrize(("style", "opens"), [("slides", "slides"), ("page", "page"), ("<b>", "page")])
def test_the_address_names_the_style(store: Store, style: str, opens: str) -> None:
    run = RunSpec(**RUN)
    stored_run(store, run)
    exported = served_export(store, "run", run.id, "", style=style)
    (root,) = parsed(exported.text).all("html")
    assert root.attributes["data-opens"] == opens
    assert exported.name.endswith("-slides.html") == (opens == "slides")


def test_a_slide_shows_the_best_attack_against_each_protection() -> None:
    first, second = cell("none", "map", [31.0, 15.0]), cell("none", "dlg", [24.0, 12.0])
    third, fourth = cell("run", "map", [12.0, 12.0]), cell("run", "dlg", [18.0, 12.0])
    chosen = picks([first, second, third, fourth], ["none", "run"], (0, 1))
    assert chosen.picture == 0
    assert chosen.place("none", first, 0, True) == 1 and chosen.place("none", second, 0, False) is None
    assert chosen.place("run", third, 0, True) is None and chosen.place("run", fourth, 0, False) == 2
    assert chosen.place("none", first, 1, True) is None
    assert (chosen.original(0, True), chosen.original(0, False), chosen.original(1, True)) == (0, None, None)


def test_the_picture_of_a_slide_is_the_one_that_most_protections_gave_away() -> None:
    alone = cell("none", "map", [40.0, 30.0])
    chosen = picks([alone, cell("run", "map", [12.0, 25.0])], ["none", "run"], (0, 1))
    assert chosen.picture == 1


def test_an_unfinished_protection_has_the_state_of_its_first_attack() -> None:
    waiting = collect_cell(RequestedAttack("run", "map", None), AttackEvents("queued", ()))
    chosen = picks([cell("none", "map", [31.0]), waiting], ["none", "run"], (0,))
    assert chosen.place("run", waiting, 0, True) == 2 and chosen.place("run", None, 0, False) is None


def test_the_slide_of_a_grid_has_one_cell_for_each_column(store: Store) -> None:
    run = RunSpec(**RUN)
    baseline = attack_grid.baseline_of(run)
    assert baseline is not None
    specs = [attack_on(spec, attack=name) for name in ("map", "inverting-gradients") for spec in (baseline, run)]
    for spec, psnr in zip(specs, (31.4, 15.2, 24.8, 19.0), strict=True):
        stored_attack(store, spec, [psnr])
    exported = served_export(store, "grid", ",".join(spec.id for spec in specs), "")
    shown = [node for node in every(parsed(exported.text)) if "data-best" in node.attributes]
    cells = {node.attributes["data-best"]: node.text for node in shown}
    assert list(cells) == ["0", "1", "2"]
    assert "31.4 dB" in cells["1"] and "19.0 dB" in cells["2"] and "by Inverting Gradients" in cells["2"]


def test_no_protection_is_left_off_the_slides(store: Store) -> None:
    runs = [RunSpec(**{**RUN, "method": {"name": "udp-fedavg", "noise": noise}}) for noise in range(1, 8)]
    for run in runs:
        stored_attack(store, attack_on(run), [20.0])
    exported = served_export(store, "grid", ",".join(attack_on(run).id for run in runs), "")
    answers = [node for node in slides(exported.text) if node.attributes["data-slide"] == deck.ANSWER]
    first, second = [{each.attributes.get("data-head") for each in every(node)} for node in answers]
    assert len(second) > 2 and second < first  # the second table is a slide inside the first one
    assert {f"UDP-FedAvg, noise {noise}" for noise in range(1, 8)} < first
