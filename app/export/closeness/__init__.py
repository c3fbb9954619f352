"""The section "How close is this to your system?" of an exported page."""
