"""What a click on Start does: choose a stop, and upload, attack or delete a photo."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from app.batch import submit as batch_submit
from app.screens.start import texts
from app.screens.start.settings import StartSettings
from app.session import photos, services, session
from app.session.screen_state import ScreenState
from app.texts import attack_form as form_texts
from engine.errors import LeakLensError
from engine.examples.start import StartExample, start_example
from engine.jobs.batches import Batch, BatchMember
from engine.specs.attack_grid import RequestedAttack

ATTACK = "analytic"  # the instant one
POPOVER, WANTED, UPLOADS = "start-photo", "start-wanted", "start-uploads"  # keys of the session


class StartState(ScreenState[StartSettings]):
    """The settings of this visitor, with a check of the owner of an uploaded picture."""

    def current(self) -> StartSettings:
        """The settings.

        Privacy: the owner of an uploaded picture is checked at each use. Without that, settings that hold another
        visitor's picture would show it.
        """
        start = super().current()
        if start.own and start.own not in services.own_pictures_here():
            return start.with_(picture=StartSettings().picture)
        return start


STATE = StartState(StartSettings)


def open_link() -> None:
    """Take over the settings of a new address. A picture that is gone or another visitor's becomes a note."""
    if not STATE.open_link():
        return
    linked: StartSettings = session.recall("start")
    allowed = STATE.current()
    if linked.picture != allowed.picture:
        STATE.take_over(allowed, [*STATE.notes(), form_texts.GONE_PICTURE])


def choose(stop: int, content: str) -> None:
    """Show another stop or upload."""
    STATE.choose(stop=stop, content=content)


# --- a photo of the visitor --------------------------------------------------------------------------------


def add_photo(file: Any) -> None:
    """Store a photo, show it and request the attacks on it."""
    if file is None:
        return
    try:
        name = photos.add(file)
    except LeakLensError as error:
        STATE.show_trouble(error)
        return
    # A new key lets Streamlit forget its copy of the file, so that no copy outlives the picture.
    session.remember(UPLOADS, session.recall(UPLOADS, 0) + 1)
    session.remember(POPOVER, False)
    STATE.choose(picture=f"own-{name}", content="1", stop=0)  # where most comes back
    remark = photos.remark(file)
    STATE.show_notes([remark] if remark else [])
    want(name)


def want(name: str) -> None:
    """Request the attacks on a photo now, or as soon as the engine is loaded."""
    session.remember(WANTED, name)
    request_wanted()


def request_wanted() -> None:
    """Request the attacks that wait for the engine."""
    name = session.recall(WANTED, "")
    if not name or not services.shared().ready():
        return
    session.remember(WANTED, "")
    try:
        _request(name)
    except LeakLensError as error:
        STATE.show_trouble(error)


def _request(name: str) -> None:
    requests = requests_of(name)
    members = []
    for request in requests:
        if request.spec:
            members.append(BatchMember(request.id, request.spec.canonical()))
    batch = Batch("photo", texts.BATCH, tuple(members), {"screen": "start", "link": STATE.current().link()})
    first = next(request.spec for request in requests if request.spec)
    batch_submit.request(batch, first.run.canonical(), busy=texts.BUSY)


@lru_cache(maxsize=100)
def requests_of(name: str) -> tuple[RequestedAttack, ...]:
    """The instant attack on a photo at each stop. The engine must be loaded."""
    from engine.specs.attack import AttackSpec
    from engine.specs.run import RunSpec

    requests = []
    for place, stop in enumerate(_example().stops):
        spec = AttackSpec(
            run=RunSpec(**stop.run.spec), attack={"name": ATTACK}, pictures=(f"own-{name}-0",), view="server",
            round="last",
        )  # fmt: skip
        requests.append(RequestedAttack(str(place), ATTACK, spec))
    return tuple(requests)


def _example() -> StartExample:
    example = start_example()
    assert example is not None
    return example


def delete_photo() -> None:
    """Delete the photo with its attacks, and return to the portrait."""
    try:
        note = photos.delete(STATE.current().own)
    except LeakLensError as error:
        STATE.show_trouble(error)
        return
    STATE.choose(picture=StartSettings().picture)
    STATE.show_notes([note])


def show_portrait() -> None:
    """Return to the portrait. The photo stays."""
    STATE.choose(picture=StartSettings().picture)
