"""How far a batch is, on a page: its progress with the time left, Cancel, and the button that requests the rest.

An unfinished run of one visitor never takes this button from another: it stays while a member is neither finished nor
in the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app.session import services, session
from app.texts import batches as batch_texts
from engine.jobs.batch import BatchProgress, progress
from engine.jobs.batches import BatchKind
from engine.jobs.status import MOVING


@dataclass(frozen=True)
class FollowedBatch:
    """The runs of a page, and what this visitor may do about them."""

    runs: tuple[str, ...]  # all that can be requested
    known: frozenset[str]  # those that a stored example shows
    state: BatchProgress
    mine: bool  # whether this visitor requested one that is under way, as this kind of batch
    others: bool  # whether another visitor did

    @property
    def moving(self) -> bool:
        """Whether runs are under way that were requested here. Another panel may have requested the same runs."""
        return self.mine or self.others

    @property
    def missing(self) -> tuple[str, ...]:
        """Neither finished, nor under way for this page, nor shown by a stored example."""
        settled = (*MOVING, "finished") if self.moving else ("finished",)
        unsettled = [run for run in self.runs if self.state.statuses.get(run) not in settled]
        return tuple(run for run in unsettled if run not in self.known)

    @property
    def done(self) -> int:
        """Finished or failed, or shown by a stored example and not under way."""
        return self.state.done + sum(run in self.known and not self.state.statuses.get(run) for run in self.runs)


def read(runs: Sequence[str], known: Sequence[str] = (), kind: BatchKind | None = None) -> FollowedBatch:
    """The state of these runs now. `kind`: only requests as such a batch count."""
    store = services.store()
    unique = tuple(dict.fromkeys(run for run in runs if run))
    state = progress(store, unique, services.slots())
    moving = [run for run in unique if state.statuses.get(run) in MOVING]
    mine = others = False
    if moving:
        wanting = store.requesters(moving, wanting=True, kind=kind)
        visitors = {visitor for of_run in wanting.values() for visitor in of_run}
        mine = session.visitor() in visitors
        others = bool(visitors - {session.visitor()})
    return FollowedBatch(unique, frozenset(known), state, mine, others)


def bar(
    name: str,
    followed: FollowedBatch,
    label: Callable[[int, int], str] | None,
    noun: str,
    on_request: Callable[[], Any],
    on_cancel: Callable[[], Any],
    key: str = "ask",
) -> None:
    """Draw the progress and the buttons. `label` names the button `key`, given the missing and all; None: no button."""
    missing = len(followed.missing)
    with st.container(horizontal=True, vertical_alignment="center", key=f"{name}-bar"):
        if followed.moving:
            st.progress(min(1.0, followed.done / max(1, len(followed.runs))), _progress_text(followed, noun))
            if followed.mine or services.at_home():
                st.button(batch_texts.CANCEL, key=f"{name}-cancel", on_click=on_cancel)
        joins = followed.moving and not followed.mine
        if label and (missing or joins):
            text = label(missing, len(followed.runs)) if missing else batch_texts.JOIN
            st.button(text, key=f"{name}-{key}", type="primary", on_click=on_request)


def _progress_text(followed: FollowedBatch, noun: str) -> str:
    """How many are done, the time left, and a problem of the supervisor."""
    parts = [batch_texts.progress(followed.done, len(followed.runs), noun, followed.state.seconds_left)]
    if not followed.mine:
        parts.append(batch_texts.OF_OTHERS)
    trouble = services.shared().supervisor.trouble
    if trouble:
        parts.append(str(trouble))
    return " · ".join(parts)
