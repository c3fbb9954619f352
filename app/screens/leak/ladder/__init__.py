"""The ladder: the same upload, attacked from four views."""
