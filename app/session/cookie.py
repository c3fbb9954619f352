"""The visitor of a browser, from its cookie. Uploaded pictures and what is made from them belong to visitors."""

from __future__ import annotations

import hashlib
import re
import secrets

COOKIE = "leaklens_visitor"  # random, and hidden from scripts of the page; app/server.py sets it
TOKEN = re.compile(r"[0-9a-f]{32}")
COOKIE_S = 12 * 3600  # kept this long after the last visit


def new_token() -> str:
    return secrets.token_hex(16)


def visitor_id(token: str | None) -> str:
    """The id of the browser with this cookie; empty without one.

    Privacy: the store holds this hash and never the cookie. With the cookie itself, a list of runs would be enough to
    open the pictures of another visitor.
    """
    if not isinstance(token, str) or not TOKEN.fullmatch(token):
        return ""
    return hashlib.sha256(token.encode()).hexdigest()[:16]
