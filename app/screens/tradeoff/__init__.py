"""The screen Trade-off: accuracy against noise and against ε, for several methods."""
