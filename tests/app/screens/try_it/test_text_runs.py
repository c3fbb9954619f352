"""Runs on text: Try trains them, and says that only pictures are attacked."""

from __future__ import annotations

import pytest

from app.screens.try_it import texts as try_texts
from app.session import run_settings, services
from engine.jobs.process_id import ProcessId
from engine.specs.run import RunSpec
from engine.training.loop import run
from tests.app.reading import text
from tests.app.screens.try_it.makers import clicked, statuses, visit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]
SMALL = {
    "dataset": {"name": "movie-reviews", "length": 12}, "model": {"name": "lstm", "words": 60, "width": 4, "hidden": 4},
    "clients": 20, "sampled": 4, "rounds": 2, "epochs": 1, "batch": 100,
}  # fmt: skip


def test_a_model_that_does_not_read_the_data_is_refused() -> None:
    page = visit({"dataset": "movie-reviews"})
    assert "mlp: needs pictures, got sentences of 40 words" in text(page) and page.button(key="try-run").disabled
    page = visit({"dataset": "movie-reviews", "model": "lstm"})
    assert "needs pictures" not in text(page) and not page.button(key="try-run").disabled
    assert "training sentences of all clients" in text(page)  # a note about a number that no ε covers
    clicked(page, "try-run")
    assert {services.store().run(run).spec["dataset"]["name"] for run in statuses()} == {"movie-reviews"}


def test_a_run_on_text_is_shown_and_not_attacked() -> None:
    spec = RunSpec(**SMALL)
    store = services.store()
    store.submit(spec.id, spec.canonical(), {})
    lease = store.take(ProcessId.me(), 9, only={spec.id})
    assert lease
    store.append(lease, [event for event in run(spec) if not getattr(event, "payload", None)])
    page = visit(run_settings.link(run_settings.flat(spec.canonical())))
    assert page.get("plotly_chart") and try_texts.TEXT in text(page)
    assert "try-to-leak" not in {button.key for button in page.button}
