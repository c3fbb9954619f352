"""The texts of the blind test: you look for the original of a reconstruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from app.texts import attacks as attack_texts

if TYPE_CHECKING:
    from app.screens.leak.blind_test.panel import BlindScore

TITLE = "Which picture was it made from?"
LEAD = (
    "An attacker rebuilt pictures that this page has not shown you. Find the original of each among six pictures. "
    "All six show the same class where there are enough."
)
HALF = "Half of the uploads were sent without any protection."
PREPARE = "Rebuild {many} pictures"
PREPARE_MORE = "Rebuild {many} more pictures"
NEXT = "Next picture"
RESTART = "Start again"
REBUILT, ORIGINAL, CHOSEN = "Rebuilt", "The original", "Your choice"
WHICH = "Choose the original:"
WAIT = "The next picture is being rebuilt."
RIGHT, WRONG = "Right.", "No, it was another picture."
BASELINE = "without protection"
PROTECTED = "with protection"
HEADS = ("", "you were right", "your likely share", "by guessing")
INTERVAL = "Your likely share is a 95 % interval. It becomes narrower with each answer."
RARELY, OFTEN = "Guessing rarely does as well.", "Guessing may do as well."


def prepare(missing: int, of: int) -> str:
    del of
    return PREPARE.format(many=missing)


def place(number: int, of: int) -> str:
    """The place of a question in its set."""
    return f"Rebuilt picture {number} of {of}"


def choice(number: int, of: int, title: str) -> str:
    """The text alternative of a picture to choose."""
    return f"Picture {number} of {of}: {title}"


def answered(right: bool, column: str) -> str:
    """Return whether the answer was right, and how the upload was protected."""
    return f"{RIGHT if right else WRONG} The upload had {column}."


def score_row(score: BlindScore, choices: int) -> tuple[str, ...]:
    """Return one row of the score."""
    guessing = f"1 in {choices}, {100 / choices:.0f} %"
    if not score.total:
        return ("–", "–", guessing)
    low, high = score.interval
    rate = f"{score.right} of {score.total}, {100 * score.right / score.total:.0f} %"
    return (rate, f"{100 * low:.0f} to {100 * high:.0f} %", guessing)


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
    sentences = []
    for name, score in scores.items():
        if score.total:
            guessing = RARELY if score.above_guessing(choices) else OFTEN
            start = f"{name[:1].upper()}{name[1:]}"
            times = "time" if score.total == 1 else "times"
            sentences.append(f"{start} you were right {score.right} of {score.total} {times}. {guessing}")
    return " ".join(sentences)
