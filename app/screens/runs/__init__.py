"""The screen Runs."""
