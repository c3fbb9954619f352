"""Who may see an uploaded picture, and the runs whose spec names it.

In class mode a visitor sees a picture of their own and the attacks on it; every other visitor gets "no such picture".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from typing import Any

COOKIE = "_streamlit_xsrf"  # each browser keeps a random token in it: 2|mask|token under the mask|time
OWN_PICTURE = re.compile(r"own-([0-9a-f]{16})")


def visitor_id(address: str | None, cookie: str | None) -> str:
    """An id for the browser that holds this cookie; empty without one.

    An address alone is no id: everyone behind one router has the same, and would see each other's pictures.
    """
    token = _token(cookie or "")
    return hashlib.sha256(f"{address or ''}/{token}".encode()).hexdigest()[:12] if token else ""


def _token(cookie: str) -> str:
    """The token without its mask: the server sends the same token under a new mask with every page."""
    try:
        _, mask_hex, masked_hex, _ = cookie.split("|")
        mask, masked = bytes.fromhex(mask_hex), bytes.fromhex(masked_hex)
    except ValueError:
        return ""
    if not mask:
        return ""
    return bytes(byte ^ mask[place % len(mask)] for place, byte in enumerate(masked)).hex()


def own_pictures(spec: Mapping[str, Any]) -> frozenset[str]:
    """The names of the uploaded pictures that a spec names, wherever it names them."""
    return frozenset(OWN_PICTURE.findall(str(spec)))


def requested_by(options: Mapping[str, Any], visitor: str) -> bool:
    """Whether this visitor is among those who requested the run."""
    requester = options.get("visitor")
    return visitor in requester if isinstance(requester, list) else visitor == requester


def may_see(spec: Mapping[str, Any], options: Mapping[str, Any], visitor: str, brought: Collection[str]) -> bool:
    """Whether a visitor of a class, whose session brought these pictures, may see this run."""
    return own_pictures(spec) <= set(brought) or requested_by(options, visitor)
