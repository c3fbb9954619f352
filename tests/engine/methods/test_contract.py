"""The contract of every method on the shelf; two test methods try the contract itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, get_args

import pytest
import torch

from engine.compute.threads import ThreadTeam
from engine.events import Event, Finished, Kept, Measured, Spent, decode, encode
from engine.leakage import probe
from engine.leakage.target import numbers_of
from engine.methods import METHODS, Method
from engine.records import VIEWS, Gaussian, Seat, Status
from engine.specs.run import RunSpec
from engine.training.loop import run
from engine.training.plan import load_plan, make_plan
from engine.training.rounds import first_state, train_round
from tests.engine.makers import accuracies, parts_with_one_change, replayable, tiny_spec
from tests.engine.methods.makers import PrivateHead, UploadsPictures

TEST_METHODS: dict[str, type[Method]] = {"test-private-head": PrivateHead, "test-uploads-pictures": UploadsPictures}
REAL = METHODS.names()
DROPOUT = {"name": "mlp", "dropout": 0.4, "hidden": 16}


@pytest.fixture(autouse=True)
def registered_test_methods() -> Iterator[None]:
    for name, method in TEST_METHODS.items():
        METHODS.add(name, title="a test method", source="tests")(method)
    yield
    for name in TEST_METHODS:
        del METHODS._parts[name]


def each_method() -> Any:
    return pytest.mark.parametrize("name", [*REAL, *TEST_METHODS])


def least(name: str) -> Method:
    """The method with the least work: the contract needs no more, and some methods take minutes at their defaults."""
    return METHODS[name]().trial()


def states_before(events: list[Event], rounds: int) -> list[Kept]:
    """The stored states after the first round and before the last one."""
    states = [event for event in events if isinstance(event, Kept) and event.kind == "state"]
    return [state for state in states if 0 < state.round < rounds]


def first_exposure(events: Iterable[Event]) -> Kept:
    return next(event for event in events if isinstance(event, Kept) and event.kind == "exposure")


@each_method()
def test_a_method_has_a_title_a_source_and_a_summary(name: str) -> None:
    part = METHODS[name]
    assert part.title and part.source and part.summary().endswith(".")
    assert METHODS.make(METHODS.dump(part())) == part()


@each_method()
def test_every_parameter_is_in_the_id(name: str) -> None:
    ids = {tiny_spec(method=part).id for part in (METHODS[name](), *parts_with_one_change(METHODS[name]()))}
    assert len(ids) == 1 + len(METHODS[name].model_fields)


@each_method()
def test_two_rounds_give_all_events(name: str) -> None:
    events = list(run(tiny_spec(method=least(name))))
    assert isinstance(events[-1], Finished) and events[-1].rounds == 2
    assert len(accuracies(events)) == 2 and all(value is not None for value in accuracies(events))
    for event in events:
        assert encode(decode(json.loads(json.dumps(encode(event), allow_nan=False)))) == encode(event)


@pytest.mark.slow
@each_method()
def test_the_same_bits_for_one_two_and_four_threads(name: str) -> None:
    spec = tiny_spec(method=least(name), model=DROPOUT)
    with_1, with_2, with_4 = (replayable(run(spec, threads=threads)) for threads in (1, 2, 4))
    assert with_1 == with_2 == with_4


@pytest.mark.slow
@each_method()
def test_the_same_bits_with_convolutions(name: str) -> None:
    spec = tiny_spec(method=least(name), model="lenet-sigmoid", rounds=1, sampled=3)
    assert replayable(run(spec, threads=1)) == replayable(run(spec, threads=3))


@each_method()
def test_another_seed_is_another_run(name: str) -> None:
    assert (
        replayable(run(tiny_spec(method=least(name), rounds=1)))[3:]
        != replayable(run(tiny_spec(method=least(name), rounds=1, seed=4)))[3:]
    )


@pytest.mark.slow
@each_method()
def test_a_run_resumed_from_any_state_ends_the_same(name: str) -> None:
    spec = tiny_spec(method=least(name), rounds=3)
    events = list(run(spec))
    for state in states_before(events, spec.rounds):
        resumed = replayable(run(spec, resume=state))
        whole = replayable(events)
        assert resumed == whole[-len(resumed) :]


@each_method()
def test_the_guarantee_uses_a_status_of_the_list(name: str) -> None:
    plan = make_plan(tiny_spec(method=least(name)))
    assert plan.guarantee.status in get_args(Status) and plan.guarantee.reason


@each_method()
def test_a_trial_is_the_same_method_with_at_most_its_work(name: str) -> None:
    plan = make_plan(tiny_spec(method=name))
    trial = plan.method.trial()
    assert (trial.name, trial.unit()) == (plan.method.name, plan.method.unit())
    full, short = (method.work(plan.world, 3) for method in (plan.method, trial))
    assert short.local_steps <= full.local_steps and short.server_steps <= full.server_steps
    assert short.decomposed <= full.decomposed and short.judged <= full.judged


@each_method()
def test_every_view_has_a_release_or_a_reason(name: str) -> None:
    plan = make_plan(tiny_spec(method=least(name)))
    views = set()
    for round in (1, 2):
        views |= {release.view for release in plan.method.releases(plan.world, round, plan.cohort(round))}
    assert views | set(plan.guarantee.absent) == set(VIEWS)
    assert not views & set(plan.guarantee.absent)


@each_method()
def test_without_a_unit_no_epsilon_is_claimed(name: str) -> None:
    spent = [event for event in run(tiny_spec(method=least(name))) if isinstance(event, Spent)]
    claimed = [event for event in spent if event.epsilon is not None]
    assert bool(claimed) == (METHODS[name]().unit() is not None)
    if not claimed:
        assert all(event.reason for event in spent)


@each_method()
def test_an_empty_round_leaves_finite_weights(name: str) -> None:
    spec = tiny_spec(method=least(name), sampling="poisson", sampled=1, rounds=20)
    plan = load_plan(spec)
    empty = next(round for round in range(1, 21) if not plan.cohort(round))
    with ThreadTeam(1) as team:
        after = train_round(plan, first_state(plan), empty, team)
    assert after.round == empty and all(torch.isfinite(tensor).all() for tensor in after.server.values())


@each_method()
def test_training_touches_neither_the_packet_nor_the_data(name: str) -> None:
    plan = load_plan(tiny_spec(method=least(name)))
    state = first_state(plan)
    before = {key: tensor.clone() for key, tensor in state.server.items()}
    pictures = [plan.client(client).x.clone() for client in plan.cohort(1)]
    generator_state = torch.random.get_rng_state()
    with ThreadTeam(2) as team:
        train_round(plan, state, 1, team)
    assert all(torch.equal(before[key], state.server[key]) for key in before)
    for client, x in zip(plan.cohort(1), pictures, strict=True):
        assert torch.equal(plan.client(client).x, x)
    assert torch.equal(generator_state, torch.random.get_rng_state())  # the global generator of torch is not used


@pytest.mark.slow
@each_method()
def test_a_probe_exists_in_every_view_that_applies(name: str) -> None:
    plan = load_plan(tiny_spec(method=least(name)))
    data = plan.spec.dataset.load()
    states = [event for event in run(plan.spec) if isinstance(event, Kept) and event.kind == "state"]
    with ThreadTeam(1) as team:
        victim = probe.make_victim(plan, 2, data.test_x[:2], data.test_y[:2])
        for view in VIEWS:
            if view in plan.guarantee.absent:
                continue
            exposure = probe.probe(plan, states, victim, view, team)
            assert exposure.view == view and exposure.protocol.pictures == 2
            received = numbers_of(exposure.upload)
            assert any(tensor.abs().sum() > 0 for tensor in received.values())
            replayed = numbers_of(probe.probe(plan, [], victim, view, team).upload)
            assert all(torch.equal(received[key], replayed[key]) for key in received)


@each_method()
def test_the_upload_depends_on_the_victims_pictures(name: str) -> None:
    plan = load_plan(tiny_spec(method=least(name)))
    data = plan.spec.dataset.load()
    exposures = []
    with ThreadTeam(1) as team:
        for place in (0, 1):
            victim = probe.make_victim(plan, 1, data.test_x[place : place + 1], data.test_y[place : place + 1])
            exposures.append(probe.probe(plan, [], victim, "server", team))
    first, second = (numbers_of(exposure.upload) for exposure in exposures)
    assert any(not torch.equal(first[key], second[key]) for key in first)


@each_method()
def test_the_recorded_upload_has_the_norm_the_protocol_allows(name: str) -> None:
    """The record of a protected method holds the clipped and noisy upload, never a clean gradient."""
    plan = make_plan(tiny_spec(method=least(name)))
    protocol = plan.method.protocol(plan.world, Seat(0, 0, 1, 1, 1, 6), "server")
    if protocol.clip != "whole-update":
        return
    assert protocol.bound is not None
    exposure = first_exposure(run(tiny_spec(method=least(name))))
    assert exposure.payload is not None
    received = [array for key, array in exposure.payload.items() if key.startswith("received/")]
    norm = sum(float((array.astype("float64") ** 2).sum()) for array in received) ** 0.5
    expected = exposure.facts["protocol"]["std"] * sum(array.size for array in received) ** 0.5
    assert abs(norm - expected) < protocol.bound + 0.05 * expected


def test_personal_parts_are_tested_and_never_sent() -> None:
    events = list(run(tiny_spec(method="test-private-head")))
    assert len(accuracies(events, "personal")) == 2
    exposure = first_exposure(events)
    assert exposure.payload is not None
    assert not [key for key in exposure.payload if key.startswith("received/head")]
    assert any(key.startswith("private/") for key in events[-2].payload)  # type: ignore[attr-defined]


def test_measured_classes_come_with_the_last_round() -> None:
    events = list(run(tiny_spec(method="fedavg")))
    classes = [event for event in events if isinstance(event, Measured) and event.who.startswith("class")]
    assert len(classes) == 10 and {event.round for event in classes} == {2}
    mean = sum(event.value or 0 for event in classes) / 10
    assert mean == pytest.approx(accuracies(events)[-1])  # classes are balanced


def test_noise_zero_promises_nothing() -> None:
    plan = make_plan(RunSpec(method={"name": "udp-fedavg", "noise": 0.0}, rounds=1))
    assert plan.guarantee.status == "none"
    releases = plan.method.releases(plan.world, 1, plan.cohort(1))
    assert all(isinstance(release.mechanism, Gaussian) for release in releases)
    assert plan.ledger(1).answer("server").value is None
