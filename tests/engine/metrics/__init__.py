"""The tests of the metrics."""
