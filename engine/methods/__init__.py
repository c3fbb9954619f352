"""The shelf of federated learning methods."""

from engine.methods.base import METHODS, Method

__all__ = ["METHODS", "Method"]
