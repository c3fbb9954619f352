"""Notes about the parameters of a link that are not used."""

from __future__ import annotations

MORE = "{many} more settings of this link are not used."


def not_used(name: str, rule: str, value: str) -> str:
    """A value that breaks the rule of its setting."""
    return f"The link has {name} = {value}. It {rule}, so the default is used."


def unknown_word(name: str, word: str) -> str:
    """A word of a list that this version does not know."""
    return f"The link names {word} under {name}. This version does not know it, so it is left out."


def unknown_setting(name: str) -> str:
    return f"The link has a setting {name}. This version does not know it, so it is left out."


def unknown_part(part: str, name: str, used: str) -> str:
    return f"The link names the {part} {name}. This version does not know it, so {used} is used."


def newer(written: str, known: int) -> str:
    """A link of a newer version."""
    return f"A newer LeakLens made this link (format {written}; this one knows {known})."
