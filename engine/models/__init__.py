"""The shelf of models: one file per model."""

from engine.models.base import MODELS, Dropout, Model

__all__ = ["MODELS", "Dropout", "Model"]
