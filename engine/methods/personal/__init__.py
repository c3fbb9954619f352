"""Methods whose clients keep a part of the model for themselves."""
