"""The shelf of methods: ways to learn together."""

from engine.methods.base import METHODS, Method

__all__ = ["METHODS", "Method"]
