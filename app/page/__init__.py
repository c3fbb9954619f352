"""One page of a run or of an attack that needs nothing else: pictures, curves, ε with its words, limits."""

from app.page.document import page

__all__ = ["page"]
