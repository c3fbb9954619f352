"""One group of the Runs screen: its name, how far it is, its buttons, and its runs in a closed list."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import streamlit as st

from app.screens.runs import requests as run_requests
from app.screens.runs import row as run_row
from app.screens.runs.groups import RunGroup
from app.session import messages
from app.texts import runs as run_texts

PAGE = 50  # rows of a group


def draw(group: RunGroup) -> None:
    """Draw a run by itself as a row, and a batch as a title with a closed list of its runs."""
    if group.batch is None:
        run_row.draw(group.rows[0])
        return
    with st.container(key=f"batch-{group.id}"):
        with st.container(horizontal=True, vertical_alignment="top", key=f"row-{group.id}"):
            title = f"<h3>{html.escape(group.title)}</h3><p>{html.escape(f'{group.kind} · {group.summary}')}</p>"
            st.html(f'<div class="ll-run">{title}</div>', width="stretch")
            with st.container(horizontal=True, vertical_alignment="center", width=run_row.BUTTONS_PX):
                _buttons(group)
        with st.expander(
            run_texts.RUNS_OF_GROUP.format(many=run_texts.runs(len(group.rows))), on_change="rerun",
            key=f"runs-of-{group.id}",
        ) as opened:  # fmt: skip
            if opened.open:
                for row in group.rows[:PAGE]:
                    run_row.draw(row)
                if len(group.rows) > PAGE:
                    messages.explain(run_texts.MORE_ROWS.format(many=len(group.rows) - PAGE))


def _buttons(group: RunGroup) -> None:
    """What this visitor may do with the whole group. Every label names it, for screen readers only."""
    assert group.batch
    if group.batch.spec.get("screen") in run_texts.SCREENS and _button(run_texts.OPEN, group):
        run_requests.open_group(group)
    if group.wanted and group.moving:
        _button(run_texts.CANCEL_ALL, group, on_click=run_requests.cancel_all, args=(group,))
    if group.own and group.stopped and not group.moving:
        _button(run_texts.RESUME_ALL, group, on_click=run_requests.resume_all, args=(group,))
    if group.own and not group.private:
        with st.popover(run_texts.RENAME, type="tertiary", key=f"rename-{group.id}"):
            st.text_input(
                run_texts.NAME, group.title, max_chars=run_requests.MOST_NAME, key=f"name-{group.id}",
                on_change=_renamed(group), help=run_texts.NAME_HELP,
            )  # fmt: skip
    if group.deletable and not group.moving:
        _button(run_texts.DELETE, group, on_click=run_requests.request_delete, args=(group.deletable,))


def _renamed(group: RunGroup) -> Callable[[], None]:
    return lambda: run_requests.rename(group, str(st.session_state[f"name-{group.id}"]))


def _button(word: str, group: RunGroup, **options: Any) -> bool:
    key = f"{word.lower().replace(' ', '-')}-all:{group.id}"
    return st.button(f"{word} *batch {group.id}*", key=key, type="tertiary", **options)
