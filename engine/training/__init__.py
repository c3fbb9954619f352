"""A run: the plan, the rounds, the evaluation, and the forecast before it."""
