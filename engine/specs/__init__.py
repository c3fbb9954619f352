"""Specs: frozen, validated requests for a run, an attack, a sweep or a paper table."""
