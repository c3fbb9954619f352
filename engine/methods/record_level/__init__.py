"""Methods that protect one record: DP-SGD inside every client."""
