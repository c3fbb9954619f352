"""Methods whose clients keep a private part of the model."""
