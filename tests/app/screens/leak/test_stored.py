"""No empty state: what a visitor may choose with one click on Leak ships as a finished attack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from app.batch import attack_cells
from app.screens.leak import series
from app.screens.leak import settings as leak_settings
from app.screens.leak.cliff import panel as cliff_panel
from app.screens.leak.settings import COMPARED, LeakSettings
from app.session import services
from app.texts import attack_form as form_texts
from engine.examples import attacks
from engine.specs import attack_series
from engine.specs.attack_grid import RequestedAttack
from tests.app.conftest import PATIENCE_S
from tests.app.reading import text
from tests.app.screens.leak.makers import finished_attack
from tests.app.screens.leak.makers import visit as visit_panel
from tests.app.screens.leak.test_page import BEST, grid, psnrs, tell, visit, words

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]


def one_click() -> Iterator[LeakSettings]:
    """The settings that a click or two make of those of a first visit. Budgets of an ordinary upload take one more."""
    default = LeakSettings.default()
    for place in range(attack_series.SHOWN):
        yield default.with_(whose=f"test-{place}")
    for method in COMPARED:
        yield default.with_(against=leak_settings.at_strengths(method, (0.01, 0.1, 1.0)))
    budget = default.with_(against=leak_settings.at_budget(COMPARED, leak_settings.BUDGET))
    yield from (default.with_content(content) for content in form_texts.CONTENTS)
    yield from (budget.with_content(content) for content in form_texts.CONTENTS if content != "ordinary")


def missing(requests: list[RequestedAttack]) -> list[str]:
    """The attacks that fit and do not ship."""
    shipped = {example.id for example in attacks.attack_examples()}
    fitting = [request for request in attack_cells.with_refusals(requests) if request.spec]
    assert fitting
    return [f"{request.attack}, {request.column}" for request in fitting if request.id not in shipped]


def test_b06_each_grid_one_click_away_is_finished() -> None:
    services.shared().ready(PATIENCE_S)
    for settings in one_click():
        assert missing(list(settings.grid.requests())) == [], settings.link()


def test_b12_the_panels_of_a_first_visit_are_finished() -> None:
    services.shared().ready(PATIENCE_S)
    default = LeakSettings.default()
    attack = attack_series.main_attack(series.attacks(default))
    cliff = cliff_panel.plan(default)
    assert cliff and missing(list(cliff.requests)) == []
    for column in default.grid.runs():
        assert missing(list(attack_series.ladder_requests(default.grid, column, attack))) == []
    questions = attack_series.questions(default.grid, attack, 0)
    assert missing([question.request for question in questions]) == []


@pytest.mark.parametrize("panel", ["cliff", "ladder", "test"])
def test_b12_a_panel_shows_its_stored_example_without_a_click(panel: str) -> None:
    page: AppTest = visit_panel(LeakSettings.default(), panel)
    assert not [button for button in page.button if str(button.key).startswith(f"{panel}-attack")]
    assert services.store().runs() == []


def test_the_verdicts_of_the_stored_grids_are_those_of_a_run() -> None:
    page = visit(LeakSettings.default().with_(whose="test-5"))
    (best,) = words(page)
    assert best[0] == "comes back" and best[-1] == "not recognised"
    assert grid(page)["moments"] == 8 and "Without protection the picture comes back" in text(page)


def test_b02_only_a_finished_attack_replaces_its_example() -> None:
    default = LeakSettings.default()
    page = visit()
    shown = psnrs(page)
    requests = attack_cells.with_refusals(default.grid.requests())
    for request in requests:
        assert request.spec
        services.store().submit(request.id, request.spec.canonical(), {})
    page.run()
    assert psnrs(page) == shown  # they wait
    for request in requests:
        tell(request.id, finished_attack(request.id, [25.5]))
    page.run()
    assert set(psnrs(page)[BEST]) == {"25.5 dB"}
