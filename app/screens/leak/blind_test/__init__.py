"""A visitor looks for the original of a reconstruction."""
