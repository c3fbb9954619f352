"""Uploaded pictures on the Leak screen: add one, name what it shows, delete it."""

from __future__ import annotations

from typing import Any

from app.screens.leak.requests import STATE
from app.session import photos, run_settings, services, session
from app.session.photos import upload_name
from app.texts import attack_form as form_texts
from engine.errors import LeakLensError

MOST_OWN = 6  # uploaded pictures that the form offers


def own() -> list[str]:
    """Return the names of this visitor's uploaded pictures, the newest first."""
    try:
        return list(services.own_pictures_here())[:MOST_OWN]
    except LeakLensError as error:
        STATE.show_trouble(error)
        return []


def add_picture(file: Any) -> None:
    """Store a picture from a file or a camera, and choose it."""
    if file is None:
        return
    try:
        name = photos.add(file)
    except LeakLensError as error:
        STATE.show_trouble(error)
        return
    whose = f"own-{name}-{label(name)}"
    STATE.choose(whose=whose)
    dataset = run_settings.spec_of(STATE.current().run).dataset
    title = dataset.classes[label(name)]
    added = form_texts.ADDED.format(side=dataset.shape[-1], title=title)
    STATE.show_notes(filter(None, [added, photos.remark(file)]))


def label(name: str) -> int:
    """Return the class that the visitor chose for an uploaded picture."""
    kind, _, rest = STATE.current().whose.partition("-")
    if kind == "own" and rest.startswith(name):
        return int(rest.rpartition("-")[2])
    return int(session.recall("leak-labels", {}).get(name, 0))


def relabel(value: int) -> None:
    name = upload_name(STATE.current().whose)
    session.remember("leak-labels", {**session.recall("leak-labels", {}), name: value})
    STATE.choose(whose=f"own-{name}-{value}")


def delete() -> None:
    """Delete the uploaded picture and every attack on it."""
    try:
        note = photos.delete(upload_name(STATE.current().whose))
    except LeakLensError as error:
        STATE.show_trouble(error)
        return
    STATE.choose(whose="test-0")
    STATE.show_notes([note])
