"""The pictures that visitors upload."""
