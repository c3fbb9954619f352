"""What a click on the Runs screen asks of the kitchen: open, cancel, go on, pin, delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from app.screens.runs import listing as run_listing
from app.screens.runs.listing import RunRow
from app.session import limits as class_limits
from app.session import links, owners, run_settings, screens, services, session, url
from app.texts import runs as run_texts
from engine.errors import BadInput, LeakLensError

SAID, DELETING = "runs-said", "runs-deleting"
SAYS_S = 20.0


def said() -> tuple[str, bool]:
    """What came of the last click, for as long as it may interest, and whether it went wrong."""
    text, wrong, at = session.recall(SAID, ("", False, 0.0))
    return (text, wrong) if session.now() - at < SAYS_S else ("", False)


def say(text: str, wrong: bool = False) -> None:
    session.remember(SAID, (text, wrong, session.now()))


def open_in_lab(row: RunRow) -> NoReturn:
    """To the Lab, with this run on the page and its question in the form."""
    settings_, twin, pins = run_settings.flat(row.listed.spec), "", url.linked("pins")
    if services.shared().ready():
        try:
            session.choose(run_settings.settled(settings_))
            twin = _twin(row)
        except LeakLensError:  # a question of another version: the Lab says what it cannot mean
            pass
    session.remember("seeds", 1)
    url.show(run=[row.id], twin=[twin] if twin else [])
    ids = {"run": row.id, "twin": twin, "pins": ",".join(pins)}
    screens.go_to("lab", {**run_settings.link(settings_), **{key: ids[key] for key in ids if ids[key]}})


def open_in_leak(row: RunRow) -> NoReturn:
    """To the Leak screen, with this attack and its control."""
    url.leave("leak", links.leak_link_of_attack(row.listed.spec))


def _twin(row: RunRow) -> str:
    """The same question without protection, where that was asked here."""
    twin = run_settings.baseline_of(run_settings.spec_of(run_settings.flat(row.listed.spec)))
    return twin.id if twin and services.read(twin.id) else ""


def cancel(row: RunRow) -> None:
    def deed() -> None:
        _own(row, "cancel")
        if class_limits.class_mode() and services.others_watching(row.id):
            raise _refused(run_texts.WATCHED, row)
        services.store().cancel(row.id)

    _do(deed)


def go_on(row: RunRow) -> None:
    """From the checkpoint where it stopped; in class mode it counts among the visitor's runs."""

    def deed() -> None:
        _own(row, "go on with")
        moving = [
            run for run in services.store().runs() if run.status in run_listing.MOVING
        ]  # also those not shown here
        waiting = sum(run.status == "queued" for run in moving)
        mine = sum(
            not class_limits.class_mode() or owners.requested_by(run.options, session.visitor()) for run in moving
        )
        if refusal := class_limits.refused(class_limits.caps(), row.listed.spec, mine, waiting):
            raise refusal
        services.store().submit(row.id, row.listed.spec, row.listed.options)
        services.shared().supervisor.wake()

    _do(deed)


def pin(run: str) -> None:
    url.show(pins=[*url.linked("pins"), run])


def unpin(run: str) -> None:
    url.show(pins=[one for one in url.linked("pins") if one != run])


# --- deleting: asked, then done --------------------------------------------------------------------------


def ask_to_delete(runs: Sequence[str]) -> None:
    session.remember(DELETING, tuple(runs))


def keep() -> None:
    session.remember(DELETING, ())


def deleting() -> tuple[str, ...]:
    return tuple(session.recall(DELETING, ()))


def delete(runs: Sequence[str]) -> None:
    """All of them as they stand now, up to the first that the store refuses."""
    keep()
    gone: list[RunRow] = []

    def deed() -> None:
        for row in run_listing.read():
            if row.id in runs and row.deletable:
                services.store().delete(row.id)
                unpin(row.id)
                gone.append(row)

    _do(deed)
    if gone and not said()[1]:
        freed = sum(row.listed.bytes for row in gone)
        say(run_texts.DELETED.format(many=run_texts.runs(len(gone)), size=run_texts.size(freed)))


def _own(row: RunRow, deed: str) -> None:
    if not row.mine:
        raise _refused(run_texts.NOT_YOURS, row, deed)


def _refused(words: tuple[str, str], row: RunRow, deed: str = "") -> BadInput:
    law, remedy = words
    return BadInput(law.format(run=row.id), remedy.format(deed=deed))


def _do(deed: Callable[[], None]) -> None:
    problem = services.attempt(deed)
    say(problem, wrong=bool(problem))
