"""The shelf of partitions: one file per partition."""

from engine.partitions.base import PARTITIONS, Partition, split

__all__ = ["PARTITIONS", "Partition", "split"]
