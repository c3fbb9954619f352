"""Thin pages: each is one script that Streamlit runs at every pass."""
