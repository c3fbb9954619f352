"""The partition into shards of pictures sorted by label."""

from __future__ import annotations

import torch

from engine.partitions import PARTITIONS, split
from engine.seeds import Seeds


def test_equal_shards_of_few_classes():
    labels = torch.arange(10).repeat(1200)
    for per_client in (1, 2, 3):
        train, _ = split(PARTITIONS.make({"name": "shards", "per-client": per_client}), labels, labels, 100, Seeds(0))
        assert {len(part) for part in train} == {120}
        classes = [len(labels[part].unique()) for part in train]
        assert max(classes) <= 2 * per_client and sum(classes) / 100 < 1.7 * per_client


def test_two_shards_of_one_class_each_hold_at_most_two_classes():
    labels = torch.arange(10).repeat_interleave(600)
    train, test = split(PARTITIONS.make("shards"), labels, labels[::3], 100, Seeds(4))
    assert all(len(labels[part].unique()) <= 2 for part in train)
    for train_places, test_places in zip(train, test, strict=True):
        assert torch.equal(labels[train_places].unique(), labels[::3][test_places].unique())


def test_clients_get_different_shards_for_different_seeds():
    frequencies = torch.full((10,), 600.0)
    shares = [PARTITIONS.make("shards").shares(frequencies, 50, Seeds(seed).rng("law")) for seed in (0, 1)]
    assert not torch.equal(*shares)
