"""The IID partition."""

from __future__ import annotations

import torch

from engine.partitions import PARTITIONS, split
from engine.seeds import Seeds


def test_sizes_differ_by_at_most_one():
    labels = torch.arange(10).repeat(101)
    for clients in (1, 7, 100, 1010):
        for parts in split(PARTITIONS.make("iid"), labels, labels[:333], clients, Seeds(clients)):
            sizes = [len(part) for part in parts]
            assert max(sizes) - min(sizes) <= 1


def test_clients_hold_a_mix_of_classes():
    labels = torch.arange(10).repeat_interleave(1000)
    train, _ = split(PARTITIONS.make("iid"), labels, labels[:0], 10, Seeds(0))
    counts = torch.stack([torch.bincount(labels[part], minlength=10) for part in train])
    assert int(counts.min()) > 60 and int(counts.max()) < 140  # 100 expected, deviation 9
    assert int(counts.float().std() * 100) > 0  # drawn at random, not balanced
