"""Text runs through the same loop as pictures: every method learns from it, and picture attacks refuse it."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch

from engine.errors import BadInput
from engine.events import Event, Kept, Started, Warned
from engine.jobs.home import Home
from engine.jobs.thumbnails import classes, thumbnails
from engine.leakage.compatibility import first_problem, handles_pictures, problem, refuse
from engine.leakage.probe import make_victim
from engine.leakage.target import AttackResources
from engine.methods import METHODS
from engine.methods.synthetic.base import Synthetic
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from engine.training.forecast import activations, forecast, memory
from engine.training.loop import run
from engine.training.plan import load_plan, make_plan
from tests.engine.makers import accuracies, replayable, tiny_spec

SMALL: dict[str, Any] = {"name": "lstm", "words": 60, "width": 4, "hidden": 4}
FIELDS: dict[str, Any] = {"dataset": {"name": "movie-reviews", "length": 12}, "model": SMALL, "sampled": 4}


def few(**more: Any) -> RunSpec:
    return tiny_spec(**{**FIELDS, **more})


@cache
def events(method: str, threads: int) -> tuple[Event, ...]:
    return tuple(run(few(method=method), threads=threads))


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [method.name for method in METHODS if not issubclass(method, Synthetic)]
)  # the others make pictures
def test_every_method_learns_from_text_and_the_bits_do_not_depend_on_threads(method: str) -> None:
    alone = events(method, 1)
    assert accuracies(alone)[-1] is not None
    started = next(event for event in alone if isinstance(event, Started))
    assert started.facts["classes"] == ["negative", "positive"] and started.facts["parameters"] == 60 * 4 + 160 + 10
    assert replayable(alone) == replayable(events(method, 3))


@pytest.mark.parametrize("method", ["fedavg", "udp-fedavg", "dp-fedavg"])
def test_the_truth_of_a_run_on_text_is_rows_of_words(method: str) -> None:
    plan = load_plan(few(method=method))
    truths = [event for event in events(method, 1) if isinstance(event, Kept) and event.kind == "truth"]
    assert len(truths) == 2
    for truth in truths:
        assert truth.payload is not None and set(truth.payload) == {"sentences", "labels"}
        rows = {tuple(row) for row in plan.client(truth.facts["client"]).x.tolist()}
        assert len(truth.payload["labels"]) == len(truth.payload["sentences"]) > 0
        assert {tuple(row) for row in truth.payload["sentences"].tolist()} <= rows


def test_words_stay_integers() -> None:
    plan = load_plan(few())
    data = plan.spec.dataset.load()
    assert plan.world.shape == (12,) and not plan.world.pictures and plan.world.mean == plan.world.std == ()
    assert plan.test_x.dtype == torch.int64 and torch.equal(plan.test_x, data.test_x)
    for client in (plan.client(0), plan.client(39)):
        assert client.x.dtype == torch.int64 and torch.equal(client.x, data.train_x[plan.train[client.id]])


@pytest.mark.slow
def test_the_default_model_learns_to_classify_reviews() -> None:
    spec = RunSpec(
        dataset="movie-reviews", model="lstm", clients=10, sampled=5, rounds=8, epochs=1, batch=16, lr=1.0, seed=1
    )
    curve = [value for value in accuracies(run(spec, threads=2)) if value is not None]
    assert curve[0] < 0.6 < 0.63 < curve[-1]


def test_the_forecast_of_a_run_on_text_is_complete() -> None:
    spec = few(method="dp-fedavg")
    prediction = forecast(spec)
    assert prediction.seconds and not prediction.fatal and prediction.facts["parameters"] == 60 * 4 + 160 + 10
    (problem,) = prediction.problems
    assert "training sentences of all clients" in problem.reason
    assert problem.reason in [event.reason for event in events("dp-fedavg", 1) if isinstance(event, Warned)]
    assert memory(make_plan(spec), 1) > 0
    assert activations(spec.model, (12,), 2) == 12 * 4 + 12 * 4 + 2  # vectors, states, logits


# --- text is not a picture ---------------------------------------------------------------------------------


def test_models_of_pictures_and_of_text_are_not_mixed_up() -> None:
    for fields, message in (
        ({"model": "mlp"}, "mlp: needs pictures, got sentences of 12 words"),
        ({"model": "lenet5"}, "lenet5: needs pictures"),
        ({"dataset": "mnist"}, "lstm: needs text, got pictures of shape"),
    ):
        spec = few(**fields)
        assert forecast(spec).fatal
        with pytest.raises(BadInput, match=message):
            make_plan(spec)


@pytest.mark.parametrize("pictures", [(), ("test-0",)])
def test_an_attack_on_text_is_refused_before_it_begins(pictures: tuple[str, ...]) -> None:
    spec = AttackSpec(run=few(), attack="map", pictures=pictures)
    plan = make_plan(spec.run)
    refusal = first_problem(spec, plan, plan.world.build(torch.Generator()))
    assert refusal is not None and refusal == problem(spec)
    assert refusal.reason == "looks for pictures, and movie-reviews holds sentences"
    assert refusal.remedy == "Choose a run that learns from pictures"
    with pytest.raises(BadInput, match=r"^attack: map: looks for pictures"):
        refuse(spec, AttackResources())


def test_a_probe_with_text_is_refused() -> None:
    plan = load_plan(few())
    with pytest.raises(BadInput, match="the run learns from text"):
        make_victim(plan, 1, plan.test_x[:1], plan.test_labels[:1])


def test_a_sentence_has_no_thumbnail_and_delta_counts_sentences() -> None:
    with pytest.raises(BadInput, match="must be 1 or 3 channels"):
        thumbnails("movie-reviews", ["test-0"], Home.find())
    assert classes("movie-reviews") == ("negative", "positive")
    with pytest.raises(BadInput, match=r"for 6824 sentences, got 0\.1"):
        make_plan(few(method="dp-fedavg", delta=0.1))


def test_the_name_of_a_part_decides_whether_it_is_for_pictures() -> None:
    assert [handles_pictures("dataset", name) for name in ("cifar10", "emnist", "movie-reviews", "sentiment140")] == [
        True, True, False, False,
    ]  # fmt: skip
    assert [handles_pictures("model", name) for name in ("mlp", "alexnet", "lstm")] == [True, True, False]
