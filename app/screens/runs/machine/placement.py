"""The table of what runs on which device: each kind of work, and each run under way."""

from __future__ import annotations

import html
from collections.abc import Sequence

from app.screens.runs.listing import RunRow
from app.screens.runs.machine import texts as machine_texts
from app.session import services
from engine.jobs.backends.device import DEVICE, ON_DEVICE, ON_PROCESSOR, default_device
from engine.jobs.status import ListedRun

Row = tuple[str, str, str]  # device, work, note


def rows(runs: Sequence[ListedRun]) -> list[Row]:
    """The device of each kind of work, and of each run under way that this visitor may see."""
    device = default_device()
    note = machine_texts.UNSET if device == "cpu" else machine_texts.SET
    work = [
        (machine_texts.device(device), _sentence(ON_DEVICE), note.format(variable=DEVICE)),
        (machine_texts.PROCESSOR, _sentence(ON_PROCESSOR), machine_texts.ALWAYS),
    ]
    running = [run for run in runs if run.status == "running"]
    for run in services.may_see_all(running):
        sentence = RunRow(run, own=False).sentence
        work.append((machine_texts.device(run.options.get("device")), f"run {run.id}", sentence))
    return work


def table(runs: Sequence[ListedRun]) -> str:
    """The rows as a table."""
    heads = "".join(f'<th scope="col">{head}</th>' for head in machine_texts.WHERE_HEADS)
    body = "".join(map(_row, rows(runs)))
    return (
        f'<table class="ll-doctor ll-where"><caption><h2>{machine_texts.WHERE}</h2></caption>'
        f"<colgroup><col><col></colgroup><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    )


def _row(row: Row) -> str:
    device, work, note = map(html.escape, row)
    cell = f'<th class="ll-work" scope="row">{work}<p class="ll-faint">{note}</p></th>'
    return f'<tr class="ll-device"><td>{device}</td>{cell}</tr>'


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"
