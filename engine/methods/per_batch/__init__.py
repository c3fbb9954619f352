"""Methods whose clients upload one gradient for each batch."""
