"""What the blind test says: a visitor looks for the original of a reconstruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from app.texts import attacks as attack_texts

if TYPE_CHECKING:
    from app.screens.leak.blind_test.panel import BlindScore


TEST = "Which picture was it made from?"


TEST_LEAD = (
    "An attacker rebuilt a picture that this page has not shown you. "
    "It is one of six, all of the same class where there are enough. "
    "Half of the rebuilt pictures come from uploads without protection."
)


PREPARE = "Prepare {many} rebuilt pictures"


PREPARE_MORE = "{many} more pictures"


AGAIN = "Start again"


ORIGINAL = "Its original: {title}"


REBUILT = "A rebuilt picture"


CHOICE = "Choice {number} of {of}"


CHOOSE = "It is {number}"


WAIT = "The next picture is still being rebuilt."


OPEN = "without protection"


DEFENDED = "with protection"


HEADS = ("", "right", "95 % interval", "by chance", "mean PSNR shown")


def prepare(missing: int, of: int) -> str:
    return PREPARE.format(many=missing)


def answered(right: bool, chosen: int, truth: int, column: str, psnr: float) -> str:
    said = f"Right: it was {truth}." if right else f"Not {chosen}: it was {truth}."
    return f"{said} Rebuilt with {column}, {attack_texts.decibel(psnr)}."


def boxes(one: BlindScore, choices: int) -> tuple[str, ...]:
    """One row of the score."""
    chance = f"{100 / choices:.0f} %"
    if not one.asked:
        return ("–", "–", chance, "–")
    low, high = one.interval
    rate = f"{one.right} of {one.asked}, {100 * one.right / one.asked:.0f} %"
    return (rate, f"{100 * low:.0f} to {100 * high:.0f} %", chance, attack_texts.decibel(one.psnr))


def table(rows: Mapping[str, Sequence[str]]) -> str:
    """The score for both kinds of pictures."""
    heads = "".join(f'<th scope="col">{head}</th>' for head in HEADS)
    lines = [
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{box}</td>" for box in boxes)}</tr>'
        for name, boxes in rows.items()
    ]
    body = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f'{attack_texts.TABLE_CSS}<div class="ll-numbers" tabindex="0">{body}</div>'


def score(scores: Mapping[str, BlindScore], choices: int) -> str:
    """What the score says, once there is one."""
    told = []
    for name, one in scores.items():
        if one.asked:
            beyond = "more often than chance" if one.skilled(choices) else "not surely more often than chance"
            told.append(f"{name} you were right {one.right} of {one.asked} times, {beyond} (1 in {choices})")
    text = "; ".join(told)
    return f"{text[:1].upper()}{text[1:]}." if text else ""
