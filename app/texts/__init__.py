"""The texts of the pages. Nothing here uses Streamlit or the store."""
