"""Training a run: its plan, rounds, evaluation and exposures, and the forecast before it starts."""
