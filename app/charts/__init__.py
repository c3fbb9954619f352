"""One chart per file: collect(events), draw(info) and the chart in words. No Streamlit."""
