"""Requests to the engine, frozen and validated: a run, an attack, a sweep, the tables of papers."""
