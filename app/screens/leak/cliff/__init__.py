"""The cliff: how much noise hides the picture, measured over a series of noises."""
