"""The points of the frontier in a table, and the details of the chosen point."""
