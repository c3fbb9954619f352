"""The texts of membership attacks: the list of runs and the exported page. Their screen comes later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app.texts import privacy

if TYPE_CHECKING:
    from engine.events import Scored

TITLE = "Was this record in the training data?"
NO_SCREEN = "Membership attacks have no screen yet. Export this attack to see its curve."
HOW = {
    "record": "Members are training records that entered an upload. The others are test records of the same classes, "
    "which no one trained on. A label alone says nothing: both groups have equally many records of each class. Where "
    "the test data differ from the training data, part of the result is that difference.",
    "user": "Members are clients that took part, each with the mean score of some of its records. The others are "
    "clients that never took part, with as many records each.",
}
NO_PROOF = "50 % is no proof of privacy. A better attack may exist."
CURVE = "Members found, by share of false alarms. The broken line is guessing."
ACROSS, UP = "false alarms: others called members, %", "members found, %"
GUESSING = "guessing"
TABLE = "What the attack finds"
HEADS = ("false alarms", "members found")
SCORED = {"record": "record by record", "user": "client by client"}
NOUNS = {"record": "records", "user": "clients"}


def row_title(attack: str, method: str, when: str, unit: str) -> str:
    """The title of a membership attack in the list of runs."""
    what = "clients" if unit == "user" else "records"
    return f"{attack or 'An attack'} on {method or 'a method'}: which {what} were in the training data? {when}"


def outcome(auc: float, low: float, high: float) -> str:
    """The result in the list of runs."""
    return f"tells apart {100 * auc:.0f} % of pairs ({100 * low:.0f} to {100 * high:.0f}); guessing 50 %"


def verdict(scored: Scored, title: str) -> str:
    """The result in one sentence. An attack that fails is never evidence of protection."""
    low, high = (100 * value for value in scored.interval)
    nouns = NOUNS[scored.unit]
    seen = privacy.SEEN_BY[scored.view]
    result = (
        f"{title}, {seen}: of a member and another one, the attack names the member in {100 * scored.auc:.0f} of 100 "
        f"pairs (95 % interval {low:.0f} to {high:.0f}; {scored.members} {nouns} against {scored.others})."
    )
    if low > 50:
        return f"{result} It tells members apart better than guessing."
    if high < 50:
        return f"{result} That is worse than guessing: its scores tell members apart the other way round."
    return f"{result} With this many {nouns}, that cannot be told from guessing."


def rates(tpr: Mapping[str, float]) -> list[tuple[str, str]]:
    """The rows of the table: the share of members found at each share of false alarms."""
    return [(f"{100 * float(fpr):g} %", f"{100 * value:.1f} %") for fpr, value in tpr.items()]


def is_membership(spec: Mapping[str, Any]) -> bool:
    return spec.get("kind") == "membership"
