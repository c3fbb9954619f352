"""Exports one run or attack as a single HTML file without links to other files: pictures, curves, ε and its limits."""

from app.export.document import page

__all__ = ["page"]
