"""How well models do on test data: after a round, by class, by client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from engine.compute import weights
from engine.compute.sgd import scores
from engine.compute.threads import ThreadTeam
from engine.errors import RunFailed
from engine.events import ByClass, Event, Measured
from engine.records import Weights
from engine.training.plan import LoadedPlan
from engine.training.state import State

JUDGED = 500  # test pictures on which a method has its models judged, as many of each class


def measure(plan: LoadedPlan, state: State, team: ThreadTeam) -> Iterator[Event]:
    """Accuracy and loss on the test pictures; per class at the last round; per client where models are personal."""
    if not weights.finite(state.server):
        raise RunFailed(
            f"round {state.round}: the weights are no longer finite numbers",
            "Lower the learning rate, the server step or the noise",
        )
    judged = plan.method.judged(state.server, state.memory, state.privates)
    logits = predict(plan, judged["global"], plan.test_x, team)
    right = logits.argmax(1) == plan.test_labels
    yield Measured(state.round, "accuracy", share(right))
    yield Measured(state.round, "loss", float(functional.cross_entropy(logits, plan.test_labels)))
    if state.round == plan.last:
        for label in range(plan.world.classes):
            yield Measured(state.round, "accuracy", share(right[plan.test_labels == label]), f"class {label}")
    for name, model in judged.items():
        if isinstance(name, str) and name != "global":
            other = predict(plan, model, plan.test_x, team).argmax(1) == plan.test_labels
            yield Measured(state.round, "accuracy", share(other), name)
    if any(isinstance(name, int) for name in judged):
        yield Measured(state.round, "accuracy", personal(plan, judged, right, team), "personal")


def personal(plan: LoadedPlan, judged: Mapping[str | int, Weights], right: Tensor, team: ThreadTeam) -> float | None:
    """The mean over clients of each one's accuracy on its own test pictures; the rest use the global model."""

    def one(client: int) -> float | None:
        places = plan.test[client]
        if not len(places):
            return None
        if client not in judged:
            return share(right[places])
        return share(scores(plan.world, judged[client], plan.test_x[places]).argmax(1) == plan.test_labels[places])

    found = [value for value in team.each(one, range(plan.world.clients)) if value is not None]
    return sum(found) / len(found) if found else None


def judge(plan: LoadedPlan, team: ThreadTeam, models: Mapping[str, Tensor]) -> ByClass:
    """Accuracy by class of each of these models (clients, ...), on the first test pictures of every class."""
    most, classes = max(1, JUDGED // plan.world.classes), plan.world.classes
    places = torch.cat([torch.nonzero(plan.test_labels == label).flatten()[:most] for label in range(classes)])
    x, labels = plan.test_x[places], plan.test_labels[places]
    sizes = torch.bincount(labels, minlength=classes).tolist()

    def one(client: int) -> list[float | None]:
        model = {name: stack[client] for name, stack in models.items()}
        found = torch.cat([scores(plan.world, model, part) for part in x.split(part_size(plan))]).argmax(1)
        right = torch.bincount(labels[found == labels], minlength=classes).tolist()
        return [hits / size if size else None for hits, size in zip(right, sizes, strict=True)]

    return tuple(zip(*team.each(one, range(len(next(iter(models.values()))))), strict=True))


def predict(plan: LoadedPlan, model: Weights, x: Tensor, team: ThreadTeam) -> Tensor:
    """Logits, the pictures shared by the team in parts that stay in the cache."""
    return torch.cat(team.each(partial(scores, plan.world, model), x.split(part_size(plan))))


def part_size(plan: LoadedPlan) -> int:
    return 1000 if plan.world.stacked else 100


def share(right: Tensor) -> float | None:
    return int(right.sum()) / len(right) if len(right) else None
