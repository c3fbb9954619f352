"""All pictures of an ordinary upload."""
