"""The texts of the picker of an attacker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.texts import numbers

SERVER, KNOWS, EFFORT = "The server", "It knows", "Effort"
WATCHES, CHANGES = "only watches", "changes the model"
NOTHING_ELSE, PICTURES = "nothing else", "similar public pictures"
INSTANT, THOROUGH = "instant", "thorough"
ONLY_SERVER = "Only the server can change the model: it sends it."
NO_ATTACKER = "No attacker of this kind fits this model and upload, so nothing changed."
CHOOSE, CLOSE = "Choose attackers yourself", "Close the list"
USE_ALL = "Use all {many}"
NAMES = "Attackers"


def effort(seconds: float | None) -> str:
    """The label of the thorough attacker, with the seconds that such attacks took."""
    return THOROUGH if seconds is None else f"{THOROUGH}, about {numbers.duration(seconds)}"


def fit(titles: Sequence[str], of: int) -> str:
    """How many attackers are used. `of`: how many of this kind fit."""
    count = len(titles)
    names = ", ".join(titles)
    if count < of:
        return f"Chosen: {count} of the {of} attackers that fit: {names}."
    return f"1 attacker fits: {names}." if count == 1 else f"{count} attackers fit: {names}."


def chosen(titles: Sequence[str]) -> str:
    """The attackers that a visitor chose one by one, of several kinds."""
    return f"Chosen by yourself: {', '.join(titles)}." if titles else "Choose at least one attacker."


def option(title: str, reason: str) -> str:
    """An attack on offer, marked if it does not fit."""
    return f"{title} (does not fit)" if reason else title


def misfit(title: str, reason: str) -> str:
    """Why an attack does not fit."""
    return f"{title} does not fit: it {reason}" if reason.partition(" ")[0] in VERBS else f"{title}: {reason}"


def summary(view: str, changes: bool, searches: bool) -> str:
    """The attacker in a few words, for the button that opens the picker."""
    words = [WHO[view]]
    if view == "server":
        words.append(CHANGES if changes else "watches")
    words.append(THOROUGH if searches else INSTANT)
    return f"Attacker: {', '.join(words)}"


VERBS = ("changes", "is", "learns", "leaves", "needs", "reads", "works")  # with which a reason of the engine may begin
WHO: Mapping[str, str] = {
    "server": "server", "aggregate": "the sum of a round", "client": "participant", "outsider": "outsider",
}  # fmt: skip
