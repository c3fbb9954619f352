"""Start: what the server rebuilds from one upload, and what hiding it costs."""
