"""The shelf of data sets: one file each, found by name."""

from engine.datasets.base import DATASETS, DataFolders, Dataset, DatasetFacts, LoadedData

__all__ = ["DATASETS", "DataFolders", "Dataset", "DatasetFacts", "LoadedData"]
