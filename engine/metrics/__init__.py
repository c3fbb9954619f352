"""The shelf of metrics: how close a guess is to the truth."""

from engine.metrics.base import METRICS, Metric

__all__ = ["METRICS", "Metric"]
