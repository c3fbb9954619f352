"""The numbers behind the grid: scores, curves, promises and the attacks in words."""
