"""The shelf of metrics: how much an attack learned."""

from engine.metrics.base import METRICS, Metric, available

__all__ = ["METRICS", "Metric", "available"]
