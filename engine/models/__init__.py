"""The shelf of models: one file each, found by name."""

from engine.models.base import MODELS, Dropout, Model

__all__ = ["MODELS", "Dropout", "Model"]
