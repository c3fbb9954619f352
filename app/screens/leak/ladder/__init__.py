"""The same upload as four adversaries see it."""
