"""Metrics that compare a reconstructed picture with its original."""
