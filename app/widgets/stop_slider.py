"""The slider of protection: the whole stored table, which the browser redraws while the finger moves.

Python hears the release only. Every stop of every upload is in the data, so that no picture waits for the server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import streamlit as st

from app.session import session
from app.widgets.component import component

KEY, TURN = "stop-slider", "stop-slider-turn"  # of the session: the component, and the last choice that was handled
_component = component("leaklens_stops", '<div class="stops"></div>\n', "stop_slider.css", "stop_slider.js")

# The pictures that the browser shows before it has loaded the component have the place of the component's own, and the
# page below has its place: nothing moves when the component appears. Under load the styles of the page above can arrive
# after the pictures, which would then move: they are hidden until `--styled` is set.
FIRST_CSS = """
<style>
.st-key-stops { position: relative; container-type: inline-size; --side: 308px; min-height: 510px; }
@media (max-width: 1180px) { .st-key-stops { min-height: 531px; } }
@media (max-width: 960px) { .st-key-stops { min-height: 475px; } }
@media (max-width: 640px) { .st-key-stops { min-height: 596px; } }
.st-key-stops > div:has(.ll-first) { position: absolute; width: 100%; }
.ll-first { visibility: var(--styled, hidden); position: absolute; top: 1.6rem; left: 0; display: flex; gap: 1.5rem; }
.ll-first > * { width: var(--side); height: var(--side); image-rendering: pixelated; background: var(--hair); }
@container (max-width: 1100px) { .ll-first { --side: 252px; } }
@container (max-width: 820px) { .ll-first { --side: 196px; gap: 1rem; } }
@container (max-width: 600px) {
  .ll-first { --side: min(350px, 100cqw); top: 1.4rem; left: 50%; translate: -50%; }
  .ll-first > :first-child { display: none; }
}
</style>
"""


@dataclass(frozen=True)
class StopView:
    """One stop for one upload, as the page shows it."""

    tick: str  # below the slider
    place: str  # the stop in words, for a screen reader
    src: str  # PNG in base64
    alt: str
    word: str  # the verdict
    tone: str  # `leaking` or empty
    by: str  # by which of how many attacks
    accuracy: str
    spread: str  # of the accuracy over several seeds
    promise: str
    promise_terms: str  # next to the promise, where it has a number
    promise_observer: str  # the same; a phone has it above the picture
    promise_tone: str  # `private`, `ink`, `weak` or `leaking`
    sentence: str
    lesson: str = ""
    note: str = ""  # what limits the verdict
    easiest: bool = False  # whether the note is followed by the way to an ordinary upload
    terms: str = ""  # of the ε, in small print


@dataclass(frozen=True)
class UploadView:
    """All stops for one upload."""

    key: str
    title: str
    original: str  # PNG in base64
    original_alt: str
    stops: tuple[StopView, ...]  # empty: this upload cannot be chosen


@dataclass(frozen=True)
class StopSheet:
    """Everything that the slider shows."""

    uploads: Sequence[UploadView]
    stop: int
    upload: str
    words: Mapping[str, str]
    reason: str = ""  # why some uploads cannot be chosen

    @property
    def shown(self) -> UploadView:
        return next(upload for upload in self.uploads if upload.key == self.upload)


def draw(sheet: StopSheet, on_release: Callable[[int, str], None]) -> None:
    """Draw the slider. `on_release` gets the chosen stop and upload."""
    with st.container(key="stops"):
        st.html(FIRST_CSS + _first_pictures(sheet))
        _component(
            key=KEY,
            data={**asdict(sheet), "turn": session.recall(TURN, 0)},
            on_choice_change=lambda: _released(on_release),
        )


def _released(on_release: Callable[[int, str], None]) -> None:
    """Report what the visitor chose. The browser ignores the data of an earlier turn, because it is already further."""
    choice = session.recall(KEY).get("choice")
    if not isinstance(choice, Mapping):
        return
    stop, upload, turn = (choice.get(name) for name in ("stop", "upload", "turn"))
    if not isinstance(stop, int) or not isinstance(upload, str) or not isinstance(turn, int):
        return
    session.remember(TURN, turn)
    on_release(stop, upload)


def _first_pictures(sheet: StopSheet) -> str:
    """The pictures of the shown stop as HTML. The component's own pictures cover them as soon as it is loaded."""
    upload = sheet.shown
    stop = upload.stops[min(sheet.stop, len(upload.stops) - 1)] if upload.stops else None
    pictures = [upload.original, stop.src if stop else ""]
    return f'<div class="ll-first" aria-hidden="true">{"".join(map(_image, pictures))}</div>'


def _image(png: str) -> str:
    return f'<img alt="" src="data:image/png;base64,{png}">' if png else "<span></span>"
