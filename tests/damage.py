"""The damage of `bench fuzz`, for the tests: those in contracts/ do not import the project."""

from engine.bench.damage import ODD_VALUES, changed_json, damage_store

__all__ = ["ODD_VALUES", "changed_json", "damage_store"]
