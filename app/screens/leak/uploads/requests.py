"""Uploaded pictures on the Leak screen: add one, name what it shows, delete it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.screens.leak.requests import ALIVE, _upload_name, choose, current, show_error
from app.session import limits as class_limits
from app.session import owners, services, session
from app.texts import attacks as attack_texts
from engine.errors import LeakLensError
from engine.jobs.uploads import UploadedPictures

MOST_OWN = 6  # uploaded pictures that the form offers


def uploads() -> UploadedPictures:
    return UploadedPictures(services.store().home)


def own() -> list[str]:
    """Return the names of uploaded pictures, the newest first.

    Privacy: in class mode this lists the pictures of this visit only. Without that filter, each visitor would see
    the pictures that others uploaded.
    """
    try:
        names = list(uploads().names())
    except LeakLensError as error:
        show_error(error)
        return []
    visible = [*session.recall("leak-own", []), _upload_name(current().whose)]
    if class_limits.class_mode():
        names = [name for name in names if name in visible]
    return names[:MOST_OWN]


def add_picture(file: Any) -> None:
    """Store a picture from a file or a camera, and choose it."""
    if file is None:
        return
    try:
        name = uploads().add(file.getvalue())
    except LeakLensError as error:
        show_error(error)
        return
    session.remember("leak-own", [*session.recall("leak-own", []), name])
    choose(whose=f"own-{name}-{label(name)}")


def label(name: str) -> int:
    """Return the class that the visitor chose for an uploaded picture."""
    kind, _, rest = current().whose.partition("-")
    if kind == "own" and rest.startswith(name):
        return int(rest.rpartition("-")[2])
    return int(session.recall("leak-labels", {}).get(name, 0))


def relabel(value: int) -> None:
    name = _upload_name(current().whose)
    session.remember("leak-labels", {**session.recall("leak-labels", {}), name: value})
    choose(whose=f"own-{name}-{value}")


def delete() -> None:
    """Delete the uploaded picture and every attack on it.

    Privacy: the events of an attack hold the picture, too. If an attack stayed, the picture would stay.
    """
    name = _upload_name(current().whose)
    rows = [row for row in services.store().runs() if _attacks_upload(row.spec, name)]
    own_rows = [row for row in rows if _is_own(row.options)]
    if len(own_rows) < len(rows):
        _give_up(name, [row.id for row in own_rows if _deleted(row.id, row.status)])
        return
    remaining = [row.id for row in rows if not _deleted(row.id, row.status)]
    if remaining:
        count = attack_texts.count(len(remaining))
        session.remember("leak-notes", [attack_texts.STUCK.format(many=count)])
        return
    problem = services.error_of(lambda: uploads().remove(name))
    if problem:
        show_error(problem)
        return
    choose(whose="test-0")
    session.remember("leak-notes", [attack_texts.DELETED.format(many=attack_texts.count(len(rows)))])


def _is_own(options: Mapping[str, Any]) -> bool:
    """Return whether this visitor may delete a run: at home any, in class mode their own."""
    return not class_limits.class_mode() or owners.requested_by(options, session.visitor())


def _give_up(name: str, deleted: Sequence[str]) -> None:
    """Let go of a picture that another visitor uploaded, too, and attacked: they keep it, and this visitor loses it."""
    session.remember("leak-own", [own for own in session.recall("leak-own", []) if own != name])
    choose(whose="test-0")
    session.remember("leak-notes", [attack_texts.GIVEN_UP.format(many=attack_texts.count(len(deleted)))])


def _attacks_upload(spec: Any, name: str) -> bool:
    pictures = spec.get("pictures") or ()
    return any(str(picture).startswith(f"own-{name}") for picture in pictures)


def _deleted(run: str, status: str) -> bool:
    """Delete an attack and return whether it is gone. A running attack must stop first, which takes a moment."""
    if status in ALIVE:
        services.error_of(lambda: services.store().cancel(run))
    return not services.error_of(lambda: services.store().delete(run))
