"""Where a run stands: derived from its last event, what was asked of it, and whether a live worker holds its lease."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from engine.runs.holder import Holder

Status = Literal["queued", "running", "finished", "failed", "cancelled", "interrupted"]
ENDINGS: Mapping[str, Status] = {"finished": "finished", "failed": "failed", "cancelled": "cancelled"}

SELECT = """
SELECT r.*, l.attempt AS leased, l.place, l.pid, l.start, l.beat,
    e.attempt AS last_attempt, json_extract(e.body, '$.event') AS last_kind,
    (SELECT MAX(number) FROM requests WHERE kind = 'cancel' AND run = r.id) AS cancel,
    (SELECT MAX(number) FROM requests WHERE kind = 'delete' AND run = r.id) AS removal,
    (SELECT MAX(at) FROM requests WHERE kind = 'submit' AND run = r.id) AS submitted,
    (SELECT COUNT(*) FROM requests WHERE kind = 'submit' AND run = r.id) AS attempts,
    (SELECT json_extract(body, '$.round') FROM events WHERE run = r.id AND json_extract(body, '$.event') = 'round'
        ORDER BY number DESC LIMIT 1) AS round
FROM runs r
LEFT JOIN leases l ON l.run = r.id
LEFT JOIN events e ON e.run = r.id AND e.number = (SELECT MAX(number) FROM events WHERE run = r.id)
"""


@dataclass(frozen=True)
class Listed:
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
class Standing:
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

    def listed(self, place: int | None, payloads: int) -> Listed:
        row = self.row
        return Listed(
            id=row["id"],
            status=self.status,
            spec=json.loads(row["spec"]),
            options=json.loads(row["options"]),
            attempt=row["attempts"],
            submitted=row["submitted"] or 0.0,
            round=row["round"] or 0,
            events=row["told"],
            bytes=row["text"] + payloads,
            place=place,
            edition=row["edition"],
        )


def standing(connection: sqlite3.Connection, run: str) -> Standing | None:
    row = connection.execute(f"{SELECT} WHERE r.id = ?", (run,)).fetchone()
    return None if row is None else Standing(row, held(row))


def standings(connection: sqlite3.Connection) -> list[Standing]:
    """Every run that is not on its way out, the oldest question first."""
    found = [Standing(row, held(row)) for row in connection.execute(f"{SELECT} ORDER BY r.attempt")]
    return [one for one in found if not one.removed]


def held(row: sqlite3.Row) -> bool:
    return row["beat"] is not None and Holder(row["place"], row["pid"], row["start"]).alive(row["beat"])
