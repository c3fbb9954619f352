"""The rule that makes slides of a page, and the controls that switch between the two styles.

An element with `data_slide=KIND` is one slide. Slides follow each other by their kind, in the order of KINDS, then by
their place on the page. `data_page=True` marks what a slide leaves out, and the class `slide-only` what only a slide
shows. A slide inside another one is shown by itself. Of a table of pictures, a slide has the cells with `data_best`,
in this order (`picks`).
"""

from __future__ import annotations

from app.export.markup import Html, tag

QUESTION, ANSWER, COST, OBSERVERS, LIMITS, CLOSE, SETTINGS = (
    "question", "answer", "cost", "observers", "limits", "close", "settings",
)  # fmt: skip
KINDS = (QUESTION, ANSWER, COST, OBSERVERS, LIMITS, CLOSE, SETTINGS)
ANSWERS = 3  # uploads on slides at most; the page has all
STYLES = ("page", "slides")

SHOW, LEAVE, NEXT, BACK = "Slides", "Page", "Next slide", "Slide before"
COUNT = "[now] of [all]"  # the script fills the brackets
NAME = "Slides"
SHOWN = "Shown: {what}. The page has all."
BEST, ONE = "the best of {count} attacks against each protection", "one of {count} pictures"


def controls() -> Html:
    """The buttons of both styles. They are hidden until the script runs."""
    return tag(
        "nav",
        tag("button", SHOW, type="button", id="show-slides"),
        tag("button", "◀", type="button", id="slide-back", aria_label=BACK),
        tag("output", id="slide-count", aria_live="polite"),
        tag("button", "▶", type="button", id="slide-next", aria_label=NEXT),
        tag("button", LEAVE, type="button", id="leave-slides"),
        id="deck",
        aria_label=NAME,
        hidden=True,
        data_order=" ".join(KINDS),
        data_count=COUNT,
    )


def left_out(attacks: int, pictures: int) -> Html | None:
    """A line on a slide about the attacks and pictures that only the page shows; None if it shows all."""
    parts = []
    if attacks > 1:
        parts.append(BEST.format(count=attacks))
    if pictures > 1:
        parts.append(ONE.format(count=pictures))
    return tag("p", SHOWN.format(what=", ".join(parts)), class_="slide-only faint") if parts else None
