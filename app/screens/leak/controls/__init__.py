"""The controls of the Leak screen apart from the picture: the upload, the attacker, the columns."""
