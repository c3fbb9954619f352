"""One run or attack as a single HTML file that needs nothing else: pictures, curves, ε with its words, limits."""

from app.export.document import page

__all__ = ["page"]
