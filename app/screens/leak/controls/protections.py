"""The columns: one method at several strengths, or several methods at the same budget."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from app.screens.leak.columns import offered_titles
from app.screens.leak.requests import STATE
from app.screens.leak.settings import (
    BUDGET,
    BUDGETS,
    COMPARED,
    MOST_COLUMNS,
    LeakSettings,
    at_budget,
    at_strengths,
    offered,
)
from app.session import session
from app.texts import attack_form as form_texts
from app.texts import privacy
from app.widgets import protection_picker
from engine.specs import attack_grid


def columns(leak: LeakSettings) -> None:
    """Ask what the columns compare. Methods are compared at the same budget, never at the same noise."""
    mode = "strength" if leak.budget is None else "budget"
    st.segmented_control(
        form_texts.COMPARE, list(form_texts.MODES), required=True, format_func=form_texts.MODES.__getitem__,
        **session.bind("leak-mode", mode, _choose_mode),
    )  # fmt: skip
    if leak.budget is None:
        _method(leak)
    else:
        _budget(leak, leak.budget)
    with st.popover(form_texts.GRID_OF):
        titles = offered_titles(leak)
        keys = [key for key in titles if key != attack_grid.NONE]
        chosen = [key for key in leak.against if key != attack_grid.NONE]
        st.multiselect(
            form_texts.AGAINST, keys, format_func=lambda key: titles.get(key, key),
            help=form_texts.AGAINST_HELP, max_selections=MOST_COLUMNS - 1,
            **session.bind("leak-against", chosen, _choose_columns),
        )  # fmt: skip


def _choose_mode(mode: str) -> None:
    columns = at_budget(COMPARED, BUDGET) if mode == "budget" else at_strengths(attack_grid.NOISY)
    STATE.choose(against=columns)


def _method(leak: LeakSettings) -> None:
    """Ask for the method whose strengths are the columns."""
    fixed = attack_grid.EVERY_COLUMN
    method = {"method": leak.method, **{f"method.{name}": value for name, value in fixed.items()}}
    protection_picker.show(
        {**leak.run, **method}, leak.eyes, lambda chosen: STATE.choose(against=at_strengths(chosen["method"])),
        "leak-method", fixed, {LeakSettings.default_run["method"]: form_texts.ALWAYS_A_COLUMN},
    )  # fmt: skip


def _budget(leak: LeakSettings, epsilon: float) -> None:
    """Ask for the budget that all methods keep."""
    methods = [key.partition("@")[0] for key in leak.against if attack_grid.budget_of(key) is not None]
    st.selectbox(
        form_texts.BUDGET.format(against=privacy.AGAINST[leak.eyes]), sorted({*BUDGETS, epsilon}),
        format_func=form_texts.budget, help=form_texts.BUDGET_HELP, width=290,
        **session.bind("leak-budget", epsilon, lambda value: STATE.choose(against=at_budget(methods, value))),
    )  # fmt: skip


def _choose_columns(keys: Sequence[str]) -> None:
    order = offered(STATE.current())
    STATE.choose(against=(attack_grid.NONE, *sorted(keys, key=order.index)))
