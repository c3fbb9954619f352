"""The pictures that this visitor uploads: add one, delete one, and what a page says about where they go."""

from __future__ import annotations

import platform
from typing import Any

from app.session import limits as class_limits
from app.session import services, session
from app.texts import attack_form as form_texts
from app.texts import attacks as attack_texts
from engine.images import is_plain


def upload_name(picture: str) -> str:
    """The name of an uploaded picture in `own-NAME` or `own-NAME-LABEL`; empty for any other picture."""
    kind, _, rest = picture.partition("-")
    return rest.partition("-")[0] if kind == "own" else ""


def add(file: Any) -> str:
    """Store a picture from a file or a camera for this visitor, and return its name."""
    return services.store().owners.add(file.getvalue(), session.owner())


def remark(file: Any) -> str:
    """What a visitor should know about a picture before reading its verdict; empty for most."""
    return form_texts.PLAIN_PICTURE if is_plain(file.getvalue()) else ""


def delete(name: str) -> str:
    """Delete a picture and every attack on it. Returns a note about it.

    A picture that another visitor uploaded, too, stays theirs.
    Privacy: the events of an attack hold the picture, too. If an attack stayed, the picture would stay.
    """
    departure = services.store().owners.leave(name, session.owner())
    services.store().complete_deletions()
    services.shared().supervisor.wake()  # a running attack stops now
    if departure.shared:
        return form_texts.GIVEN_UP
    return form_texts.DELETED.format(many=attack_texts.count(len(departure.deleted)))


def where_it_goes() -> str:
    """Where an uploaded picture goes, and when it is deleted."""
    if not class_limits.class_mode():
        return form_texts.OWN_HELP
    return form_texts.OWN_HELP_CLASS.format(name=platform.node() or "this server")
