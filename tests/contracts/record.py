"""`python3 -m tests.contracts.record`: makes golden entries that are missing, and never replaces one."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from tests.contracts import homes
from tests.contracts.doors import AttackSpec, RunSpec, dashboard, decode, encode, grammar, tell
from tests.contracts.goldens import add
from tests.contracts.questions import ATTACKS, EVENTS, LINES, LINKS, REFUSED, SPECS, CommandLine
from tests.contracts.shapes import options, shape
from tests.contracts.visits import linked, visit


def record() -> list[str]:
    """Make what is missing, and say what was made."""
    return [
        *homes.make(),
        *add("ids", "specs", made(identified, {name: (RunSpec, values) for name, values in SPECS.items()})),
        *add("ids", "attacks", made(identified, {name: (AttackSpec, values) for name, values in ATTACKS.items()})),
        *add("events", "kinds", made(reports, {name: (name,) for name in EVENTS})),
        *add("commands", "options", {name: partial(options, command) for name, command in commands().items()}),
        *add("commands", "answers", made(answered, {name: (line,) for name, line in LINES.items()})),
        *add("commands", "refusals", made(answered, {name: (line,) for name, line in REFUSED.items()})),
        *add("links", "links", made(followed, {name: (address,) for name, address in LINKS.items()})),
    ]


def made(make: Callable[..., Any], given: Mapping[str, tuple[Any, ...]]) -> dict[str, Callable[[], Any]]:
    return {name: partial(make, *values) for name, values in given.items()}


def identified(kind: type[RunSpec] | type[AttackSpec], values: dict[str, Any]) -> dict[str, Any]:
    spec = kind(**values)
    return {"input": values, "canonical": spec.canonical(), "id": spec.id}


def reports(name: str) -> dict[str, Any]:
    """An event as it is written; the question must have every key."""
    body = {"event": name, **EVENTS[name]}
    assert encode(decode(body)) == body
    return body


def commands() -> dict[str, Any]:
    """The parser of each command."""
    action = next(action for action in grammar()._actions if isinstance(action, argparse._SubParsersAction))
    return dict(action.choices)


def answered(line: CommandLine) -> dict[str, Any]:
    """The exit code of a command and the shape of its JSON, on a home of its own."""
    with tempfile.TemporaryDirectory() as folder:
        home = homes.copied(Path(folder)) if line.filled else Path(folder) / "empty"
        code, body = tell(homes.filled(line.words, home), home)
    return {"line": line.words, "code": code, "shape": shape(body)}


def followed(address: str) -> dict[str, Any]:
    """What a link opens, what it asks for, and how its settings are written."""
    path, _, query = address.partition("?")
    params = dict(parse_qsl(query, keep_blank_values=True))
    with tempfile.TemporaryDirectory() as folder, dashboard(Path(folder) / "empty"):
        opens, shown = visit(path, params)
    linked_page = linked(opens, params)
    added = {} if "run" in params else {"run", "twin"}  # the stored example, which a later version may replace
    return {
        "path": path,
        "params": params,
        "opens": opens,
        "address": {name: value for name, value in shown.items() if name not in added},
        **(
            {}
            if linked_page is None
            else {"asks": linked_page.asks, "link": linked_page.link, "left out": linked_page.left_out}
        ),
    }


if __name__ == "__main__":
    for line in record() or ["nothing is missing"]:
        sys.stdout.write(f"{line}\n")
