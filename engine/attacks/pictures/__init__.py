"""Attacks that reconstruct pictures from an upload."""
