"""The shelf of data sets: one file each, found by name."""

from engine.datasets.base import DATASETS, Data, Dataset, Facts, Places

__all__ = ["DATASETS", "Data", "Dataset", "Facts", "Places"]
