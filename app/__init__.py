"""The dashboard: what a person sees and touches; it asks the engine, and never computes."""
