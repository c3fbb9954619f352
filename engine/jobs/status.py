"""The status of a run. It follows from the last event, the requests, and whether a live process owns the lease."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal

from engine.jobs.process_id import ProcessId

Status = Literal["queued", "running", "finished", "failed", "cancelled", "interrupted", "damaged"]
MOVING: tuple[Status, ...] = ("queued", "running")  # under way
ENDINGS: Mapping[str, Status] = {"finished": "finished", "failed": "failed", "cancelled": "cancelled"}

NUMBERS = ("attempt", "taken", "told", "text")  # columns of a run that hold whole numbers
QUERY_LIMIT = 500  # runs in one query; SQLite takes a thousand or more parameters
RELEASED: set[str] = set()  # tokens of leases that this process gave up, even if a full disk kept the row from going

# `json_valid` guards each event: without it, json_extract on one damaged event would fail the whole query. The kind of
# an event is compared as text, because parsing the events of a thousand runs took most of the time of a list.
SELECT = """
SELECT r.*, l.token, l.attempt AS leased, l.place, l.pid, l.start, l.beat,
    e.attempt AS last_attempt, CASE WHEN json_valid(e.body) THEN json_extract(e.body, '$.event') END AS last_kind,
    (SELECT MAX(number) FROM requests WHERE kind = 'cancel' AND run = r.id) AS cancel,
    (SELECT MAX(number) FROM requests WHERE kind = 'delete' AND run = r.id) AS removal,
    (SELECT MAX(at) FROM requests WHERE kind = 'submit' AND run = r.id) AS submitted,
    (SELECT COUNT(*) FROM requests WHERE kind = 'submit' AND run = r.id) AS attempts,
    (SELECT json_extract(body, '$.round') FROM events WHERE run = r.id
        AND substr(body, 1, 16) = '{"event":"round"' AND json_valid(body)
        ORDER BY number DESC LIMIT 1) AS round
FROM runs r
LEFT JOIN leases l ON l.run = r.id
LEFT JOIN events e ON e.run = r.id AND e.number = (SELECT MAX(number) FROM events WHERE run = r.id)
"""


# What changes with a run, in one row for all runs: after each row a thread waits for its turn, and a class has many
# threads. `hex` makes text of whatever a damaged column holds.
STAMPS = """
SELECT group_concat(line, char(10)) FROM (
    SELECT hex(r.id) || ' ' || hex(r.attempt) || ' ' || hex(r.taken) || ' ' || hex(r.told) || ' ' || hex(r.text)
        || ' ' || hex(r.edition) || ' ' || hex(length(r.spec)) || ' ' || hex(length(r.options)) || ' '
        || hex((SELECT MAX(number) FROM requests WHERE kind IN ('submit', 'cancel', 'delete') AND run = r.id)) AS line
    FROM runs r ORDER BY r.attempt)
"""


@dataclass(frozen=True)
class ListedRun:
    """One run as a list shows it."""

    id: str
    status: Status
    spec: Mapping[str, Any]
    options: Mapping[str, Any]
    attempt: int  # how many times it was submitted
    submitted: float  # seconds since 1970
    round: int  # the last round that began
    events: int  # the number of the last event
    bytes: int  # events and payloads
    place: int | None  # in the queue, from 1
    edition: str  # changes when stored events are removed: read the events again from number 0

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class StoredRun:
    """The row of a run, and whether a live process owns its lease."""

    row: sqlite3.Row
    lease_alive: bool

    @property
    def damaged(self) -> bool:
        """Whether a column holds what this program never writes: then nothing of the row may be believed."""
        row = self.row
        numbers = all(type(row[name]) is int and row[name] >= 0 for name in NUMBERS)
        texts = type(row["edition"]) is str and type(row["id"]) is str
        return not (numbers and texts and is_mapping(row["spec"]) and is_mapping(row["options"]))

    @property
    def has_finished_row(self) -> bool:
        """Whether the row says that the last attempt finished. A damaged row may say so, too."""
        return bool(self.row["last_kind"] == "finished" and self.row["last_attempt"] == self.row["attempt"])

    @property
    def status(self) -> Status:
        row = self.row
        if self.damaged:
            return "damaged"
        attempt = row["attempt"]
        ending = None
        if row["last_attempt"] == attempt:
            ending = ENDINGS.get(row["last_kind"] or "")
        if ending == "finished":
            return "finished"
        if (row["cancel"] or 0) > attempt:  # counts from the first click, and outranks a failure
            return "cancelled"
        if ending:
            return ending
        if self.lease_alive and row["leased"] == attempt:
            return "running"
        return "interrupted" if row["taken"] == attempt else "queued"

    @property
    def removed(self) -> bool:
        """True if the last request for this run is a deletion."""
        return (self.row["removal"] or 0) > self.number("attempt")

    def number(self, column: str) -> int:
        """A whole number of the row, at least 0; 0 where it holds something else."""
        value = self.row[column]
        return max(0, value) if type(value) is int else 0

    def listed(self, place: int | None, payloads: int) -> ListedRun:
        row = self.row
        return ListedRun(
            id=row["id"],
            status=self.status,
            spec=mapping(row["spec"]) or {},
            options={name: value for name, value in (mapping(row["options"]) or {}).items() if name != "visitor"},
            attempt=row["attempts"],
            submitted=row["submitted"] or 0.0,
            round=self.number("round"),
            events=self.number("told"),
            bytes=self.number("text") + payloads,
            place=place,
            edition=str(row["edition"]),
        )


def stored_run(connection: sqlite3.Connection, run: str) -> StoredRun | None:
    row = connection.execute(f"{SELECT} WHERE r.id = ?", (run,)).fetchone()
    return None if row is None else StoredRun(row, held(row))


def stored_runs_of(connection: sqlite3.Connection, runs: Sequence[str]) -> list[StoredRun]:
    """The stored runs among these ids, read in a few queries."""
    rows = []
    for start in range(0, len(runs), QUERY_LIMIT):
        ids = runs[start : start + QUERY_LIMIT]
        marks = ",".join("?" * len(ids))
        rows += connection.execute(f"{SELECT} WHERE r.id IN ({marks})", ids).fetchall()
    return [StoredRun(row, held(row)) for row in rows]


def stored_runs(connection: sqlite3.Connection) -> list[StoredRun]:
    """Every run that is not being deleted, in the order of submission."""
    return _remaining(connection.execute(f"{SELECT} ORDER BY r.attempt"))


def stamps(connection: sqlite3.Connection) -> dict[str, str]:
    """The id of every run by its stamp, in the order of submission. A finished run with the same stamp is the same."""
    (lines,) = connection.execute(STAMPS).fetchone()
    return {line: _decoded(line.partition(" ")[0]) for line in (lines or "").splitlines()}


def _decoded(hexadecimal: str) -> str:
    return bytes.fromhex(hexadecimal).decode("utf-8", errors="replace")


def unfinished_runs(connection: sqlite3.Connection) -> list[StoredRun]:
    """Those runs without the finished ones, of which only a running one that ends at this moment is left."""
    return _remaining(connection.execute(f"{SELECT} WHERE r.seconds IS NULL OR l.run IS NOT NULL ORDER BY r.attempt"))


def _remaining(rows: Iterable[sqlite3.Row]) -> list[StoredRun]:
    runs = [StoredRun(row, held(row)) for row in rows]
    return [run for run in runs if not run.removed]


def held(row: sqlite3.Row) -> bool:
    """True if the row has a lease and the process that owns it is alive."""
    if row["beat"] is None or row["token"] in RELEASED:
        return False
    owner = ProcessId(row["place"], row["pid"], row["start"])
    return owner.alive(row["beat"])


@lru_cache(maxsize=4096)
def is_mapping(text: str) -> bool:
    """Whether the text is a JSON object. A list of runs is read again and again, and its specs never change."""
    return mapping(text) is not None


def mapping(text: str) -> dict[str, Any] | None:
    """A stored spec or its options. None if the text is not a JSON object."""
    try:
        value = strict_json(text)
        require_printable(value, text)
    except (ValueError, TypeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def strict_json(text: str) -> Any:
    """JSON as this program writes it: ValueError for a number that is not finite, which no answer may hold."""
    return json.loads(text, parse_float=_finite, parse_constant=_finite)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not finite")
    return value


def require_printable(value: Any, text: str) -> None:
    """ValueError for half a character, which JSON can hold and no page can show."""
    if "\\ud" in text.lower():
        json.dumps(value, ensure_ascii=False).encode("utf-8")
