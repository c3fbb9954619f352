"""The loop: what is said in which order, what is kept, how it stops and goes on."""

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
from tests.engine.makers import accuracies, tiny, told


def kept(events: list[Event], kind: str) -> list[Kept]:
    return [one for one in events if isinstance(one, Kept) and one.kind == kind]


def test_a_round_is_told_in_one_order() -> None:
    events = list(run(tiny(method="udp-fedavg")))
    assert isinstance(events[0], Started) and isinstance(events[-1], Finished)
    first, second = (at for at, one in enumerate(events) if isinstance(one, Round))
    kinds = [type(one) for one in events[first:second] if not isinstance(one, Kept)]
    assert kinds == [Round, Measured, Measured, Spent, Spent, Spent, Spent]
    assert [one.view for one in events[first:second] if isinstance(one, Spent)] == [
        "server",
        "aggregate",
        "outsider",
        "client",
    ]


def test_no_rounds_is_an_answer_too() -> None:
    events = list(run(tiny(method="udp-fedavg", rounds=0)))
    assert isinstance(events[-1], Finished) and events[-1].rounds == 0
    spent = [one for one in events if isinstance(one, Spent)]
    assert not accuracies(events)
    assert [(one.epsilon, one.reason) for one in spent] == [(0.0, "nothing was released")] * 4


def test_the_start_says_what_is_in_force() -> None:
    spec = tiny(method={"name": "udp-fedavg", "noise": 2.5})
    started = next(iter(run(spec)))
    assert isinstance(started, Started) and started.run == spec.id and started.spec == spec.canonical()
    facts = started.facts
    assert (facts["noise"], facts["unit"], facts["sampling"], facts["delta"]) == (2.5, "user", "poisson", 1e-5)
    assert facts["parameters"] == sum(tensor.numel() for tensor in load_plan(spec).world.weights.values())


def test_the_partition_is_kept_as_counts() -> None:
    plan = load_plan(tiny(partition="shards"))
    (one,) = kept(list(run(plan.spec)), "partition")
    assert one.payload is not None and one.payload["train"].shape == (40, 10)
    assert one.payload["train"].sum() == 12_000 and one.payload["test"].sum() == 2_000
    assert one.payload["train"].sum(1).tolist() == list(plan.world.sizes)


def test_states_for_probes_surround_the_run() -> None:
    rounds = [one.round for one in kept(list(run(tiny(rounds=20, sampled=1, clients=400))), "state")]
    assert rounds[0] == 0 and rounds[-2:] == [19, 20] and len(rounds) <= 3 + loop.STATES
    gaps = [after - before for before, after in pairwise(rounds)]
    assert max(gaps) <= 3


def test_the_first_and_the_last_upload_are_recorded_with_their_truth() -> None:
    plan = load_plan(tiny(method="fedsgd", rounds=3))
    events = list(run(plan.spec))
    exposures, truths = kept(events, "exposure"), kept(events, "truth")
    assert [one.round for one in exposures] == [one.round for one in truths] == [1, 3]
    for exposure, truth in zip(exposures, truths, strict=True):
        assert exposure.facts["client"] == truth.facts["client"] == plan.cohort(exposure.round)[0]
        assert exposure.payload is not None and truth.payload is not None
        assert truth.payload["pictures"].shape[0] == exposure.facts["protocol"]["pictures"] == 100  # one batch
        assert truth.payload["pictures"].min() >= 0 and truth.payload["pictures"].max() <= 1
        assert not set(truth.payload) & set(exposure.payload)


def test_empty_rounds_at_the_ends_move_the_record_inward() -> None:
    for seed in range(50):
        spec = tiny(method="udp-fedavg", rounds=6, sampled=1, seed=seed)
        plan = load_plan(spec)
        there = [round for round in range(1, 7) if plan.cohort(round)]
        if there and there[0] > 1 and there[-1] < 6:
            break
    assert [one.round for one in kept(list(run(spec)), "exposure")] == sorted({there[0], there[-1]})


@pytest.mark.parametrize("method", ["fedavg", "udp-fedavg", "dp-fedavg"])
def test_resumed_from_any_checkpoint_it_says_the_rest(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "CHECKPOINT_S", 0.0)
    monkeypatch.setattr(loop, "SHARE", 0.0)
    spec = tiny(method=method, rounds=4)
    events = list(run(spec))
    points = kept(events, "checkpoint")
    assert [one.round for one in points] == [1, 2, 3, 4]
    for point in points:
        rest = told(run(spec, resume=point))
        assert rest == told(events[events.index(point) + 1 :])


def test_asked_to_stop_it_leaves_a_checkpoint_and_goes_on_from_it() -> None:
    spec, seen = tiny(method="udp-fedavg", rounds=4), list[Event]()
    for event in run(spec, stop=lambda: sum(isinstance(one, Round) for one in seen) == 2):
        seen.append(event)
    assert isinstance(seen[-1], Kept) and (seen[-1].kind, seen[-1].round) == ("checkpoint", 2)
    whole = list(run(spec))
    assert told(seen) + told(run(spec, resume=seen[-1])) == told(whole)


def test_seconds_of_all_attempts_are_added() -> None:
    spec = tiny(rounds=3)
    point = Kept("checkpoint", "checkpoint-2", 2, {"seconds": 100.0}, kept(list(run(spec)), "state")[2].payload)
    assert list(run(spec, resume=point))[-1].seconds > 100  # type: ignore[attr-defined]


def test_a_checkpoint_of_another_model_is_refused() -> None:
    point = kept(list(run(tiny(model={"name": "mlp", "hidden": 8}))), "state")[1]
    with pytest.raises(Exception, match="does not fit the model of this run"):
        list(run(tiny(), resume=point))


def test_a_budget_stops_before_it_breaks() -> None:
    spec = tiny(method="udp-fedavg", rounds=30, budget=3.0, view="outsider")
    events = list(run(spec))
    (warned,) = [one for one in events if isinstance(one, Warned)]
    end = events[-1]
    assert isinstance(end, Finished) and 0 < end.rounds < 30 and warned.round == end.rounds + 1
    spent = [one.epsilon for one in events if isinstance(one, Spent) and one.view == "outsider"]
    assert all(value is not None and value <= 3.0 for value in [spent[-1]])
    longer = load_plan(tiny(method="udp-fedavg", rounds=30)).ledger(end.rounds + 1)
    assert longer.exceeds("outsider", 3.0)


def test_forecast_and_run_stop_at_the_same_round() -> None:
    spec = tiny(method="udp-fedavg", rounds=30, budget=10.0, view="aggregate")
    told_before, events = forecast(spec, precise=True), list(run(spec))
    end, last = events[-1], load_plan(spec).last
    assert isinstance(end, Finished) and end.rounds == last < 30
    spent = {one.view: one.epsilon for one in events if isinstance(one, Spent)}
    assert {one.view: one.epsilon for one in told_before.answers} == spent
    assert any(f"stop after round {last}" in problem.reason for problem in told_before.problems)
    assert [one.round for one in kept(events, "exposure")][-1] <= last
    assert len([one for one in events if isinstance(one, Measured) and one.who.startswith("class")]) == 10


def test_weights_that_are_no_numbers_fail_with_a_remedy() -> None:
    with pytest.raises(RunFailed, match="no longer finite numbers"):
        list(run(tiny(method={"name": "fedavg", "server-step": 10.0}, lr=100.0, rounds=30)))


def test_torch_is_left_as_it_was() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        events = run(tiny(rounds=1))
        next(events)
        assert torch.get_num_threads() == 1
        list(events)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("device", ["tpu", "cuda:900", "cudafoo", ""])
def test_a_device_that_is_not_here_is_refused(device: str) -> None:
    with pytest.raises(BadInput, match="must be cpu, or cuda where a GPU is found"):
        next(run(tiny(), device=device))


def test_long_rounds_say_how_far_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "NOTE_S", 0.0)
    events: list[Any] = [one for one in run(tiny(method="dp-fedavg", rounds=1)) if isinstance(one, Round)]
    fractions = [one.fraction for one in events]
    assert fractions[0] == 0 and len(fractions) > 3 and fractions == sorted(fractions) and fractions[-1] <= 1
