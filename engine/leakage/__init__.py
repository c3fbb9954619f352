"""Attacks on what a run uploads: the probe, the target, and the judge, which alone has the truth."""
