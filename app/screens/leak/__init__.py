"""The screen Leak."""
