"""Requesting runs, following them and showing them."""
