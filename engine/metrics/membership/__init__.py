"""Metrics of membership: how well scores tell members from other records."""
