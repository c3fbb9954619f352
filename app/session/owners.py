"""Access to uploaded pictures in class mode, and to the runs whose spec names them.

A visitor sees their own pictures and the attacks on them. For every other visitor there is "no such picture".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from typing import Any

COOKIE = "_streamlit_xsrf"  # holds a random token for each browser: 2|mask|masked token|time
TOKEN_BYTES = 16  # a shorter one was not made by the server, and could be another visitor's by chance
OWN_PICTURE = re.compile(r"own-([0-9a-f]{16})")


def visitor_id(address: str | None, cookie: str | None) -> str:
    """An id for the browser with this cookie; empty without a token.

    The id keeps pictures private, so it needs the token: everyone behind one router has the same address, and an id
    from the address alone would let them see each other's pictures.
    """
    token = _token(cookie or "")
    if not token:
        return ""
    return hashlib.sha256(f"{address or ''}/{token}".encode()).hexdigest()[:12]


def _token(cookie: str) -> str:
    """The token without its mask. The server masks the same token differently for every page."""
    try:
        _, mask_hex, masked_hex, _ = cookie.split("|")
        mask = bytes.fromhex(mask_hex)
        masked = bytes.fromhex(masked_hex)
    except ValueError:
        return ""
    if not mask or len(masked) < TOKEN_BYTES:
        return ""
    return bytes(byte ^ mask[place % len(mask)] for place, byte in enumerate(masked)).hex()


def own_pictures(spec: Mapping[str, Any]) -> frozenset[str]:
    """The names of the uploaded pictures anywhere in a spec."""
    return frozenset(OWN_PICTURE.findall(str(spec)))


def requested_by(options: Mapping[str, Any], visitor: str) -> bool:
    """Whether this visitor requested the run."""
    requester = options.get("visitor")
    if isinstance(requester, list):
        return visitor in requester
    return visitor == requester


def may_see(spec: Mapping[str, Any], options: Mapping[str, Any], visitor: str, brought: Collection[str]) -> bool:
    """Whether a visitor whose session uploaded the pictures in `brought` may see this run, in class mode."""
    return own_pictures(spec) <= set(brought) or requested_by(options, visitor)
