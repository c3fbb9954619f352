"""*Use your photo*: upload one, and delete it."""

from __future__ import annotations

import streamlit as st

from app.screens.start import requests, texts
from app.screens.start.requests import STATE
from app.session import messages, photos, session

# Types of MIME, not endings: with them a phone offers its camera next to its photos.
TYPES = ("image/png", "image/jpeg")


def control() -> None:
    """The button that opens the upload; for a photo also the ways back."""
    with st.popover(texts.USE_PHOTO, type="primary", key=requests.POPOVER, on_change="rerun"):
        trouble = STATE.trouble()
        if trouble:  # the popover covers the place where the page shows it
            messages.show("problem", trouble)
        st.caption(photos.where_it_goes())
        key = f"start-upload-{session.recall(requests.UPLOADS, 0)}"
        st.file_uploader(texts.UPLOAD, TYPES, key=key, on_change=lambda: requests.add_photo(session.recall(key)))
    if STATE.current().own:
        st.button(texts.DELETE, key="start-delete", on_click=requests.delete_photo)
        st.button(texts.PORTRAIT, key="start-portrait", type="tertiary", on_click=requests.show_portrait)
