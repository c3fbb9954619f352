"""Where a run stands: derived from its last event, what was asked of it, and whether a live worker holds its lease."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from engine.jobs.process_id import ProcessId

Status = Literal["queued", "running", "finished", "failed", "cancelled", "interrupted"]
ENDINGS: Mapping[str, Status] = {"finished": "finished", "failed": "failed", "cancelled": "cancelled"}

AT_ONCE = 500  # SQLite takes a thousand or more
RELEASED: set[str] = set()  # tokens of leases that this process no longer holds, though a full disk could not be told

# Of an event that cannot be read only itself is lost: json_extract would fail the whole question.
SELECT = """
SELECT r.*, l.token, l.attempt AS leased, l.place, l.pid, l.start, l.beat,
    e.attempt AS last_attempt, CASE WHEN json_valid(e.body) THEN json_extract(e.body, '$.event') END AS last_kind,
    (SELECT MAX(number) FROM requests WHERE kind = 'cancel' AND run = r.id) AS cancel,
    (SELECT MAX(number) FROM requests WHERE kind = 'delete' AND run = r.id) AS removal,
    (SELECT MAX(at) FROM requests WHERE kind = 'submit' AND run = r.id) AS submitted,
    (SELECT COUNT(*) FROM requests WHERE kind = 'submit' AND run = r.id) AS attempts,
    (SELECT json_extract(body, '$.round') FROM events WHERE run = r.id
        AND CASE WHEN json_valid(body) THEN json_extract(body, '$.event') = 'round' END
        ORDER BY number DESC LIMIT 1) AS round
FROM runs r
LEFT JOIN leases l ON l.run = r.id
LEFT JOIN events e ON e.run = r.id AND e.number = (SELECT MAX(number) FROM events WHERE run = r.id)
"""


@dataclass(frozen=True)
class ListedRun:
    """One run as a list shows it."""

    id: str
    status: Status
    spec: Mapping[str, Any]
    options: Mapping[str, Any]
    attempt: int  # how often it was asked anew
    submitted: float  # seconds since 1970
    round: int  # the last one begun
    events: int  # the number of the last event
    bytes: int  # events and payloads
    place: int | None  # in the queue, from 1
    edition: str  # changes when events already told are taken back: read again from 0

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class StoredRun:
    """A run, and whether its lease is held by somebody alive."""

    row: sqlite3.Row
    held: bool

    @property
    def status(self) -> Status:
        row, attempt = self.row, self.row["attempt"]
        ended = ENDINGS.get(row["last_kind"] or "") if row["last_attempt"] == attempt else None
        if ended == "finished":
            return "finished"
        if (row["cancel"] or 0) > attempt:  # at the first click, and stronger than a failure
            return "cancelled"
        if ended:
            return ended
        if self.held and row["leased"] == attempt:
            return "running"
        return "interrupted" if row["taken"] == attempt else "queued"

    @property
    def removed(self) -> bool:
        """Somebody asked for its end after the last time somebody asked for it."""
        return (self.row["removal"] or 0) > int(self.row["attempt"])

    def listed(self, place: int | None, payloads: int) -> ListedRun:
        row = self.row
        return ListedRun(
            id=row["id"],
            status=self.status,
            spec=mapping(row["spec"]) or {},
            options=mapping(row["options"]) or {},
            attempt=row["attempts"],
            submitted=row["submitted"] or 0.0,
            round=row["round"] or 0,
            events=row["told"],
            bytes=row["text"] + payloads,
            place=place,
            edition=row["edition"],
        )


def stored_run(connection: sqlite3.Connection, run: str) -> StoredRun | None:
    row = connection.execute(f"{SELECT} WHERE r.id = ?", (run,)).fetchone()
    return None if row is None else StoredRun(row, held(row))


def stored_runs_of(connection: sqlite3.Connection, runs: Sequence[str]) -> list[StoredRun]:
    """Those of these runs that are known, many of them at a time."""
    found = []
    for start in range(0, len(runs), AT_ONCE):
        some = runs[start : start + AT_ONCE]
        places = ",".join("?" * len(some))
        found += connection.execute(f"{SELECT} WHERE r.id IN ({places})", some).fetchall()
    return [StoredRun(row, held(row)) for row in found]


def stored_runs(connection: sqlite3.Connection) -> list[StoredRun]:
    """Every run that is not on its way out, the oldest question first."""
    found = [StoredRun(row, held(row)) for row in connection.execute(f"{SELECT} ORDER BY r.attempt")]
    return [one for one in found if not one.removed]


def held(row: sqlite3.Row) -> bool:
    if row["beat"] is None or row["token"] in RELEASED:
        return False
    return ProcessId(row["place"], row["pid"], row["start"]).alive(row["beat"])


def mapping(text: str) -> dict[str, Any] | None:
    """A question or its options as they were asked; None where they can no longer be read."""
    try:
        found = json.loads(text)
    except (ValueError, TypeError):
        return None
    return found if isinstance(found, dict) else None
