"""Accuracy and loss of models on test data: over all of it, by class and by client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from engine.compute import weights
from engine.compute.sgd import parts_to_score, scores
from engine.compute.threads import ThreadTeam
from engine.errors import RunFailed
from engine.events import ByClass, Event, Measured
from engine.records import Weights
from engine.training.plan import LoadedPlan
from engine.training.state import State

REPORT_PICTURES = 500  # test pictures for the models in a method's report, the same number of each class


def measure(plan: LoadedPlan, state: State, team: ThreadTeam) -> Iterator[Event]:
    """Accuracy and loss of the global model; also by class after the last round, and of personal models."""
    if not weights.finite(state.server):
        raise RunFailed(
            f"round {state.round}: the weights are no longer finite numbers",
            "Lower the learning rate, the server step or the noise",
        )
    models = plan.method.judged(state.server, state.memory, state.privates)
    logits = test_logits(plan, models["global"], team)
    correct = logits.argmax(1) == plan.test_labels
    yield Measured(state.round, "accuracy", share(correct))
    yield Measured(state.round, "loss", float(functional.cross_entropy(logits, plan.test_labels)))
    if state.round == plan.last_round:
        yield from _by_class(plan, state.round, correct)
    for name, model in models.items():
        if isinstance(name, str) and name != "global":
            also_correct = test_logits(plan, model, team).argmax(1) == plan.test_labels
            yield Measured(state.round, "accuracy", share(also_correct), name)
    if any(isinstance(name, int) for name in models):
        yield Measured(state.round, "accuracy", personal(plan, models, correct, team), "personal")


def _by_class(plan: LoadedPlan, round: int, correct: Tensor) -> Iterator[Measured]:
    for label in range(plan.world.classes):
        yield Measured(round, "accuracy", share(correct[plan.test_labels == label]), f"class {label}")


def personal(plan: LoadedPlan, models: Mapping[str | int, Weights], correct: Tensor, team: ThreadTeam) -> float | None:
    """The mean over clients of each client's accuracy on its own test pictures.

    A client without a model of its own counts with the global model, whose predictions are `correct` or not.
    """

    def accuracy(client: int) -> float | None:
        places = plan.test[client]
        if not len(places):
            return None
        if client not in models:
            return share(correct[places])
        predictions = scores(plan.world, models[client], plan.test_x[places]).argmax(1)
        return share(predictions == plan.test_labels[places])

    accuracies = [value for value in team.each(accuracy, range(plan.world.clients)) if value is not None]
    return sum(accuracies) / len(accuracies) if accuracies else None


def accuracy_by_class(plan: LoadedPlan, team: ThreadTeam, models: Mapping[str, Tensor]) -> ByClass:
    """Accuracy by class of several models, on the first test pictures of every class.

    `models` holds stacked weights (clients, ...); the result has one row for each class.
    """
    classes = plan.world.classes
    per_class = max(1, REPORT_PICTURES // classes)
    firsts = [torch.nonzero(plan.test_labels == label).flatten()[:per_class] for label in range(classes)]
    places = torch.cat(firsts)
    parts = parts_to_score(plan.world, plan.test_x[places])
    labels = plan.test_labels[places]
    sizes = torch.bincount(labels, minlength=classes).tolist()

    def accuracies(client: int) -> list[float | None]:
        model = {name: stack[client] for name, stack in models.items()}
        logits = torch.cat([scores(plan.world, model, part) for part in parts])
        predictions = logits.argmax(1)
        correct = torch.bincount(labels[predictions == labels], minlength=classes).tolist()
        return [hits / size if size else None for hits, size in zip(correct, sizes, strict=True)]

    clients = range(len(next(iter(models.values()))))
    return tuple(zip(*team.each(accuracies, clients), strict=True))


def predict(plan: LoadedPlan, model: Weights, x: Tensor, team: ThreadTeam) -> Tensor:
    """Logits of `x`, computed in parallel."""
    return torch.cat(team.each(partial(scores, plan.world, model), parts_to_score(plan.world, x)))


def test_logits(plan: LoadedPlan, model: Weights, team: ThreadTeam) -> Tensor:
    """Logits of the test pictures, whose layout was prepared once for all rounds."""
    return torch.cat(team.each(partial(scores, plan.world, model), plan.test_parts))


def share(correct: Tensor) -> float | None:
    return int(correct.sum()) / len(correct) if len(correct) else None
