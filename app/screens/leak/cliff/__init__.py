"""How much noise hides the picture: a series of noises."""
