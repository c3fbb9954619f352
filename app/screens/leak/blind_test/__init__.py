"""The blind test: you look for the original of a reconstruction."""
