"""Exports results as single HTML files without links to other files: pictures, curves, ε and its limits."""

from app.export.pages import page

__all__ = ["page"]
