"""Damages a store or a spec from a seed, for `bench fuzz` and the tests."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 3.5, "x", "", [], [1], {}, {"a": 1}, "half a character \ud800", 10**30, [None], {"name": 3},
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    *VALUES, 1e308, -1e-320, float("nan"), float("inf"), 2**63, "9" * 5000, "\x00", "../x", False, "٣", [[[[]]]],
)  # fmt: skip
Values = tuple[Any, ...]
NO_TEXT = b'{"a":"\xff\xfe"'  # bytes that are not UTF-8
COLUMNS = ("attempt", "told", "text", "taken", "edition")
TABLES = ("batches", "members", "batch_requests", "run_requests", "visits", "served", "owners")
NUMBERS: tuple[Any, ...] = (-1, "x", None, 2.5, 10**15, b"\xff")


def damage_store(file: Path, seed: int, values: Values = VALUES) -> set[str]:
    """Damage one to three places of a store, and return the ids of the runs that they belong to."""
    rng = random.Random(seed)
    connection = sqlite3.connect(file)
    connection.text_factory = lambda text: text.decode("utf-8", errors="replace")
    try:
        return {_damage_one(connection, rng, values) for _ in range(rng.randint(1, 3))}
    finally:
        connection.commit()
        connection.close()


def _damage_one(connection: sqlite3.Connection, rng: random.Random, values: Values) -> str:
    kind = rng.choice(["event", "event", "event", "event", "spec", "options", "bytes", "column", "batch"])
    if kind == "event":
        run, number, body = rng.choice(connection.execute("SELECT run, number, body FROM events").fetchall())
        changed = (changed_json(rng, body, values), run, number)
        connection.execute("UPDATE events SET body = ? WHERE run = ? AND number = ?", changed)
        return str(run)
    ids = [str(row[0]) for row in connection.execute("SELECT id FROM runs ORDER BY id")]
    run = rng.choice(ids)
    if kind == "batch":
        _damage_table(connection, rng)
    elif kind in ("spec", "options"):
        (text,) = connection.execute(f"SELECT {kind} FROM runs WHERE id = ?", (run,)).fetchone()
        connection.execute(f"UPDATE runs SET {kind} = ? WHERE id = ?", (changed_json(rng, text, values), run))
    elif kind == "bytes":
        column = rng.choice(["spec", "options"])
        connection.execute(f"UPDATE runs SET {column} = CAST(? AS TEXT) WHERE id = ?", (NO_TEXT, run))
    else:
        try:
            update = f"UPDATE runs SET {rng.choice(COLUMNS)} = ? WHERE id = ?"
            connection.execute(update, (rng.choice(NUMBERS), run))
        except sqlite3.IntegrityError:
            pass  # the column refuses this value
    return run


def _damage_table(connection: sqlite3.Connection, rng: random.Random) -> None:
    """Damage a column of what was requested together, of who requested it, or of who is here. No run may suffer."""
    table = rng.choice(TABLES)
    columns = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]
    if not columns:  # a store of version 1
        return
    with suppress(sqlite3.IntegrityError):  # a column may refuse this value
        connection.execute(f"UPDATE OR IGNORE {table} SET {rng.choice(columns)} = ?", (rng.choice(NUMBERS),))


def changed_json(rng: random.Random, text: str, values: Values = VALUES) -> str:
    """The JSON with one value changed or removed, at any depth."""
    try:
        body = json.loads(text)
    except ValueError:
        return text
    path = rng.choice(_paths(body)[:200])
    if not path:
        return json.dumps(rng.choice(values))
    place = body
    for step in path[:-1]:
        place = place[step]
    if rng.random() < 0.3:
        del place[path[-1]]
    else:
        place[path[-1]] = rng.choice(values)
    return json.dumps(body)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside, and of the value itself."""
    paths = [path]
    if isinstance(value, dict):
        for key in value:
            paths += _paths(value[key], (*path, key))
    elif isinstance(value, list):
        for place in range(min(3, len(value))):
            paths += _paths(value[place], (*path, place))
    return paths
