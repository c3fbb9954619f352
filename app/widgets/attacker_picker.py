"""The picker of an attacker: what it may do, what it knows and how long it searches, in place of a list of attacks.

The engine takes all attacks that fit: see `engine/specs/attack_choice.py`. A visitor may still choose them one by one.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import streamlit as st

from app.session import run_settings, services, session
from app.texts import attackers as texts
from engine.specs import attack_choice
from engine.specs.attack_choice import AttackChoice
from engine.specs.attack_grid import AttackGrid

OnChoose = Callable[[tuple[str, ...], str], None]

CSS = """
<style>
.ll-attackers { margin: .2rem 0; font-size: .92rem; }
.ll-misfits { margin: 0; padding-left: 1.1rem; font-size: .85rem; color: var(--faint); }
[class*="-attacker-links"] button p { text-decoration: underline; }
</style>
"""


@dataclass(frozen=True)
class AttackerPicker:
    """What a picker needs of its screen."""

    grid: AttackGrid  # the attacked runs, the observer, the upload; its attacks are those chosen now
    on_choose: OnChoose  # receives the attacks, and the kind of upload that they attack
    key: str
    runs: int = 1  # that are attacked, which the grid need not hold: the time is that of all
    _offered: dict[str, dict[str, str]] = field(default_factory=dict)  # by the kind of upload: a pass needs it often

    def offered(self, upload: str) -> dict[str, str]:
        """Every attack on pictures, with the reason why it does not fit; empty where it fits one of the runs."""
        if upload in self._offered:
            return self._offered[upload]
        grid = self.grid.with_(attacks=run_settings.attack_names(), upload=upload)
        reasons: dict[str, str] = {}
        for request in grid.requests():
            reason = request.problem
            if request.spec:
                reason = services.attack_problem(request.spec)
            reasons[request.attack] = reason if reasons.get(request.attack, reason) else ""
        self._offered[upload] = reasons
        return reasons

    def fits(self, upload: str) -> tuple[str, ...]:
        """The attacks that fit."""
        return tuple(name for name, reason in self.offered(upload).items() if not reason)

    @property
    def choice(self) -> AttackChoice:
        """What the controls show: the last choice while it gives these attacks, else the least that they need."""
        last = session.recall(f"{self.key}-choice")
        if isinstance(last, AttackChoice) and set(self.of(last)) == set(self.grid.attacks):
            return last
        return attack_choice.described(self.grid.attacks)

    def of(self, choice: AttackChoice) -> tuple[str, ...]:
        """The attacks of such an attacker."""
        return attack_choice.fitting(self.fits(attack_choice.upload_for(self.grid.upload, choice)), choice)

    def choose(self, choice: AttackChoice) -> None:
        """Take all attacks of such an attacker. Without any, nothing changes, and the page shows why."""
        names = self.of(choice)
        session.remember(f"{self.key}-none", "" if names else texts.NO_ATTACKER)
        if names:
            session.remember(f"{self.key}-choice", choice)
            self.on_choose(names, attack_choice.upload_for(self.grid.upload, choice))


def show(picker: AttackerPicker) -> None:
    """Draw the picker."""
    choice = picker.choice
    st.html(CSS)
    _answers(picker, choice)
    note = session.recall(f"{picker.key}-none", "")
    if note:
        st.html(f'<p class="ll-note" role="status">{html.escape(note)}</p>')
    offered = picker.offered(picker.grid.upload)
    _count(picker, choice, offered)
    if session.recall(f"{picker.key}-by-name"):
        _names(picker, offered)


def summary(picker: AttackerPicker) -> str:
    """The attacker in a few words, for a button that opens the picker."""
    return texts.summary(picker.grid.view, picker.choice.changes, picker.choice.searches)


def _answers(picker: AttackerPicker, choice: AttackChoice) -> None:
    """The three questions."""
    is_server = picker.grid.view == "server"
    _question(picker, texts.SERVER, "changes", choice, (texts.WATCHES, texts.CHANGES), disabled=not is_server)
    if not is_server:
        st.caption(texts.ONLY_SERVER)
    _question(picker, texts.KNOWS, "learns", choice, (texts.NOTHING_ELSE, texts.PICTURES))
    thorough = texts.effort(_seconds(picker, replace(choice, searches=True)))
    _question(picker, texts.EFFORT, "searches", choice, (texts.INSTANT, thorough))


def _question(
    picker: AttackerPicker, label: str, name: str, choice: AttackChoice, titles: tuple[str, str], disabled: bool = False
) -> None:
    """One question with the answers no and yes.

    The values are words: a control with the value False would show no answer.
    """
    words = ("no", "yes")
    binding = session.bind(
        f"{picker.key}-{name}", words[getattr(choice, name)],
        lambda word: picker.choose(replace(choice, **{name: word == "yes"})),
    )  # fmt: skip
    shown = dict(zip(words, titles, strict=True))
    st.segmented_control(label, words, format_func=shown.__getitem__, required=True, disabled=disabled, **binding)


def _seconds(picker: AttackerPicker, choice: AttackChoice) -> float | None:
    """The seconds that the searches of such an attacker took, here or where the examples were made. None if unknown.

    A search that never ran counts as the mean of the others.
    """
    names = [name for name in picker.of(choice) if attack_choice.needs(name).searches]
    known = []
    for request in picker.grid.with_(attacks=tuple(names)).requests():
        seconds = services.attack_seconds(request.spec) if request.spec else None
        if seconds is not None:
            known.append(seconds)
    if not known:
        return None
    return sum(known) / len(known) * len(names) * picker.runs / services.slots()


def _count(picker: AttackerPicker, choice: AttackChoice, offered: Mapping[str, str]) -> None:
    """Say how many attackers are used and which, and offer all of them or a choice by name."""
    chosen = [name for name in picker.grid.attacks if not offered.get(name, "unknown")]
    titles = [run_settings.attack_title(name) for name in chosen]
    every = picker.of(choice)
    of_one_kind = bool(chosen) and set(chosen) <= set(every)
    text = texts.fit(titles, len(every)) if of_one_kind else texts.chosen(titles)
    st.html(f'<p class="ll-attackers" role="status">{html.escape(text)}</p>')
    with st.container(horizontal=True, key=f"{picker.key}-attacker-links"):
        if len(chosen) < len(every):
            label = texts.USE_ALL.format(many=len(every))
            st.button(label, key=f"{picker.key}-all", type="tertiary", on_click=picker.choose, args=(choice,))
        opened = bool(session.recall(f"{picker.key}-by-name"))
        st.button(
            texts.CLOSE if opened else texts.CHOOSE, key=f"{picker.key}-choose-attacks", type="tertiary",
            on_click=session.remember, args=(f"{picker.key}-by-name", not opened),
        )  # fmt: skip


def _names(picker: AttackerPicker, offered: Mapping[str, str]) -> None:
    """The list of attacks by name, and the reason of each that does not fit."""
    titles = {name: texts.option(run_settings.attack_title(name), reason) for name, reason in offered.items()}
    st.multiselect(
        texts.NAMES, list(titles), format_func=lambda name: titles.get(name, name), wrap=True,
        **session.bind(f"{picker.key}-attacks", list(picker.grid.attacks), _by_name(picker)),
    )  # fmt: skip
    reasons = [(name, reason) for name, reason in offered.items() if reason]
    if reasons:
        rows = [f"<li>{html.escape(texts.misfit(run_settings.attack_title(name), why))}</li>" for name, why in reasons]
        st.html(f'<ul class="ll-misfits">{"".join(rows)}</ul>')


def _by_name(picker: AttackerPicker) -> Callable[[Sequence[str]], None]:
    return lambda names: picker.on_choose(tuple(names), picker.grid.upload)
