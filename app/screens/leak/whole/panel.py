"""All pictures of an ordinary upload beside their guesses, in a closed panel under the grid."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import streamlit as st

from app.texts import attacks as attack_texts
from app.texts import verdicts
from engine.results.attack_summary import AttackCell, guess_of

CSS = """
<style>
.ll-all { display: grid; grid-template-columns: repeat(auto-fill, minmax(118px, 1fr)); gap: .6rem; }
.ll-all figure { margin: 0; }
.ll-all img { width: 56px; height: 56px; image-rendering: pixelated; }
.ll-all figcaption { font-size: .8rem; color: var(--faint); }
.ll-all .ll-leaking { font-weight: 600; }
</style>
"""


def panel(attacks: Mapping[str, str], titles: Mapping[str, str], cells: Sequence[AttackCell]) -> None:
    """Show every picture of one attack on one upload. Nothing for an upload of the chosen pictures only."""
    ended = {f"{attacks[cell.attack]}, {titles[cell.column]}": cell for cell in cells if cell.done and cell.ordinary}
    if not ended:
        return
    st.html(f'<h2 class="ll-title">{html.escape(attack_texts.ALL)}</h2>')
    chosen = st.selectbox(attack_texts.ALL_BY, list(ended), width=380, key="leak-all")
    st.caption(attack_texts.ALL_NOTE)
    shown = ended[str(chosen)]
    count = len(shown.path[-1].places) if shown.path else 0
    guessed = len(shown.judged.places) if shown.judged else count
    text = attack_texts.ALL_COUNT if guessed == count else attack_texts.FEW_STORED  # of a stored example
    st.caption(text.format(count=count, guessed=guessed))
    st.html(f'{CSS}<div class="ll-all">{"".join(figures(shown))}</div>')


def figures(cell: AttackCell) -> list[str]:
    """Each original that has a guess, beside it and its verdict: the chosen picture, then those that come back."""
    assert cell.seen is not None
    parts = []
    places = cell.path[-1].places if cell.path else ()
    for place in sorted(places, key=lambda place: (place != 0, not cell.leaks(place), place)):
        original = cell.seen.originals[place]
        guess = guess_of(cell.path[-1], place)
        word = html.escape(verdicts.caption(cell, place))
        style = ' class="ll-leaking"' if cell.leaks(place) else ""
        number = place + 1
        pictures = _picture(original, f"Original {number}")
        if guess:
            pictures += _picture(guess[0], f"Guess {number}: {word}")
        parts.append(f"<figure>{pictures}<figcaption{style}>{word}</figcaption></figure>")
    return parts


def _picture(png: str, alt: str) -> str:
    return f'<img alt="{alt}" src="data:image/png;base64,{png}">'
