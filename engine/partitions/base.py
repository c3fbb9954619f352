"""The base class of partitions, which distribute a data set to clients, and the function that applies one."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from engine.errors import BadInput, HomeError, MissingData, refusal
from engine.part import Part, Problem
from engine.registry import Shelf
from engine.seeds import Seeds

TRIES = 20  # draws of the shares before a partition that leaves a client empty is an error


class Partition(Part):
    """A rule for how much of each class every client holds."""

    remedy: ClassVar[str] = "Take fewer clients or more pictures"
    limits_classes: ClassVar[bool] = False  # whether a client has some classes only; which ones is declared public

    def shares(self, frequencies: Tensor, clients: int, rng: torch.Generator) -> Tensor:
        """The shares (classes, clients): row c holds each client's share of class c and sums to 1.

        `frequencies` (classes,) holds the number of training pictures of each class.
        """
        raise NotImplementedError

    def assign(self, labels: Tensor, shares: Tensor, rng: torch.Generator) -> list[Tensor]:
        """The places of each client's pictures, ascending. Every picture belongs to exactly one client.

        The pictures of a class are shuffled and cut at the rounded cumulative shares. Each class has its own order of
        clients, so that rounding does not always favour the same clients.
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
            return ()  # the data set reports this problem itself
        try:
            split(self, facts.train_y, facts.test_y, spec.clients, Seeds(spec.seed), spec.dataset.noun)
        except BadInput as error:
            return (Problem(error.message, error.remedy),)
        return ()


def by_owner(owner: Tensor, clients: int) -> list[Tensor]:
    """For each client the places that it owns, ascending. `owner` (n,) holds the client of each place."""
    ends = torch.bincount(owner, minlength=clients).cumsum(0)
    places_by_client = owner.argsort(stable=True).tensor_split(ends[:-1])
    return [places.clone() for places in places_by_client]


class Division(NamedTuple):
    """A data set divided among clients: the places of each client's training and test pictures, and its classes."""

    train: list[Tensor]
    test: list[Tensor]
    held: tuple[tuple[int, ...], ...]  # the classes of each client, as the partition declares them public


def split(
    partition: Partition, train_y: Tensor, test_y: Tensor, clients: int, seeds: Seeds, noun: str = "pictures"
) -> tuple[list[Tensor], list[Tensor]]:
    """The places of each client's training and test pictures."""
    division = divide(partition, train_y, test_y, clients, seeds, noun)
    return division.train, division.test


def divide(
    partition: Partition, train_y: Tensor, test_y: Tensor, clients: int, seeds: Seeds, noun: str = "pictures"
) -> Division:
    """The training and test pictures of every client. Both follow the same shares.

    If a client gets no training picture, the shares are drawn again, at most TRIES times. Test parts may be empty.
    """
    if not 1 <= clients <= len(train_y):
        rule = f"must be between 1 and the {len(train_y):,} training {noun}"
        raise refusal(f"{partition.name}: clients", rule, clients)
    largest_test_label = test_y.max() if len(test_y) else 0
    classes = 1 + int(max(train_y.max(), largest_test_label))
    frequencies = torch.bincount(train_y, minlength=classes).double()
    rng = seeds.rng("partition")
    for _ in range(TRIES):
        shares = partition.shares(frequencies, clients, rng)
        train = partition.assign(train_y, shares, rng)
        empty = [client for client, places in enumerate(train) if not len(places)]
        if not empty:
            test = partition.assign(test_y, shares, seeds.rng("partition-test"))
            return Division(train, test, _held(partition, shares))
    values = "".join(f", {name} {value}" for name, value in partition.values().items())
    raise BadInput(
        f"{partition.name}: client {empty[0]} would get no {noun}: every client must get at least one, "
        f"got {len(empty)} without any ({clients} clients, {len(train_y):,} {noun}{values})",
        partition.remedy,
    )


def _held(partition: Partition, shares: Tensor) -> tuple[tuple[int, ...], ...]:
    """The classes of each client.

    Privacy: they follow from the rule alone, or are all classes. Classes that were found in a client's data would
    reveal a class with a single record.
    """
    if not partition.limits_classes:
        return (tuple(range(len(shares))),) * shares.shape[1]
    return tuple(tuple(torch.nonzero(column > 0).flatten().tolist()) for column in shares.T)


PARTITIONS: Shelf[Partition] = Shelf("engine.partitions", "partition")
