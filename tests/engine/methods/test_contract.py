"""What every method must keep, found on the shelf without editing this file; two doubles try the contract itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import torch

from engine.compute.threads import ThreadTeam
from engine.events import Finished, Kept, Measured, Spent, decode, encode
from engine.leakage import probe
from engine.methods import METHODS, Method
from engine.records import VIEWS, Gaussian, Seat, Status
from engine.specs.run import RunSpec
from engine.training.loop import run
from engine.training.plan import load_plan, make_plan
from engine.training.rounds import opening, play
from tests.engine.makers import accuracies, changed, tiny, told
from tests.engine.methods.makers import PrivateHead, Scaffold

DOUBLES: dict[str, type[Method]] = {"double-scaffold": Scaffold, "double-private-head": PrivateHead}
REAL = METHODS.names()
DROPOUT = {"name": "mlp", "dropout": 0.4, "hidden": 16}


@pytest.fixture(autouse=True)
def doubles() -> Iterator[None]:
    for name, double in DOUBLES.items():
        METHODS.add(name, title="a double", source="tests")(double)
    yield
    for name in DOUBLES:
        del METHODS._parts[name]


def each(*also: str) -> Any:
    return pytest.mark.parametrize("name", [*REAL, *(also or DOUBLES)])


@each()
def test_it_says_what_it_is(name: str) -> None:
    part = METHODS[name]
    assert part.title and part.source and part.summary().endswith(".")
    assert METHODS.make(METHODS.dump(part())) == part()


@each()
def test_every_parameter_is_in_the_id(name: str) -> None:
    ids = {tiny(method=part).id for part in (METHODS[name](), *changed(METHODS[name]()))}
    assert len(ids) == 1 + len(METHODS[name].model_fields)


@each()
def test_two_rounds_say_everything(name: str) -> None:
    events = list(run(tiny(method=name)))
    assert isinstance(events[-1], Finished) and events[-1].rounds == 2
    assert len(accuracies(events)) == 2 and all(value is not None for value in accuracies(events))
    for event in events:
        assert encode(decode(json.loads(json.dumps(encode(event), allow_nan=False)))) == encode(event)


@pytest.mark.slow
@each()
def test_the_same_bits_for_one_two_and_four_threads(name: str) -> None:
    spec = tiny(method=name, model=DROPOUT)
    once, twice, four = (told(run(spec, threads=threads)) for threads in (1, 2, 4))
    assert once == twice == four


@pytest.mark.slow
@each()
def test_the_same_bits_with_convolutions(name: str) -> None:
    spec = tiny(method=name, model="lenet-sigmoid", rounds=1, sampled=3)
    assert told(run(spec, threads=1)) == told(run(spec, threads=3))


@each()
def test_another_seed_is_another_run(name: str) -> None:
    assert told(run(tiny(method=name, rounds=1)))[3:] != told(run(tiny(method=name, rounds=1, seed=4)))[3:]


@pytest.mark.slow
@each()
def test_resumed_from_any_state_it_ends_the_same(name: str) -> None:
    spec = tiny(method=name, rounds=3)
    events = list(run(spec))
    for state in [one for one in events if isinstance(one, Kept) and one.kind == "state" and 0 < one.round < 3]:
        again = told(run(spec, resume=state))
        whole = told(events)
        assert again == whole[-len(again) :]


@each()
def test_the_promise_uses_the_words_of_one_list(name: str) -> None:
    plan = make_plan(tiny(method=name))
    assert plan.guarantee.status in get_args(Status) and plan.guarantee.reason


@each()
def test_every_view_has_a_price_or_a_reason(name: str) -> None:
    plan = make_plan(tiny(method=name))
    found = {
        release.view for round in (1, 2) for release in plan.method.releases(plan.world, round, plan.cohort(round))
    }
    assert found | set(plan.guarantee.absent) == set(VIEWS)
    assert not found & set(plan.guarantee.absent)


@each()
def test_without_a_unit_no_epsilon_is_claimed(name: str) -> None:
    events = list(run(tiny(method=name)))
    claimed = [one for one in events if isinstance(one, Spent) and one.epsilon is not None]
    assert bool(claimed) == (METHODS[name]().unit() is not None)
    if not claimed:
        assert all(one.reason for one in events if isinstance(one, Spent))


@each()
def test_an_empty_round_is_survived(name: str) -> None:
    spec = tiny(method=name, sampling="poisson", sampled=1, rounds=20)
    plan = load_plan(spec)
    empty = next(round for round in range(1, 21) if not plan.cohort(round))
    with ThreadTeam(1) as team:
        after = play(plan, opening(plan), empty, team)
    assert after.round == empty and all(torch.isfinite(tensor).all() for tensor in after.server.values())


@each()
def test_training_touches_neither_the_packet_nor_the_data(name: str) -> None:
    plan = load_plan(tiny(method=name))
    state = opening(plan)
    before = {key: tensor.clone() for key, tensor in state.server.items()}
    pictures = [plan.client(place).x.clone() for place in plan.cohort(1)]
    chance = torch.random.get_rng_state()
    with ThreadTeam(2) as team:
        play(plan, state, 1, team)
    assert all(torch.equal(before[key], state.server[key]) for key in before)
    assert all(torch.equal(plan.client(place).x, kept) for place, kept in zip(plan.cohort(1), pictures, strict=True))
    assert torch.equal(chance, torch.random.get_rng_state())  # torch's own generator rests


@pytest.mark.slow
@each()
def test_a_probe_exists_in_every_view_that_applies(name: str) -> None:
    plan = load_plan(tiny(method=name))
    data = plan.spec.dataset.load()
    states = [one for one in run(plan.spec) if isinstance(one, Kept) and one.kind == "state"]
    with ThreadTeam(1) as team:
        who = probe.victim(plan, 2, data.test_x[:2], data.test_y[:2])
        for view in VIEWS:
            if view in plan.guarantee.absent:
                continue
            seen = probe.probe(plan, states, who, view, team)
            assert seen.view == view and seen.protocol.pictures == 2
            assert any(tensor.abs().sum() > 0 for tensor in seen.received.values())
            replayed = probe.probe(plan, [], who, view, team)
            assert all(torch.equal(seen.received[key], replayed.received[key]) for key in seen.received)


@each()
def test_the_victims_pictures_are_what_the_upload_depends_on(name: str) -> None:
    plan = load_plan(tiny(method=name))
    data = plan.spec.dataset.load()
    with ThreadTeam(1) as team:
        seen = [
            probe.probe(
                plan, [], probe.victim(plan, 1, data.test_x[at : at + 1], data.test_y[at : at + 1]), "server", team
            )
            for at in (0, 1)
        ]
    assert any(not torch.equal(seen[0].received[key], seen[1].received[key]) for key in seen[0].received)


@each()
def test_the_recorded_upload_has_the_norm_the_protocol_allows(name: str) -> None:
    """Clipped and noised is what is recorded: never a clean gradient under a protected name."""
    plan = make_plan(tiny(method=name))
    protocol = plan.method.protocol(plan.world, Seat(0, 0, 1, 1, 1, 6), "server")
    if protocol.clip != "whole-update":
        return
    assert protocol.bound is not None
    exposure = next(one for one in run(tiny(method=name)) if isinstance(one, Kept) and one.kind == "exposure")
    assert exposure.payload is not None
    squares = [
        float((array.astype("float64") ** 2).sum())
        for key, array in exposure.payload.items()
        if key.startswith("received/")
    ]
    many = sum(array.size for key, array in exposure.payload.items() if key.startswith("received/"))
    expected = exposure.facts["protocol"]["std"] * many**0.5
    assert abs(sum(squares) ** 0.5 - expected) < protocol.bound + 0.05 * expected


def test_personal_parts_are_judged_and_never_sent() -> None:
    events = list(run(tiny(method="double-private-head")))
    assert len(accuracies(events, "personal")) == 2
    exposure = next(one for one in events if isinstance(one, Kept) and one.kind == "exposure")
    assert exposure.payload is not None
    assert not [key for key in exposure.payload if key.startswith("received/head")]
    assert any(key.startswith("private/") for key in events[-2].payload)  # type: ignore[attr-defined]


def test_scaffold_remembers_at_both_ends() -> None:
    """After one round with everybody, the server's control is the mean of the clients' controls."""
    plan = load_plan(tiny(method="double-scaffold", clients=4, sampling="all", sampled=4))
    with ThreadTeam(1) as team:
        state = play(plan, opening(plan), 1, team)
    for name, control in state.memory.items():
        mean = torch.stack([state.privates[client][name] for client in range(4)]).mean(0)
        torch.testing.assert_close(control, mean, rtol=1e-4, atol=1e-6)
        assert control.abs().sum() > 0


def test_measured_classes_come_with_the_last_round() -> None:
    events = list(run(tiny(method="fedavg")))
    classes = [one for one in events if isinstance(one, Measured) and one.who.startswith("class")]
    assert len(classes) == 10 and {one.round for one in classes} == {2}
    mean = sum(one.value or 0 for one in classes) / 10
    assert mean == pytest.approx(accuracies(events)[-1])  # classes are balanced


def test_a_gaussian_of_noise_zero_promises_nothing() -> None:
    plan = make_plan(RunSpec(method={"name": "udp-fedavg", "noise": 0.0}, rounds=1))
    assert plan.guarantee.status == "none"
    assert all(isinstance(one.law, Gaussian) for one in plan.method.releases(plan.world, 1, plan.cohort(1)))
    assert plan.ledger(1).answer("server").epsilon is None
