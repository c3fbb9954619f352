"""The Runs screen: the list of all runs and attacks."""
