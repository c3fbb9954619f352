"""The texts of the blind test: you look for the original of a reconstruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from app.texts import attacks as attack_texts

if TYPE_CHECKING:
    from app.screens.leak.blind_test.panel import BlindScore

TITLE = "Which picture was it made from?"
LEAD = (
    "An attacker rebuilt a picture that this page has not shown you. "
    "It is one of six, all of the same class where there are enough. "
    "Half of the rebuilt pictures come from uploads without protection."
)
PREPARE = "Prepare {many} rebuilt pictures"
PREPARE_MORE = "{many} more pictures"
RESTART = "Start again"
ORIGINAL = "Its original: {title}"
REBUILT = "A rebuilt picture"
CHOICE = "Choice {number} of {of}"
CHOOSE = "It is {number}"
WAIT = "The next picture is still being rebuilt."
BASELINE = "without protection"
PROTECTED = "with protection"
HEADS = ("", "right", "95 % interval", "by chance", "mean PSNR shown")


def prepare(missing: int, of: int) -> str:
    return PREPARE.format(many=missing)


def answered(right: bool, chosen: int, truth: int, column: str, psnr: float) -> str:
    """Return whether the answer was right, and how the picture was rebuilt. Choices count from 1."""
    verdict = f"Right: it was {truth}." if right else f"Not {chosen}: it was {truth}."
    return f"{verdict} Rebuilt with {column}, {attack_texts.decibel(psnr)}."


def score_row(score: BlindScore, choices: int) -> tuple[str, ...]:
    """Return one row of the score."""
    chance = f"{100 / choices:.0f} %"
    if not score.total:
        return ("–", "–", chance, "–")
    low, high = score.interval
    rate = f"{score.right} of {score.total}, {100 * score.right / score.total:.0f} %"
    return (rate, f"{100 * low:.0f} to {100 * high:.0f} %", chance, attack_texts.decibel(score.psnr))


def table(rows: Mapping[str, Sequence[str]]) -> str:
    """Return the score of both kinds of pictures as a table."""
    heads = "".join(f'<th scope="col">{head}</th>' for head in HEADS)
    lines = []
    for name, row in rows.items():
        cells = "".join(f"<td>{cell}</td>" for cell in row)
        lines.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    body = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f'{attack_texts.TABLE_CSS}<div class="ll-numbers" tabindex="0">{body}</div>'


def score_sentence(scores: Mapping[str, BlindScore], choices: int) -> str:
    """Return the score in words, or an empty string before the first answer."""
    parts = []
    for name, score in scores.items():
        if score.total:
            verdict = "more often than chance" if score.above_chance(choices) else "not surely more often than chance"
            parts.append(f"{name} you were right {score.right} of {score.total} times, {verdict} (1 in {choices})")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""
