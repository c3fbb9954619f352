"""The forecast on an exported page: what the noise on the upload is expected to hide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.export import texts as export_texts
from app.export.gather import ExportedAttack
from engine.events import Event, Seen
from engine.results.attack_summary import AttackEvents, collect_cell
from engine.specs.attack_grid import RequestedAttack
from engine.specs.run import RunSpec
from engine.training.forecast import cliff_region
from tests.app.export.makers import attack_on
from tests.app.screens.leak.makers import finished_attack

PARAMETERS = 600_000


def exported(model: str, **facts: Any) -> ExportedAttack:
    spec = attack_on(RunSpec(model=model, dataset="fashion-mnist"))
    events: list[Event] = []
    for event in finished_attack(spec.id, [15.0], "converged"):
        events.append(replace(event, facts={**event.facts, **facts}) if isinstance(event, Seen) else event)
    cell = collect_cell(RequestedAttack("run", "map", None), AttackEvents("finished", tuple(events)))
    return ExportedAttack(spec.id, spec.canonical(), cell, None, ())


@pytest.mark.parametrize("model", ["lenet5", "lenet-sigmoid"])
@pytest.mark.parametrize("pictures", [1, 4])
def test_a15_the_page_forecasts_by_the_region_of_the_model(model: str, pictures: int) -> None:
    region = exported(model, numbers=PARAMETERS, pictures=pictures).noise_region
    assert region == cliff_region(RunSpec(model=model).model, pictures * 784, PARAMETERS)
    low, high = region
    for ratio, forecast in zip((low / 2, low * 2, high * 2), export_texts.FORECASTS, strict=True):
        assert export_texts.loudness(ratio, region).endswith(forecast.format(low=low, high=high))


def test_an_upload_of_unknown_size_has_no_forecast() -> None:
    assert exported("lenet5").noise_region is None
    assert export_texts.loudness(0.25, None) == "The noise on the upload is 0.25 times as large as the upload itself."
    assert export_texts.loudness(None, None) == ""
