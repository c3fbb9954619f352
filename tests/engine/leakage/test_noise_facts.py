"""The facts about noise and signal of a recorded upload come from a replay without noise."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

import numpy as np
import pytest

from engine.events import Event, Kept, Seen
from engine.leakage.pictures import attack
from engine.specs.attack import AttackSpec
from engine.training.loop import run
from tests.engine.makers import tiny_spec


def facts_of(method: dict[str, Any], seed: int = 3, **fields: Any) -> dict[str, Any]:
    spec = AttackSpec(run=tiny_spec(method=method, seed=seed, sampling="fixed", **fields), attack="map")
    spec = spec.with_(attack={"name": "map", "iterations": 1})
    return dict(next(event for event in attack(spec) if isinstance(event, Seen)).facts)


@pytest.mark.parametrize("seed", range(4))
def test_a05_the_signal_is_that_of_the_upload_without_noise(seed: int) -> None:
    """It was estimated by subtraction, which is negative every second time: the noise was 5.64e16 times the signal."""
    facts = facts_of({"name": "udp-fedavg", "noise": 50.0, "noise-split": "full-local"}, seed)
    parameters = 784 * 64 + 64 * 10
    assert facts["noise"] == pytest.approx(50 * math.sqrt(parameters), rel=0.02)
    assert 0.1 < facts["signal"] <= 1 + 1e-5  # of a clipped update
    assert facts["noise-to-signal"] == pytest.approx(facts["noise"] / facts["signal"])


def test_a05_an_upload_without_noise_is_all_signal() -> None:
    facts = facts_of({"name": "fedavg"})
    assert facts["noise"] == 0 and facts["signal"] == facts["norm"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ppsgd", "centaur", "fedceo", "dp-fedavg"])
def test_a05_the_replay_without_noise_leaves_the_upload_as_it_was(name: str) -> None:
    """Private parts are passed from round to round: a second replay must not start from those of the first."""
    method = {"name": name, "noise": 0.5}
    facts = facts_of(method)
    recorded = next(event for event in run(tiny_spec(method=method, seed=3, sampling="fixed")) if is_exposure(event))
    assert recorded.payload is not None
    received = [array for key, array in recorded.payload.items() if key.startswith("received/")]
    norm = math.sqrt(sum(float(np.square(array.astype(np.float64)).sum()) for array in received))
    assert facts["norm"] == pytest.approx(norm, rel=1e-12)


def is_exposure(event: Event) -> TypeGuard[Kept]:
    return isinstance(event, Kept) and event.kind == "exposure" and event.round == 1
