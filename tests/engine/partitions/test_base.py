"""The assignment of pictures to clients by their shares."""

from __future__ import annotations

import torch

from engine.partitions import Partition
from engine.seeds import Seeds


def test_each_class_is_cut_at_the_rounded_shares():
    labels = torch.arange(3).repeat(1000)
    shares = torch.tensor([[0.5, 0.25, 0.25, 0.0], [0.0, 0.0, 0.0, 1.0], [0.1, 0.2, 0.3, 0.4]], dtype=torch.float64)
    parts = Partition().assign(labels, shares, Seeds(0).rng("deal"))
    counts = torch.stack([torch.bincount(labels[part], minlength=3) for part in parts], 1)
    assert counts.tolist() == [[500, 250, 250, 0], [0, 0, 0, 1000], [100, 200, 300, 400]]


def test_a_client_without_a_share_gets_no_picture():
    shares = torch.tensor([[1 / 3, 0.0, 1 / 3, 0.0, 1 / 3]], dtype=torch.float64)
    for seed in range(20):
        parts = Partition().assign(torch.zeros(7, dtype=torch.int64), shares, Seeds(seed).rng("deal"))
        assert not len(parts[1]) and not len(parts[3])


def test_rounding_does_not_always_favour_the_same_client():
    labels = torch.arange(50).repeat_interleave(3)  # 3 pictures of each class for 2 clients: one client gets two
    parts = Partition().assign(labels, torch.full((50, 2), 0.5, dtype=torch.float64), Seeds(0).rng("deal"))
    favoured = int((torch.bincount(labels[parts[0]], minlength=50) == 2).sum())
    assert 10 < favoured < 40
