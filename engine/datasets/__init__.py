"""The shelf of data sets: one file per data set."""

from engine.datasets.base import DATASETS, DataFolders, Dataset, DatasetFacts, LoadedData

__all__ = ["DATASETS", "DataFolders", "Dataset", "DatasetFacts", "LoadedData"]
