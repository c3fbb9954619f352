"""Methods that protect a whole client: clip its update and add noise."""
