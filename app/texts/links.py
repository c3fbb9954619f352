"""Notes about the parameters of a link that are not used."""

from __future__ import annotations

MORE = "{many} more settings of this link are not used."


LIST = "must have at least one name that this version knows"
WORD_RULES = {  # of a word in a list, where it is more than a name
    "against": "must be none, run, a method, a method with its noise from 0 to 1,000 (udp-fedavg:0.1), or with its ε "
    "above 0 and up to 1,000,000 (udp-fedavg@10)",
}


def not_used(name: str, rule: str, value: str) -> str:
    """A value that breaks the rule of its setting."""
    return f"The link has {name} = {value}. It {rule}, so the default is used."


def unknown_word(name: str, word: str) -> str:
    """A word of a list that breaks its rule, or that this version does not know."""
    if name in WORD_RULES:
        return f"The link has {word} under {name}. It {WORD_RULES[name]}, so it is left out."
    return f"The link names {word} under {name}. This version does not know it, so it is left out."


def unknown_setting(name: str) -> str:
    return f"The link has a setting {name}. This version does not know it, so it is left out."


def unknown_part(part: str, name: str, used: str) -> str:
    return f"The link names the {part} {name}. This version does not know it, so {used} is used."


def newer(written: str, known: int) -> str:
    """A link of a newer version."""
    return f"A newer LeakLens made this link (format {written}; this one knows {known})."
