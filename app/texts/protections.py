"""The texts of the picker of protections."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from app.texts import privacy

TITLE = "Protection"
FIND, FIND_HINT = "Find", "a name, or what it does"
SUGGESTED, FAMILIES = "Suggested", "All methods, by family"
DOES_NOT_FIT = "Does not fit: {reason}"
OTHER_VARIANT = "on this screen {title}"
CHOSEN = "Chosen now."
NO_PROMISE = "No promise."
PROVEN = "Proven {against}, {per}."
PROVEN_LARGER = "Proven {per} for other observers. {against} the same noise gives a larger ε."
PROVEN_FOR_OTHERS = "Proven {per}, but not {against}."


def chosen(title: str, family: str) -> str:
    """The label of the button that opens the picker. A phone leaves the family out."""
    return f"{TITLE}: {title} :gray[· {family}]"


def found(title: str, method: str, sentence: str) -> str:
    """A protection in the box that finds all of them. Its method is named where the title does not."""
    name = title if method in title else f"{title} ({method})"
    return f"{name} - {sentence}"


def kind(status: str, unit: str | None, proven: Collection[str], view: str) -> str:
    """The kind of promise of a protection: who it holds against, and what it hides. Its size is another matter.

    `proven` are the observers against whom there is a finite ε.
    """
    if status in ("claimed-refuted", "empirical"):
        return f"{privacy.STATUSES[status][0]}."
    if unit is None or not proven:
        return NO_PROMISE
    words: Mapping[str, str] = {"against": privacy.AGAINST[view], "per": privacy.PER[unit]}
    if status == "formal-other-view" and view == "server" and view in proven:
        against = privacy.AGAINST[view]
        return PROVEN_LARGER.format(per=privacy.PER[unit], against=f"{against[:1].upper()}{against[1:]}")
    return (PROVEN if view in proven else PROVEN_FOR_OTHERS).format(**words)


def small_print(title: str, method: str, verdict: str, chosen: bool) -> str:
    """The last line of a protection: its method where the title does not name it, then its promise or its reason."""
    sentences = [CHOSEN] if chosen else []
    if method not in title:
        sentences.append(f"{method}.")
    return " ".join([*sentences, verdict])


def reason(text: str, remedy: str = "") -> str:
    """Why a protection does not fit, as sentences."""
    sentences = [sentence.rstrip(".") for sentence in (text, remedy) if sentence]
    return DOES_NOT_FIT.format(reason=". ".join(sentences) + ".")
