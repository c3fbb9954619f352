"""The screens of the dashboard. Each `page.py` is a script that Streamlit runs at every pass."""
