"""The screen Machine."""
