"""How a data set is shared among clients: a law drawn once, by which training and test pictures are dealt."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from engine.errors import BadInput, HomeError, MissingData, refusal
from engine.part import Part, Problem
from engine.registry import Shelf
from engine.seeds import Seeds

TRIES = 20  # laws drawn before a partition that leaves a client empty is refused


class Partition(Part):
    """A law of who holds how much of each class."""

    remedy: ClassVar[str] = "Take fewer clients or more pictures"

    def shares(self, frequencies: Tensor, clients: int, rng: torch.Generator) -> Tensor:
        """The law (classes, clients): row c says which part of class c each client holds, and sums to 1.

        `frequencies` (classes,) counts the training pictures of each class.
        """
        raise NotImplementedError

    def deal(self, labels: Tensor, shares: Tensor, rng: torch.Generator) -> list[Tensor]:
        """The places of each client's pictures, ascending; every picture goes to exactly one client.

        Within a class the pictures are shuffled and cut where the shares, summed up and rounded, say. The clients
        stand in another order for each class, so that what rounding leaves does not always fall to the same ones.
        """
        owner = torch.full((len(labels),), -1)
        for label, row in enumerate(shares):
            places = torch.nonzero(labels == label).flatten()
            order = torch.randperm(len(row), generator=rng)
            bounds = row[order].double().cumsum(0)
            bounds = (bounds / bounds[-1] * len(places)).round().long()
            counts = bounds.diff(prepend=bounds.new_zeros(1))
            shuffled = places[torch.randperm(len(places), generator=rng)]
            owner[shuffled] = order.repeat_interleave(counts)
        return by_owner(owner, shares.shape[1])

    def problems(self, spec: Any) -> tuple[Problem, ...]:
        try:
            facts = spec.dataset.facts()
        except (MissingData, HomeError):
            return ()  # the data set says so itself
        try:
            split(self, facts.train_y, facts.test_y, spec.clients, Seeds(spec.seed), spec.dataset.noun)
        except BadInput as bad:
            return (Problem(bad.message, bad.remedy),)
        return ()


def by_owner(owner: Tensor, clients: int) -> list[Tensor]:
    """(n,) owners -> for each client the ascending places it owns."""
    ends = torch.bincount(owner, minlength=clients).cumsum(0)
    return [part.clone() for part in owner.argsort(stable=True).tensor_split(ends[:-1])]


def split(
    partition: Partition, train_y: Tensor, test_y: Tensor, clients: int, seeds: Seeds, noun: str = "pictures"
) -> tuple[list[Tensor], list[Tensor]]:
    """The places of each client's training and test pictures, both dealt by one law.

    A law that leaves a client without a training picture is drawn anew, a few times; test parts may be empty.
    """
    if not 1 <= clients <= len(train_y):
        raise refusal(
            f"{partition.name}: clients", f"must be between 1 and the {len(train_y):,} training {noun}", clients
        )
    classes = 1 + int(max(train_y.max(), test_y.max() if len(test_y) else 0))
    frequencies = torch.bincount(train_y, minlength=classes).double()
    rng = seeds.rng("partition")
    for _ in range(TRIES):
        shares = partition.shares(frequencies, clients, rng)
        train = partition.deal(train_y, shares, rng)
        empty = [client for client, places in enumerate(train) if not len(places)]
        if not empty:
            return train, partition.deal(test_y, shares, seeds.rng("partition-test"))
    values = "".join(f", {name} {value}" for name, value in partition.values().items())
    raise BadInput(
        f"{partition.name}: client {empty[0]} would get no {noun}: every client must get at least one, "
        f"got {len(empty)} without any ({clients} clients, {len(train_y):,} {noun}{values})",
        partition.remedy,
    )


PARTITIONS: Shelf[Partition] = Shelf("engine.partitions", "partition")
