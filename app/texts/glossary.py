"""Twelve words of the field, each with one sentence and one still."""

from __future__ import annotations

import base64
from dataclasses import dataclass

TITLE = "Twelve words"
BUTTON = "?"
BUTTON_HELP = "Twelve words explained"
GREY, INK, LEAKING = "#94A3B8", "#64748B", "#D9480F"  # each is readable on light and on dark paper


@dataclass(frozen=True)
class GlossaryWord:
    """One word. The still is the inside of an SVG of 96 x 64, and shows what the sentence says."""

    word: str
    sentence: str
    still: str

    @property
    def src(self) -> str:
        """The still as the source of an image."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 96 64" fill="none" stroke="{INK}" stroke-width="2">'
        )
        return f"data:image/svg+xml;base64,{base64.b64encode(f'{head}{self.still}</svg>'.encode()).decode()}"


def _phone(x: int, y: int = 18) -> str:
    return f'<rect x="{x}" y="{y}" width="16" height="28" rx="3"/>'


def _server(x: int, y: int = 14) -> str:
    return f'<rect x="{x}" y="{y}" width="26" height="36" rx="2"/><path d="M{x} {y + 12}h26M{x} {y + 24}h26"/>'


def _arrow(x: int, y: int, length: int, colour: str = INK) -> str:
    tip = x + length
    return f'<path stroke="{colour}" d="M{x} {y}h{length}M{tip - 6} {y - 5}l6 5l-6 5"/>'


def _face(x: int, y: int, colour: str = INK) -> str:
    eyes = f'<path stroke="{colour}" d="M{x - 5} {y - 3}v3M{x + 5} {y - 3}v3M{x - 5} {y + 6}q5 4 10 0"/>'
    return f'<circle cx="{x}" cy="{y}" r="13" stroke="{colour}"/>{eyes}'


def _eye(x: int, y: int) -> str:
    return f'<path d="M{x - 16} {y}q16 -18 32 0q-16 18 -32 0z"/><circle cx="{x}" cy="{y}" r="5" fill="{INK}"/>'


def _dots(places: str) -> str:
    drawn = []
    for place in places.split():
        x, y = place.split(",")
        drawn.append(f'<circle cx="{x}" cy="{y}" r="1.5" fill="{GREY}" stroke="none"/>')
    return "".join(drawn)


SPECKS = "40,12 48,22 56,14 62,26 44,32 52,40 60,48 66,38 40,50 50,54 70,18 72,50"
WORDS = (
    GlossaryWord(
        "client",
        "A client is a phone or a hospital that trains on its own data and keeps them.",
        _phone(12) + _phone(40) + _phone(68),
    ),
    GlossaryWord(
        "server",
        "The server sends a model to the clients and merges what they send back.",
        _phone(10) + _arrow(32, 26, 22) + _server(62) + f'<path stroke="{INK}" d="M54 40h-22M38 35l-6 5l6 5"/>',
    ),
    GlossaryWord(
        "round",
        "In a round, some clients train the model and upload the change, and the server makes the next model.",
        '<path d="M48 12a20 20 0 1 1 -19 14M29 14v12h12"/>',
    ),
    GlossaryWord(
        "upload",
        "An upload is everything that leaves a client in a round: mostly the change of its model, as numbers.",
        _phone(10) + _arrow(32, 32, 24) + '<path d="M66 18h20M66 26h14M66 34h18M66 42h12"/>',
    ),
    GlossaryWord(
        "attack",
        "An attack rebuilds private data from what an observer sees.",
        '<path d="M8 22h18M8 30h12M8 38h16"/>' + _arrow(32, 31, 20, LEAKING) + _face(74, 31, LEAKING),
    ),
    GlossaryWord(
        "observer",
        "An observer is who must not learn it: the server, another participant, or anyone outside.",
        _eye(48, 32),
    ),
    GlossaryWord(
        "noise",
        "Noise is random numbers that a client or the server adds, so that an upload fits many pictures.",
        _face(24, 32) + _dots(SPECKS),
    ),
    GlossaryWord(
        "clip",
        "To clip an update is to shorten it, so that no client can change the model by more than a bound.",
        f'<path stroke="{GREY}" d="M12 52L84 8"/><path d="M12 52L50 29M44 26l8 2l-3 8"/>',
    ),
    GlossaryWord(
        "ε (epsilon)",
        "ε bounds how sure anyone can become about you: at most 1 is a strong promise, above 10 is none.",
        f'<path d="M10 46h76"/><path stroke="{GREY}" d="M22 46v-8M42 46v-18M62 46v-30M82 46v-38"/>',
    ),
    GlossaryWord(
        "δ (delta)",
        "δ is the small probability with which the bound ε need not hold.",
        f'<path d="M10 50q20 0 28 -24q6 -16 10 -16q4 0 10 16q8 24 28 24"/><path stroke="{LEAKING}" d="M78 49h8"/>',
    ),
    GlossaryWord(
        "unit",
        "The unit is what the promise protects: one person with all their data, or one record such as a picture.",
        _face(24, 32) + '<rect x="54" y="18" width="30" height="28"/><path d="M54 40l10 -10l8 8l5 -5l7 7"/>',
    ),
    GlossaryWord(
        "baseline",
        "The baseline is the same run without its protection: the difference in accuracy is the cost.",
        f'<path stroke="{GREY}" stroke-dasharray="4 3" d="M10 46q20 -30 76 -32"/><path d="M10 50q26 -14 76 -18"/>',
    ),
)
