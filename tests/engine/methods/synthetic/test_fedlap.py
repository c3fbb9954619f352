"""FedLAP: the server stays in the ball that the clients name, and pictures come from gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.compute import weights
from engine.compute.threads import ThreadTeam
from engine.errors import BadInput
from engine.methods.synthetic.base import shortened
from engine.methods.synthetic.fedlap import RADIUS, FedLAP
from engine.records import Upload, Weights
from engine.training.plan import LoadedPlan, load_plan, make_plan
from engine.training.rounds import client_contexts, first_state, server_context, train_round
from tests.engine.makers import tiny_spec

FEW = {"stops": 1, "batches": 1, "boost": 2, "per-class": 2, "server-steps": 5}
TWO_CLASSES = {"name": "classes-per-client", "classes": 2}


def loaded_plan(**fields: Any) -> LoadedPlan:
    method = {"name": "fedlap", **FEW, **fields.pop("method", {})}
    settings = {"clients": 5, "sampled": 5, "sampling": "all", "partition": TWO_CLASSES, "rounds": 3, **fields}
    return load_plan(tiny_spec(method=method, model={"name": "mlp", "hidden": 8}, **settings))


def uploads_of(plan: LoadedPlan) -> list[Upload]:
    state = first_state(plan)
    with ThreadTeam(1) as team:
        contexts = client_contexts(plan, plan.cohort(1), 1, 1, 1, team)
        packets = [plan.method.send(context.seat, state.server, state.memory) for context in contexts]
        clients = [plan.client(context.seat.client) for context in contexts]
        return [upload for upload, _ in plan.method.train_all(clients, packets, [None] * len(clients), contexts)]


def merged(plan: LoadedPlan, uploads: list[Upload]) -> Weights:
    with ThreadTeam(1) as team:
        context = server_context(plan, plan.cohort(1), 1, 1, 1, team)
        return plan.method.merge(plan.world.weights, uploads, {}, context)[0]


def distance(plan: LoadedPlan, server: Weights) -> float:
    return weights.norm(weights.subtract(server, plan.world.weights))


@pytest.mark.parametrize(("strategy", "place"), [("min", 0), ("median", 2), ("max", 4)])
def test_the_server_ends_on_the_ball_of_its_strategy(strategy: str, place: int) -> None:
    plan = loaded_plan(method={"strategy": strategy, "server-steps": 200, "server-step": 3.0}, lr=0.3)
    uploads = uploads_of(plan)
    radii = [0.11, 0.23, 0.31, 0.47, 0.6]
    named = [
        Upload(up.client, up.kind, samples=up.samples, public={RADIUS: r}) for up, r in zip(uploads, radii, strict=True)
    ]
    reached = distance(plan, merged(plan, named))
    assert radii[place] * (1 - 1e-4) <= reached <= radii[place]


def test_fixed_takes_all_its_steps_and_keeps_to_no_ball() -> None:
    plan = loaded_plan(method={"strategy": "fixed", "radius": 0.01}, lr=0.3)
    uploads = uploads_of(plan)
    assert all(upload.public == {} for upload in uploads)
    assert distance(plan, merged(plan, uploads)) > 0.01


def test_a_short_way_is_not_made_longer() -> None:
    plan = loaded_plan(method={"server-steps": 1}, lr=1e-4)
    assert 0 < distance(plan, merged(plan, uploads_of(plan))) < 1e-3


def test_the_point_on_the_ball_lies_on_the_step() -> None:
    rng = torch.Generator().manual_seed(2)
    start, before, after = ({"w": torch.randn(50, generator=rng)} for _ in range(3))
    before = {"w": start["w"] + 0.01 * before["w"]}
    point = shortened(start, before, after, 1.0)
    assert float((point["w"] - start["w"]).norm()) == pytest.approx(1.0, abs=1e-5)
    step, way = after["w"] - before["w"], point["w"] - before["w"]
    assert float(torch.dot(step, way) / step.norm() / way.norm()) == pytest.approx(1.0, abs=1e-6)
    assert 0 < float(way.norm() / step.norm()) < 1


def test_the_radius_is_where_the_real_loss_is_least() -> None:
    """The loss at the named distance, on the way that the pictures lead, is smaller than at both ends."""
    plan = loaded_plan(method={"server-steps": 60, "batches": 10, "boost": 10, "radius": 50.0}, lr=0.2)
    for upload in uploads_of(plan):
        assert 0 < upload.public[RADIUS] <= 50.0


def test_pictures_are_equally_many_of_each_declared_class() -> None:
    plan = loaded_plan()
    for upload in uploads_of(plan):
        assert upload.samples is not None
        held = plan.world.held[upload.client]
        assert upload.samples.y.tolist() == [label for label in held for _ in range(2)]


def test_real_pictures_leave_the_client() -> None:
    plan = loaded_plan(method={"begins": "real", "image-lr": 1e-6})
    for upload in uploads_of(plan):
        client = plan.client(upload.client)
        assert upload.samples is not None
        for picture, label in zip(upload.samples.x, upload.samples.y, strict=True):
            apart = (client.x[client.y == label] - picture).flatten(1).norm(dim=1)
            assert float(apart.min()) < 1e-3


def test_a_client_goes_on_with_its_pictures() -> None:
    plan = loaded_plan(method={"image-lr": 1e-9})
    with ThreadTeam(1) as team:
        first = train_round(plan, first_state(plan), 1, team)
        before = {client: private["pictures"].clone() for client, private in first.privates.items()}
        second = train_round(plan, first, 2, team)
    for client, private in second.privates.items():
        torch.testing.assert_close(private["pictures"], before[client], rtol=0, atol=1e-4)


def test_the_learning_rate_falls_as_half_a_cosine() -> None:
    world = make_plan(tiny_spec(method="fedlap", rounds=4, lr=0.2)).world
    rates = [FedLAP().rate(world, round) for round in (1, 3)]
    assert rates == pytest.approx([0.2, 0.1])
    assert FedLAP(decay="none").rate(world, 3) == 0.2


def test_calibration_gives_the_server_the_lengths_of_the_real_gradient() -> None:
    plan = loaded_plan(
        method={"matching": "calibrated", "strategy": "fixed", "server-steps": 1}, clients=1, sampled=1,
        partition="iid", lr=1.0, rounds=1,
    )  # fmt: skip
    (upload,) = uploads_of(plan)
    change = weights.subtract(merged(plan, [upload]), plan.world.weights)
    lengths = upload.extra["lengths"]
    for name, tensor in change.items():
        assert float(tensor.norm()) == pytest.approx(float(lengths[name]), rel=1e-4)


@pytest.mark.parametrize(
    ("method", "run", "words"),
    [
        ({"matching": "calibrated"}, {}, "one client and one batch"),
        ({"radius": 0.0}, {}, "radius: must be a number above 0"),
        ({"begins": "real", "per-class": 500}, {"clients": 40, "sampled": 40}, "per-class: must be at most"),
        ({}, {"dataset": "movie-reviews", "model": "lstm", "partition": "iid"}, "makes pictures, and movie-reviews"),
    ],
)
def test_what_cannot_work_is_refused_before_the_run(method: dict[str, Any], run: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        settings = {"clients": 5, "sampled": 5, "sampling": "all", "partition": TWO_CLASSES, **run}
        make_plan(tiny_spec(method={"name": "fedlap", **method}, **settings))


def test_fedlap_dp_offers_nothing_that_reads_the_data_without_noise() -> None:
    for field, value in (("begins", "real"), ("matching", "calibrated"), ("strategy", "min")):
        with pytest.raises(BadInput, match=field):
            make_plan(tiny_spec(method={"name": "fedlap-dp", field: value}))
