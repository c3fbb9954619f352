"""One chart per file. Each has collect(events), draw(infos) and describe(infos). Nothing here uses Streamlit."""
