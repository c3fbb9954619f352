"""Methods whose clients upload pictures that they made."""
