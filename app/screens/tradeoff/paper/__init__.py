"""A paper's table in place of your own sweep."""
