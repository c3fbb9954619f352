"""What a page says, and nothing else: no Streamlit, no store."""
