"""Details of Try: what is behind the three panels, one entry open at a time."""
