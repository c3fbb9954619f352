"""The states that ship: an attack that starts from one has the result of an attack that replays all rounds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from engine.compute.threads import ThreadTeam
from engine.events import Event, Finished, Kept, Step
from engine.examples import start, start_gallery
from engine.leakage import probe
from engine.leakage.pictures import attack
from engine.leakage.target import AttackResources
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from engine.training import shipped_states
from engine.training.plan import load_plan

NOISY = {"name": "udp-fedavg", "noise": 0.1, "noise-split": "full-local"}
SMALL = {"model": "mlp", "clients": 20, "sampled": 4, "epochs": 1, "rounds": 4}
SPEC = RunSpec(method=NOISY, **SMALL)
ATTACK = AttackSpec(run=SPEC, attack="analytic", pictures=["portrait-0"], round="last")
MOST_BYTES = 2_000_000


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """The state before the last round of the small run, which ships."""
    monkeypatch.setattr(shipped_states, "FILE", tmp_path / "models.safetensors")
    recorded = start_gallery.record(SPEC).state
    shipped_states.FILE.write_bytes(shipped_states.packed([(SPEC.id, recorded)]))
    return recorded


def results(resources: AttackResources | None = None) -> list[Event]:
    return [event for event in attack(ATTACK, resources) if not isinstance(event, Finished | Step)]


def replayed_from(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rounds of the states from which the attacks after this begin."""
    rounds: list[int] = []
    whole = probe.latest_state

    def watched(plan: object, round: int, kept: Sequence[Kept]) -> object:
        state = whole(plan, round, kept)  # type: ignore[arg-type]
        rounds.append(state.round)
        return state

    monkeypatch.setattr(probe, "latest_state", watched)
    return rounds


@pytest.mark.slow
def test_an_attack_starts_from_the_state_that_ships_with_the_same_result(
    state: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = replayed_from(monkeypatch)
    shipped = results()
    whole = shipped_states.FILE.read_bytes()
    for damaged in (whole[:-8] + b"\x00" * 8, whole[:100], b""):
        shipped_states.FILE.write_bytes(damaged)
        assert results() == shipped
    shipped_states.FILE.unlink()
    assert results() == shipped
    assert rounds == [3, 0, 0, 0, 0] and state.round == 3


def test_a_state_of_the_home_comes_first(state: Kept) -> None:
    assert state.payload is not None
    zeros = Kept("state", "state-3", 3, payload={name: 0 * array for name, array in state.payload.items()})

    class OtherHome(AttackResources):
        def states(self, run: str) -> Sequence[Kept]:
            del run
            return (zeros,)

    kept = OtherHome().states_of(SPEC.id)
    assert [each.round for each in kept] == [3, 3]
    plan = load_plan(SPEC)
    chosen = probe.latest_state(plan, 4, kept)
    assert all(not tensor.any() for tensor in chosen.server.values())


@pytest.mark.slow
def test_the_last_models_of_the_first_page_ship() -> None:
    example = start.start_example()
    assert example is not None
    assert shipped_states.FILE.stat().st_size <= MOST_BYTES
    for stop in example.stops:
        (kept,) = shipped_states.shipped_states(stop.run.id)
        assert kept.payload is not None and sum(array.size for array in kept.payload.values()) == 50_816


@pytest.mark.slow
def test_a_model_of_the_first_page_is_that_of_its_run_today() -> None:
    example = start.start_example()
    assert example is not None
    run = example.stops[4].run
    (kept,) = shipped_states.shipped_states(run.id)
    assert kept.payload is not None
    with ThreadTeam(1) as team:
        replayed = probe.state_before(load_plan(RunSpec(**run.spec)), kept.round + 1, (), team).payload()
    assert replayed.keys() == kept.payload.keys()
    for name, values in replayed.items():  # bit for bit on the machine that made it
        np.testing.assert_allclose(values, kept.payload[name], rtol=0, atol=1e-3)
