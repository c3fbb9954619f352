"""The actions of the Runs screen: open, cancel, resume and delete."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from app.batch import submit as batch_submit
from app.screens.runs import listing as run_listing
from app.screens.runs.group import RunGroup
from app.screens.runs.listing import RunRow
from app.session import links, pins, services, session, url
from app.texts import runs as run_texts
from engine.errors import BadInput
from engine.jobs.batches import ListedBatch

MESSAGE, DELETING = "runs-message", "runs-deleting"  # names in the session
MOST_NAME = 80  # characters of the name of a group
MESSAGE_S = 20.0  # how long a message is shown


def last_message() -> tuple[str, bool]:
    """The message of the last click, and whether it is an error. Empty after 20 seconds."""
    text, wrong, at = session.recall(MESSAGE, ("", False, 0.0))
    return (text, wrong) if session.now() - at < MESSAGE_S else ("", False)


def show_message(text: str, wrong: bool = False) -> None:
    """Shows a message on the next pass of the page."""
    session.remember(MESSAGE, (text, wrong, session.now()))


def open_in_try(row: RunRow) -> NoReturn:
    """Opens Try with this run and its settings."""
    url.open_screen("try", {"run": row.id})


def open_in_leak(row: RunRow) -> NoReturn:
    """Opens the Leak screen with this attack and its baseline."""
    url.open_screen("leak", links.leak_link_of_attack(row.listed.spec))


def cancel(row: RunRow) -> None:
    """Cancels the visitor's own run. In class mode it continues if someone else requested it, too."""

    def action() -> None:
        _check_owner(row, "cancel")
        _cancel([row.id])

    _do(action)


def resume(row: RunRow) -> None:
    """Resumes a run from its last checkpoint. In class mode it counts as one of the visitor's runs."""

    def action() -> None:
        _check_owner(row, "resume")
        batch_submit.resume_run(row.listed)

    _do(action)


def _cancel(runs: Sequence[str]) -> None:
    """Cancels runs for this visitor. At home the visitor owns the machine, and every run on it ends."""
    note = batch_submit.cancel(runs, "runs")
    if services.at_home():
        for run in runs:
            services.store().cancel(run)
    elif note:
        raise BadInput(note.rstrip("."))


def cancel_all(group: RunGroup) -> None:
    """Cancels every unfinished run of a group."""
    _do(lambda: _cancel([row.id for row in group.rows if row.moving]))


def run_of(group: RunGroup) -> Mapping[str, Any]:
    """The fields of the run that a group is about, for the limits of a class."""
    spec = group.rows[0].listed.spec
    run: Mapping[str, Any] = spec.get("run", spec)
    return run


def resume_all(group: RunGroup) -> None:
    """Resumes every stopped run of a group for this visitor."""

    def action() -> None:
        assert group.batch
        batch_submit.resume(group.batch, run_of(group), run_texts.BUSY)

    _do(action)


def rename(batch: ListedBatch, title: str) -> None:
    """Names a group. An empty name changes nothing."""
    if title.strip():
        _do(lambda: services.store().batches.rename(batch.id, title.strip()[:MOST_NAME]))


def open_group(batch: ListedBatch) -> NoReturn:
    """Opens the screen that requested a group, with its settings."""
    link = batch.spec.get("link")
    params = {str(name): str(value) for name, value in link.items()} if isinstance(link, Mapping) else {}
    url.open_screen(str(batch.spec["screen"]), params)


# --- deleting: first requested, then confirmed -------------------------------------------------------------


def request_delete(runs: Sequence[str]) -> None:
    """Opens the dialog for these runs."""
    session.remember(DELETING, tuple(runs))


def keep() -> None:
    """Closes the dialog without deleting."""
    session.remember(DELETING, ())


def deleting() -> tuple[str, ...]:
    """The ids of the runs in the dialog."""
    return tuple(session.recall(DELETING, ()))


def delete(runs: Sequence[str]) -> None:
    """Deletes those of the runs that are deletable now. Stops at the first that the store refuses."""
    keep()
    deleted: list[RunRow] = []

    def action() -> None:
        for row in run_listing.read():
            if row.id in runs and row.deletable:
                services.store().delete(row.id)
                pins.unpin(row.id)
                deleted.append(row)

    _do(action)
    failed = last_message()[1]
    if deleted and not failed:
        freed = sum(row.listed.bytes for row in deleted)
        show_message(run_texts.DELETED.format(many=run_texts.runs(len(deleted)), size=run_texts.size(freed)))


def _check_owner(row: RunRow, verb: str) -> None:
    if not row.own:
        rule, remedy = run_texts.NOT_YOURS
        raise BadInput(rule.format(run=row.id), remedy.format(deed=verb))


def _do(action: Callable[[], None]) -> None:
    """Runs an action and shows its error, if it has one."""
    problem = services.error_of(action)
    show_message(problem, wrong=bool(problem))
