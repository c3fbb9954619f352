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


def measure(scene: LoadedPlan, state: State, crew: ThreadTeam) -> Iterator[Event]:
    """Accuracy and loss on the test pictures; per class at the last round; per client where models are personal."""
    if not weights.finite(state.server):
        raise RunFailed(
            f"round {state.round}: the weights are no longer finite numbers",
            "Lower the learning rate, the server step or the noise",
        )
    judged = scene.method.judged(state.server, state.memory, state.privates)
    logits = predict(scene, judged["global"], scene.test_x, crew)
    right = logits.argmax(1) == scene.test_labels
    yield Measured(state.round, "accuracy", share(right))
    yield Measured(state.round, "loss", float(functional.cross_entropy(logits, scene.test_labels)))
    if state.round == scene.last:
        for label in range(scene.world.classes):
            yield Measured(state.round, "accuracy", share(right[scene.test_labels == label]), f"class {label}")
    for name, model in judged.items():
        if isinstance(name, str) and name != "global":
            other = predict(scene, model, scene.test_x, crew).argmax(1) == scene.test_labels
            yield Measured(state.round, "accuracy", share(other), name)
    if any(isinstance(name, int) for name in judged):
        yield Measured(state.round, "accuracy", personal(scene, judged, right, crew), "personal")


def personal(scene: LoadedPlan, judged: Mapping[str | int, Weights], right: Tensor, crew: ThreadTeam) -> float | None:
    """The mean over clients of each one's accuracy on its own test pictures; the rest use the global model."""

    def one(client: int) -> float | None:
        places = scene.test[client]
        if not len(places):
            return None
        if client not in judged:
            return share(right[places])
        return share(scores(scene.world, judged[client], scene.test_x[places]).argmax(1) == scene.test_labels[places])

    found = [value for value in crew.each(one, range(scene.world.clients)) if value is not None]
    return sum(found) / len(found) if found else None


def judge(scene: LoadedPlan, crew: ThreadTeam, models: Mapping[str, Tensor]) -> ByClass:
    """Accuracy by class of each of these models (clients, ...), on the first test pictures of every class."""
    most, classes = max(1, JUDGED // scene.world.classes), scene.world.classes
    places = torch.cat([torch.nonzero(scene.test_labels == label).flatten()[:most] for label in range(classes)])
    x, labels = scene.test_x[places], scene.test_labels[places]
    sizes = torch.bincount(labels, minlength=classes).tolist()

    def one(client: int) -> list[float | None]:
        model = {name: stack[client] for name, stack in models.items()}
        found = torch.cat([scores(scene.world, model, part) for part in x.split(part_size(scene))]).argmax(1)
        right = torch.bincount(labels[found == labels], minlength=classes).tolist()
        return [hits / size if size else None for hits, size in zip(right, sizes, strict=True)]

    return tuple(zip(*crew.each(one, range(len(next(iter(models.values()))))), strict=True))


def predict(scene: LoadedPlan, model: Weights, x: Tensor, crew: ThreadTeam) -> Tensor:
    """Logits, the pictures shared by the crew in parts that stay in the cache."""
    return torch.cat(crew.each(partial(scores, scene.world, model), x.split(part_size(scene))))


def part_size(scene: LoadedPlan) -> int:
    return 1000 if scene.world.stacked else 100


def share(right: Tensor) -> float | None:
    return int(right.sum()) / len(right) if len(right) else None
