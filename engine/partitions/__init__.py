"""The shelf of partitions: one file per partition."""

from engine.partitions.base import PARTITIONS, Division, Partition, divide, split

__all__ = ["PARTITIONS", "Division", "Partition", "divide", "split"]
