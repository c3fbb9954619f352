"""A run: the order of its events, what it records, how it stops and how it resumes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch

from engine.errors import BadInput, RunFailed
from engine.events import Event, Finished, Kept, Measured, Round, Spent, Started, Warned
from engine.training import loop
from engine.training.forecast import forecast
from engine.training.loop import run
from engine.training.plan import load_plan
from tests.engine.makers import accuracies, replayable, tiny_spec


def kept(events: list[Event], kind: str) -> list[Kept]:
    return [event for event in events if isinstance(event, Kept) and event.kind == kind]


def test_the_events_of_a_round_have_a_fixed_order() -> None:
    events = list(run(tiny_spec(method="udp-fedavg")))
    assert isinstance(events[0], Started) and isinstance(events[-1], Finished)
    first, second = (at for at, event in enumerate(events) if isinstance(event, Round))
    kinds = [type(event) for event in events[first:second] if not isinstance(event, Kept)]
    assert kinds == [Round, Measured, Measured, Spent, Spent, Spent, Spent]
    views = [event.view for event in events[first:second] if isinstance(event, Spent)]
    assert views == ["server", "aggregate", "outsider", "client"]


def test_a_run_of_no_rounds_finishes() -> None:
    events = list(run(tiny_spec(method="udp-fedavg", rounds=0)))
    assert isinstance(events[-1], Finished) and events[-1].rounds == 0
    spent = [event for event in events if isinstance(event, Spent)]
    assert not accuracies(events)
    assert [(event.epsilon, event.reason) for event in spent] == [(0.0, "nothing was released")] * 4


def test_the_first_event_has_the_numbers_that_the_run_uses() -> None:
    spec = tiny_spec(method={"name": "udp-fedavg", "noise": 2.5})
    started = next(iter(run(spec)))
    assert isinstance(started, Started) and started.run == spec.id and started.spec == spec.canonical()
    facts = started.facts
    assert (facts["noise"], facts["unit"], facts["sampling"], facts["delta"]) == (2.5, "user", "poisson", 1e-5)
    assert facts["parameters"] == sum(tensor.numel() for tensor in load_plan(spec).world.weights.values())


def test_the_partition_is_recorded_as_counts() -> None:
    plan = load_plan(tiny_spec(partition="shards"))
    (partition,) = kept(list(run(plan.spec)), "partition")
    assert partition.payload is not None and partition.payload["train"].shape == (40, 10)
    assert partition.payload["train"].sum() == 12_000 and partition.payload["test"].sum() == 2_000
    assert partition.payload["train"].sum(1).tolist() == list(plan.world.sizes)


def test_states_for_probes_are_spread_over_the_run() -> None:
    rounds = [event.round for event in kept(list(run(tiny_spec(rounds=20, sampled=1, clients=400))), "state")]
    assert rounds[0] == 0 and rounds[-2:] == [19, 20] and len(rounds) <= 3 + loop.STATES
    gaps = [after - before for before, after in pairwise(rounds)]
    assert max(gaps) <= 3


def test_the_first_and_the_last_upload_are_recorded_with_their_truth() -> None:
    plan = load_plan(tiny_spec(method="fedsgd", rounds=3))
    events = list(run(plan.spec))
    exposures, truths = kept(events, "exposure"), kept(events, "truth")
    assert [event.round for event in exposures] == [event.round for event in truths] == [1, 3]
    for exposure, truth in zip(exposures, truths, strict=True):
        assert exposure.facts["client"] == truth.facts["client"] == plan.cohort(exposure.round)[0]
        assert exposure.payload is not None and truth.payload is not None
        assert truth.payload["pictures"].shape[0] == exposure.facts["protocol"]["pictures"] == 100  # one batch
        assert truth.payload["pictures"].min() >= 0 and truth.payload["pictures"].max() <= 1
        assert not set(truth.payload) & set(exposure.payload)


def test_empty_first_and_last_rounds_leave_no_exposure() -> None:
    for seed in range(50):
        spec = tiny_spec(method="udp-fedavg", rounds=6, sampled=1, seed=seed)
        plan = load_plan(spec)
        occupied = [round for round in range(1, 7) if plan.cohort(round)]
        if occupied and occupied[0] > 1 and occupied[-1] < 6:
            break
    assert [event.round for event in kept(list(run(spec)), "exposure")] == sorted({occupied[0], occupied[-1]})


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fedavg", "udp-fedavg", "dp-fedavg"])
def test_a_run_resumed_from_any_checkpoint_yields_the_remaining_events(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "CHECKPOINT_S", 0.0)
    monkeypatch.setattr(loop, "CHECKPOINT_SHARE", 0.0)
    spec = tiny_spec(method=method, rounds=4)
    events = list(run(spec))
    checkpoints = kept(events, "checkpoint")
    assert [event.round for event in checkpoints] == [1, 2, 3, 4]
    for checkpoint in checkpoints:
        rest = replayable(run(spec, resume=checkpoint))
        assert rest == replayable(events[events.index(checkpoint) + 1 :])


def test_a_stopped_run_leaves_a_checkpoint_and_resumes_from_it() -> None:
    spec = tiny_spec(method="udp-fedavg", rounds=4)
    events: list[Event] = []

    def rounds() -> list[Event]:
        return [event for event in events if isinstance(event, Round)]

    for event in run(spec, stop=lambda: len(rounds()) == 2):
        events.append(event)
    assert isinstance(events[-1], Kept) and (events[-1].kind, events[-1].round) == ("checkpoint", 2)
    whole = list(run(spec))
    assert replayable(events) + replayable(run(spec, resume=events[-1])) == replayable(whole)


def test_seconds_of_all_attempts_are_added() -> None:
    spec = tiny_spec(rounds=3)
    state = kept(list(run(spec)), "state")[2]
    checkpoint = Kept("checkpoint", "checkpoint-2", 2, {"seconds": 100.0}, state.payload)
    assert list(run(spec, resume=checkpoint))[-1].seconds > 100  # type: ignore[attr-defined]


def test_a_checkpoint_of_another_model_is_refused() -> None:
    checkpoint = kept(list(run(tiny_spec(model={"name": "mlp", "hidden": 8}))), "state")[1]
    with pytest.raises(Exception, match="does not fit the model of this run"):
        list(run(tiny_spec(), resume=checkpoint))


def test_a_run_stops_before_it_exceeds_its_budget() -> None:
    spec = tiny_spec(method="udp-fedavg", rounds=30, budget=3.0, view="outsider")
    events = list(run(spec))
    (warned,) = [event for event in events if isinstance(event, Warned)]
    end = events[-1]
    assert isinstance(end, Finished) and 0 < end.rounds < 30 and warned.round == end.rounds + 1
    spent = [event.epsilon for event in events if isinstance(event, Spent) and event.view == "outsider"]
    assert all(value is not None and value <= 3.0 for value in [spent[-1]])
    longer = load_plan(tiny_spec(method="udp-fedavg", rounds=30)).ledger(end.rounds + 1)
    assert longer.exceeds("outsider", 3.0)


def test_forecast_and_run_stop_at_the_same_round() -> None:
    spec = tiny_spec(method="udp-fedavg", rounds=30, budget=10.0, view="aggregate")
    before = forecast(spec, precise=True)
    events = list(run(spec))
    end, last = events[-1], load_plan(spec).last_round
    assert isinstance(end, Finished) and end.rounds == last < 30
    spent = {event.view: event.epsilon for event in events if isinstance(event, Spent)}
    assert {answer.view: answer.value for answer in before.answers} == spent
    assert any(f"stop after round {last}" in problem.reason for problem in before.problems)
    assert [event.round for event in kept(events, "exposure")][-1] <= last
    classes = [event for event in events if isinstance(event, Measured) and event.who.startswith("class")]
    assert len(classes) == 10


def test_weights_that_are_not_finite_fail_with_a_remedy() -> None:
    with pytest.raises(RunFailed, match="no longer finite numbers"):
        list(run(tiny_spec(method={"name": "fedavg", "server-step": 10.0}, lr=100.0, rounds=30)))


def test_a_run_restores_the_settings_of_torch() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        events = run(tiny_spec(rounds=1))
        next(events)
        assert torch.get_num_threads() == 1
        list(events)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("device", ["tpu", "cuda:900", "cudafoo", ""])
def test_a_device_that_does_not_exist_is_refused(device: str) -> None:
    with pytest.raises(BadInput, match="must be cpu, or cuda where a GPU is found"):
        next(run(tiny_spec(), device=device))


def test_long_rounds_yield_their_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "PROGRESS_S", 0.0)
    events: list[Any] = [event for event in run(tiny_spec(method="dp-fedavg", rounds=1)) if isinstance(event, Round)]
    fractions = [event.fraction for event in events]
    assert fractions[0] == 0 and len(fractions) > 3 and fractions == sorted(fractions) and fractions[-1] <= 1
