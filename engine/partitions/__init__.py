"""The shelf of partitions: one file each, found by name."""

from engine.partitions.base import PARTITIONS, Partition, split

__all__ = ["PARTITIONS", "Partition", "split"]
