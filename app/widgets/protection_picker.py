"""The picker of a protection: a button that opens a drawer with suggestions, families, and a box that finds all.

Everything in it is read from the shelf of methods: see `engine/specs/protections.py`.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from app.session import run_settings, services, session
from app.texts import protections as texts
from engine.capabilities import Family
from engine.errors import LeakLensError
from engine.specs import protections
from engine.specs.protections import Protection

OnChoose = Callable[[Mapping[str, Any]], None]
WIDTH = 460  # of the drawer in pixels; a phone is narrower

CSS = """
<style>
h3.ll-drawer { font-size: .85rem; font-weight: 600; color: var(--faint); padding: 0; margin: 0; }
.st-key-drawer { gap: 0 !important; }
.st-key-drawer h3.ll-drawer { margin-top: 1.4rem; padding-bottom: .4rem; }
[class*="st-key-drawer-card-"] { position: relative; gap: .1rem !important; padding: .5rem .4rem .6rem;
  border-top: 1px solid var(--hair); }
[class*="st-key-drawer-card-"] > [data-testid="stElementContainer"] { position: static; }  /* the card is the button */
[class*="st-key-drawer-card-"] button { padding: 0; min-height: 0; }
[class*="st-key-drawer-card-"] button p { font-weight: 600; text-align: left; }
[class*="st-key-drawer-card-"] button:not(:disabled)::after { content: ""; position: absolute; inset: 0; }
[class*="st-key-drawer-card-"]:has(button:not(:disabled)):hover { background: var(--hair); }
[class*="st-key-drawer-card-"]:has(button:focus-visible) { outline: 2px solid var(--ink); outline-offset: -2px; }
[class*="st-key-drawer-card-"] button[kind="tertiary"]:disabled p { color: var(--faint); }
.ll-drawer-does, .ll-drawer-kind { margin: 0; font-size: .92rem; line-height: 1.4; }
.ll-drawer-kind { color: var(--faint); }
[class*="st-key-drawer-family-"] { gap: 0 !important; border-top: 1px solid var(--hair); padding: .25rem 0; }
[class*="st-key-drawer-family-"] summary p::before { content: ""; display: inline-block; width: .7rem; height: .7rem;
  border-radius: 50%; margin-right: .5rem; background: currentColor; }
[class*="st-key-drawer-family-"] summary p { color: var(--ink); }
@media (max-width: 700px) { :has(> [role="dialog"]) { width: 100vw !important; max-width: none !important; } }
"""


@dataclass(frozen=True)
class Drawer:
    """What a picker needs of its screen."""

    run: Mapping[str, Any]  # flat settings
    view: str  # the observer
    on_choose: OnChoose
    key: str
    # Fields that the screen fixes for every method that has them, by their names in JSON.
    fixed: Mapping[str, Any] = field(default_factory=dict)
    refusals: Mapping[str, str] = field(default_factory=dict)  # methods that the screen does not take, with the reason

    @property
    def chosen_flag(self) -> str:
        """The session key that says that a choice was made, so that the drawer closes."""
        return f"{self.key}-chosen"


def show(
    run: Mapping[str, Any],
    view: str,
    on_choose: OnChoose,
    key: str,
    fixed: Mapping[str, Any] | None = None,
    refusals: Mapping[str, str] | None = None,
) -> None:
    """Draw the button. `on_choose` receives the flat settings of the run that choose the protection.

    The button is a fragment: opening the drawer must not draw the whole page again.
    """
    with st.container(width="content", key=f"{key}-protection"):
        st.fragment(_button)(Drawer(run, view, on_choose, key, fixed or {}, refusals or {}))


def _button(drawer: Drawer) -> None:
    chosen = protections.described(drawer.run)
    if st.button(texts.chosen(chosen.title, chosen.family.title), key=drawer.key):
        session.remember(drawer.chosen_flag, False)
        st.dialog(texts.TITLE, width=WIDTH, position="right")(_content)(drawer)


def _content(drawer: Drawer) -> None:
    """Draw the drawer. After a choice the whole page is drawn again, which closes it."""
    if session.recall(drawer.chosen_flag):
        session.remember(drawer.chosen_flag, False)
        session.rerun()
    st.html(CSS + _family_css())
    with st.container(key="drawer"):
        _finder(drawer)
        st.html(f'<h3 class="ll-drawer">{texts.SUGGESTED}</h3>')
        for protection in protections.suggested():
            _card(drawer, protection, "suggested")
        st.html(f'<h3 class="ll-drawer">{texts.FAMILIES}</h3>')
        for place, (family, members) in enumerate(protections.by_family().items()):
            _family(drawer, place, family, members)


def _family_css() -> str:
    """The dot of each family in its colour."""
    rules = []
    for place, family in enumerate(protections.by_family()):
        dot = f".st-key-drawer-family-{place} summary p::before"
        rules.append(f"{dot} {{ background: var(--family-{family.colour}); }}")
    return f"{' '.join(rules)}</style>"


# --- the parts of the drawer -------------------------------------------------------------------------------


def _finder(drawer: Drawer) -> None:
    """One box that finds every protection by its name or by what it does."""
    every = {protection.title: protection for protection in protections.every()}
    key = f"{drawer.key}-find"
    title = st.selectbox(
        texts.FIND, list(every), index=None, placeholder=texts.FIND_HINT, key=key,
        format_func=lambda title: texts.found(title, every[title].method_title, every[title].sentence),
        on_change=lambda: _choose_found(drawer, every.get(session.recall(key) or "")),
    )  # fmt: skip
    refused = assess(drawer, every[title])[1] if title else ""
    if refused:
        st.html(f'<p class="ll-problem" role="alert">{html.escape(refused)}</p>')


def _choose_found(drawer: Drawer, protection: Protection | None) -> None:
    """Choose what was found, unless it does not fit."""
    if protection and not assess(drawer, protection)[1]:
        session.remember(f"{drawer.key}-find", None)
        _choose(drawer, protection)


def _family(drawer: Drawer, place: int, family: Family, members: tuple[Protection, ...]) -> None:
    """A family, closed at first. Whether its methods fit is computed when it opens."""
    with st.container(key=f"drawer-family-{place}"):
        box = st.expander(family.title, key=f"{drawer.key}-family-{place}", type="compact", on_change="rerun")
        if box.open:
            with box:
                for protection in members:
                    _card(drawer, protection, "family")


def _card(drawer: Drawer, protection: Protection, group: str) -> None:
    """One protection: its title, what it does, the kind of its promise, and the reason if it does not fit."""
    promise, refused = assess(drawer, protection)
    chosen = protections.described(drawer.run).title == protection.title
    with st.container(key=f"drawer-card-{group}-{protection.slug}"):
        st.button(
            protection.title, key=f"{drawer.key}-{group}-{protection.slug}", type="tertiary", disabled=bool(refused),
            on_click=_choose, args=(drawer, protection),
        )  # fmt: skip
        kind = texts.small_print(protection.title, protection.method_title, refused or promise, chosen)
        does = f'<p class="ll-drawer-does">{html.escape(protection.sentence)}</p>'
        st.html(f'{does}<p class="ll-drawer-kind">{html.escape(kind)}</p>')


def _choose(drawer: Drawer, protection: Protection) -> None:
    session.remember(drawer.chosen_flag, True)
    drawer.on_choose(_on_screen(drawer, protection).settings)


# --- whether a protection fits -----------------------------------------------------------------------------


def _on_screen(drawer: Drawer, protection: Protection) -> Protection:
    """The protection with the fields that the screen fixes. A suggestion or a variant is about its own fields."""
    is_method = protection.place is None and not protection.is_variant
    return protection.under(drawer.fixed) if is_method else protection


def assess(drawer: Drawer, protection: Protection) -> tuple[str, str]:
    """The kind of promise that a protection makes in this run, and why it does not fit; one of them is empty."""
    if protection.method in drawer.refusals:
        return "", texts.reason(drawer.refusals[protection.method])
    own = _on_screen(drawer, protection)
    if own.under(drawer.fixed).fields != own.fields:
        return "", texts.reason(_fixed_reason(drawer, protection))
    try:
        spec = run_settings.spec_of(run_settings.completed(own.applied_to(drawer.run)))
    except LeakLensError as error:
        return "", texts.reason(str(error))
    promised = services.promises_of(spec.canonical())
    problem = next((problem for problem in promised.problems if problem.fatal), None)
    if problem:
        return "", texts.reason(problem.reason, problem.remedy)
    guarantee = promised.guarantee
    assert guarantee is not None
    if drawer.view in guarantee.absent:
        return "", texts.reason(guarantee.absent[drawer.view])
    proven = {answer.view for answer in promised.answers if answer.value is not None}
    return texts.kind(guarantee.status, spec.method.unit(), proven, drawer.view), ""


def _fixed_reason(drawer: Drawer, protection: Protection) -> str:
    """That the screen fixes the fields of which this protection is a variant."""
    for variant in run_settings.variants(protection.method):
        if all(drawer.fixed.get(name) == value for name, value in variant.fields.items()):
            return texts.OTHER_VARIANT.format(title=variant.title)
    return ", ".join(f"{name}: {value}" for name, value in drawer.fixed.items())
