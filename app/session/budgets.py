"""The noises of a budget slider. They are computed in the background: a long run takes seconds, a short one none."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from engine.specs.run import RunSpec
    from engine.training.forecast import BudgetNoise

WAIT_S = 0.3  # a page waits so long before it shows the slider without them
MOST = 300  # tables kept in memory


class BudgetTables:
    """The noises of every run and observer that a visitor chose, one computation at a time."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "budgets")
        self._lock = threading.Lock()
        self._tables: OrderedDict[str, Future[tuple[BudgetNoise, ...]]] = OrderedDict()

    def get(self, spec: RunSpec, view: str, budgets: Sequence[float]) -> Future[tuple[BudgetNoise, ...]]:
        from engine.training.forecast import budget_noises

        key = json.dumps([_without_noise(spec).canonical(), view, list(budgets)], sort_keys=True)
        with self._lock:
            if key not in self._tables:
                self._tables[key] = self._pool.submit(budget_noises, spec, view, budgets)  # type: ignore[arg-type]
            self._tables.move_to_end(key)
            while len(self._tables) > MOST:
                self._tables.popitem(last=False)
            return self._tables[key]

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def _without_noise(spec: RunSpec) -> RunSpec:
    """The spec without what no noise of a budget depends on: its own noise, and the step of the server."""
    from engine.capabilities import HasNoise, HasServerStep

    method = spec.method
    if isinstance(method, HasNoise):
        method = method.with_noise(method.default_noise())
    if isinstance(method, HasServerStep):
        method = method.with_(server_step=1.0)
    return spec.with_(method=method, target_epsilon=None, budget=None, view=None)


@st.cache_resource(show_spinner=False, on_release=lambda tables: tables.close())
def _tables() -> BudgetTables:
    return BudgetTables()


def noises(spec: RunSpec, view: str, budgets: Sequence[float]) -> tuple[BudgetNoise, ...] | None:
    """The noise for each budget; None while they are computed. Raises BadInput where the view has no ε."""
    table = _tables().get(spec, view, budgets)
    try:
        return table.result(WAIT_S)
    except TimeoutError:
        return None
