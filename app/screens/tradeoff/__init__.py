"""The screen Trade-off."""
