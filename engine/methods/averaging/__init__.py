"""Methods that average models and protect nothing."""
