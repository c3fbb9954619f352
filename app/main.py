"""The navigation of the dashboard, and the entry point of `streamlit run app/main.py`."""

from __future__ import annotations

import sys
from pathlib import Path

root = str(Path(__file__).resolve().parent.parent)
if root not in sys.path:
    sys.path.insert(0, root)

import streamlit as st  # noqa: E402  (after the root is on the path)

if __name__ == "main":  # `streamlit run` imports this file under this name to serve it; a page runs it as `__main__`
    from app import server

    # Foreign pages are refused here. Streamlit would first look up this machine's external address, and wait for it.
    host_names = server.host_names(st.get_option("server.allowedHosts"))
    protection = server.protection(host_names, ())
    dashboard = st.App(Path(__file__), routes=server.start_pages(), middleware=protection)
else:
    from app import theme
    from app.session import observer
    from app.session.screens import navigation
    from app.texts import product
    from app.widgets.menu import menu

    page = st.navigation(navigation(), position="hidden")
    title = f"{page.title} · {product.PRODUCT}"
    st.set_page_config(page_title=title, layout="wide", initial_sidebar_state="collapsed")
    st.html(theme.CSS)
    observer.arrive()  # before the menu shows it
    menu()
    page.run()
