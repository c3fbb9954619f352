"""The Lab screen: train a run and watch it."""
