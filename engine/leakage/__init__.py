"""Attacks on what a run uploads: the probe, the target, and the judge that alone knows the truth."""
