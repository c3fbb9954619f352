"""What a click on the Leak screen does: change the settings, attack, cancel, and upload or delete a picture."""

from __future__ import annotations

from collections.abc import Sequence

from app.batch import attack_cells
from app.batch import submit as batch_submit
from app.screens.leak.settings import LeakSettings
from app.session import run_settings, services, session
from app.session.photos import upload_name
from app.session.screen_state import ScreenState
from app.texts import attacks as attack_texts
from engine.errors import LeakLensError
from engine.jobs.batches import Batch, BatchKind, BatchMember
from engine.specs import attack_grid
from engine.specs.attack_grid import RequestedAttack

# --- the settings ------------------------------------------------------------------------------------------


class LeakState(ScreenState[LeakSettings]):
    """The settings of this visitor, with a check of the owner of an uploaded picture."""

    def current(self) -> LeakSettings:
        """Return the settings.

        Privacy: the owner of an uploaded picture is checked at each use. Without that, settings that hold another
        visitor's picture would show it.
        """
        leak = super().current()
        name = upload_name(leak.whose)
        if name and not services.may_see_picture(name):
            return leak.with_(whose=LeakSettings().whose)
        return leak


STATE = LeakState(LeakSettings)


# --- the attacks -------------------------------------------------------------------------------------------


def attack(live: bool = False) -> None:
    """Request every cell as one batch, the cheapest first. `live` runs the stored examples as well."""
    STATE.show_trouble("")
    try:
        requests = attack_cells.with_refusals(STATE.current().grid.requests())
        request("leak grid", requests, attack_texts.BUSY, live)
    except LeakLensError as error:
        STATE.show_trouble(error)
    session.rerun()


def request(kind: BatchKind, requests: Sequence[RequestedAttack], busy: tuple[str, str], live: bool = False) -> None:
    """Request attacks as one batch. Those that a stored example shows are left out unless `live`.

    One that cannot run is a member with its reason, and the others go on.
    """
    shown = {} if live else attack_cells.stored()
    chosen = [each for each in requests if each.id not in shown]
    possible = chosen if kind != "leak grid" else attack_grid.in_order(chosen)
    members = [BatchMember(each.id, each.spec.canonical()) for each in possible if each.spec]
    leak = STATE.current()
    title = attack_texts.batch_title(leak.whose, len(members))
    members += [BatchMember("", {}, each.problem) for each in chosen if each.problem]
    batch = Batch(kind, title, tuple(members), {"screen": "leak", "link": leak.link()})
    batch_submit.request(batch, run_settings.spec_of(leak.run).canonical(), busy=busy)


def cancel() -> None:
    """Cancel the attacks of this grid for this visitor. Those that others requested continue."""
    try:
        note = stop("leak grid", STATE.current().grid.requests())
        if note:
            STATE.show_notes([note])
    except LeakLensError as error:
        STATE.show_trouble(error)
    session.rerun()


def stop(kind: BatchKind, requests: Sequence[RequestedAttack]) -> str:
    """Cancel what was requested as such a batch, for this visitor. Return a note about what others requested, too."""
    return batch_submit.cancel_batches(kind, [each.id for each in requests if each.id], "attacks")
