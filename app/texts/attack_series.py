"""The texts of the panels under the grid: the cliff, the ladder of observers, and what the blind test shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from app.texts import attacks as attack_texts
from app.texts import numbers, privacy
from app.texts import verdicts as verdict_texts
from engine.epsilon import Epsilon
from engine.results.verdict import COMES_BACK, KIND, LEAKS, NOT_RECOGNISED, OUTLINES, VERDICTS, Verdict

if TYPE_CHECKING:
    from engine.results.cliff import Cliff, CliffPoint


MORE = "Look closer"
PANELS = {
    "cliff": "How much noise hides it?",
    "ladder": "Who sees what?",
    "test": "Can you tell?",
    "scores": "All scores",
    "curves": "Scores by iteration",
    "upload": "All pictures of the upload",
    "promises": "What is promised?",
    "attacks": "How the attacks work",
}
NO_ATTACK = "None of the chosen attacks fits this model. Choose another attack or another model."
BUSY = ("other attacks of yours are still under way", "Wait for them, or cancel them")
OBSERVERS = {view: text.removeprefix("against ") for view, text in privacy.AGAINST.items()}


def run(missing: int, of: int) -> str:
    """The label of the button that runs the missing attacks of a series."""
    del of
    return f"Run {attack_texts.count(missing)}"


# --- ε -----------------------------------------------------------------------------------------------------

NO_EPSILON = "no promise"


def terms(answer: Epsilon) -> str:
    """The observer, the unit and δ of an ε."""
    per = "client" if answer.unit == "user" else "picture"
    return f"{privacy.AGAINST[answer.view]}, per {per}, δ = {numbers.tiny(answer.delta)}"


def promise(answer: Epsilon | None) -> tuple[str, privacy.PromiseSize]:
    """ε with its terms, and the size of its promise. An ε above 10 promises nothing, so it has no number."""
    if answer is None or answer.value is None:
        return "", replace(privacy.NO_PROMISE, word=NO_EPSILON)
    size = privacy.size_of(answer)
    if size == privacy.NO_PROMISE:
        return "", size
    return f"{attack_texts.epsilon(answer.value, True)} {terms(answer)}", size


def epsilon(answer: Epsilon | None) -> str:
    """ε with its terms and the size of its promise, in one line."""
    text, size = promise(answer)
    return f"{text}: {size.word}" if text else size.word


def bare(value: float | None) -> str:
    """ε as a tick label. The title of the axis has its terms."""
    return attack_texts.epsilon(value, True).removeprefix("ε ")


# --- the cliff ---------------------------------------------------------------------------------------------

CLIFF = "How much noise hides the picture?"
REGION_LEFT, REGION, REGION_RIGHT = "expected:<br>comes back", "expected:<br>fades", "expected:<br>hidden"
NO_NOISE = "no noise"
RATIO = "noise / signal"
BEST = "PSNR of the best attack, dB"
OR_MORE = "60+"
WHEN = {
    "sooner": "We expected more noise.",
    "inside": "We expected about that much noise.",
    "later": "We expected less noise.",
}
SAYS_NOTHING = "No attack brings the picture back even without noise, so this says nothing about protection."
ALWAYS = "At every noise here something of it still comes back."
BASIS = "Where this range comes from"
CHEATS = "The server sends a larger model here, so expect the picture to survive more noise."
SEES_LESS = "The range was measured for the server. This observer sees less, so less noise may be enough."


def expected(region: tuple[float, float], noises: tuple[float, float], note: str = "") -> str:
    """The forecast of the noise that hides the picture, also in the unit that a visitor sets."""
    low, high = region
    least, most = noises
    return " ".join(
        [
            "The signal is the upload without its noise.",
            f"We expect the picture to fade where the noise is {low:.2g} to {high:.2g} times as large as the signal.",
            f"That is noise {least:.2g} to {most:.2g} if the clip shortens the upload.",
            note,
        ]
    ).strip()


def basis(parameters: int, pixels: int) -> str:
    """How the expected range was measured."""
    return (
        f"The more parameters a model has for each pixel value, the more noise it takes: here {parameters:,} for "
        f"{pixels:,}. The range was measured with untrained networks. Against a trained network or a stronger attack "
        "it may take more noise."
    )


def protection(method: str, split: str) -> str:
    """The protection whose noise grows from point to point, and who adds it."""
    return f"Every point is {method}: {split}."


def unbound(signal: float, bound: float) -> str:
    """The reason why the noise is larger beside the signal than its multiplier suggests."""
    return (
        f"Here the clip changes nothing: this upload has length {signal:.2g}, and {bound:.2g} is allowed. "
        f"So the same noise is {bound / signal:.2g} times as large compared with it."
    )


def verdict(cliff: Cliff, region: tuple[float, float]) -> str:
    """The measured points in words. Empty until the baseline and all points are measured."""
    baseline = cliff.baseline
    if baseline is None or not cliff.complete:
        return ""
    if not (baseline.leaks and cliff.worked):
        return SAYS_NOTHING
    what = verdict_texts.ALONE[baseline.verdict or COMES_BACK].format(it="the picture")
    sentences = [f"Without noise {what}."]
    last, first = cliff.last_success, cliff.first_hidden
    if first is None:
        return " ".join([*sentences, ALWAYS])
    if last:
        sentences.append(f"At {_noise(last)} something of it still comes back.")
    sentences.append(f"From {_noise(first)} on, no attack brings anything of it back.")
    return " ".join([*sentences, WHEN[cliff.position(region)], verdict_texts.NOT_A_PROMISE])


def _noise(at: CliffPoint) -> str:
    """The noise of a point, also as a multiple of the signal."""
    multiple = f"{at.ratio:.2g} times the signal"
    return multiple if at.noise is None else f"noise {at.noise:.2g} ({multiple})"


def point(at: CliffPoint, epsilon: str) -> str:
    """The label of a point at the pointer."""
    noise = NO_NOISE if at.noise is None else f"noise {at.noise:.3g}, noise / signal {at.ratio:.2g}"
    state = verdict_texts.REMARKS.get(at.state, at.state)
    reason = f": {at.reason}" if at.reason else ""
    part = "" if at.done == at.of else f"<br>so far {at.done} of {attack_texts.count(at.of)}"
    first = f"{word(at)}, {attack_texts.decibel(at.psnr)} by {at.attack}"
    return f"{first}<br>{noise}<br>{state}{reason}{part}<br>{epsilon}"


def word(at: CliffPoint) -> str:
    """The verdict on a point."""
    return verdict_texts.with_noise(at.verdict, at.readable_though_noisy) if at.verdict else verdict_texts.NO_GUESS


def axis(answer: Epsilon | None, view: str) -> str:
    """The title of the axis on top: the terms of its ε."""
    if answer is None:
        return f"no ε {privacy.AGAINST[view]}"
    return f"ε {terms(answer)}"


def cliff_alt(cliff: Cliff, region: tuple[float, float], view: str) -> str:
    """The chart in words."""
    low, high = region
    lead = (
        f"PSNR of the best attack by noise / signal, with ε {privacy.AGAINST[view]} on top. "
        f"The picture is expected to fade from {low:.2g} to {high:.2g}."
    )
    baseline = f" Without noise {attack_texts.decibel(cliff.baseline.psnr)}." if cliff.baseline else ""
    points = []
    for at in cliff.points:
        points.append(f"at {at.ratio:.2g} {attack_texts.decibel(at.psnr)}, {word(at)}")
    measured = f" Measured: {'; '.join(points)}." if points else " Nothing is measured yet."
    grey = f" {attack_texts.GREY.capitalize()} reaches {attack_texts.decibel(cliff.trivial)}." if cliff.trivial else ""
    return f"{lead}{baseline}{measured}{grey}"


# --- the ladder --------------------------------------------------------------------------------------------

LADDER = "What does each observer get from the same upload?"
PROTECTION, BY = "Protection", "Attack"
ONLY_BASELINE = "Choose a protection in the grid to compare it with none."
NOT_HERE = "not possible here"
EMPTY = "No picture yet"
GETS = {  # the ends of a sentence for one observer, and for several
    COMES_BACK: ("gets the picture back", "get the picture back"),
    OUTLINES: ("gets outlines of the picture", "get outlines of the picture"),
    KIND: ("sees only what kind of thing it is", "see only what kind of thing it is"),
    NOT_RECOGNISED: ("gets nothing that is recognised", "get nothing that is recognised"),
}
ONLY_EPSILON = "Only the ε above is one."
EVERYONE, NO_ONE = "every observer", "no observer gets anything of the picture back"
LADDER_SAYS_NOTHING = (
    "Even without protection no observer gets the picture or its outlines back, so this says nothing about protection."
)


def observed(rows: Mapping[str, Mapping[str, Verdict]], promised: bool = False) -> str:
    """What each observer got back, by the title of the protection and the view. The first row is the baseline.

    `promised`: whether an ε next to the pictures is small enough to promise something.
    """
    words = [word for row in rows.values() for word in row.values()]
    if not any(word in LEAKS for word in words):
        return LADDER_SAYS_NOTHING if words else ""
    sentences = []
    for place, (title, row) in enumerate(rows.items()):
        if not row:
            continue
        start = f"With {title.replace(attack_texts.NOISE, ' at noise ')}" if place else "Without protection"
        sentences.append(f"{start} {_row(row)}.")
    if not all(word in LEAKS for word in words):
        sentences.append(verdict_texts.NOT_A_PROMISE)
        if promised:
            sentences.append(ONLY_EPSILON)
    return " ".join(sentences)


def _row(row: Mapping[str, Verdict]) -> str:
    """What each observer got back under one protection. The most comes first."""
    if set(row.values()) == {NOT_RECOGNISED} and len(row) == len(OBSERVERS):
        return NO_ONE
    clauses = []
    for word in reversed(VERDICTS):
        views = [OBSERVERS[view] for view, seen in row.items() if seen == word]
        if len(views) == len(OBSERVERS):
            return f"{EVERYONE} {GETS[word][0]}"
        if views:
            clauses.append(f"{numbers.joined(views)} {GETS[word][len(views) > 1]}")
    return "; ".join(clauses)


def ladder_title(view: str) -> str:
    """The name of an observer as a heading."""
    return f"{OBSERVERS[view][0].upper()}{OBSERVERS[view][1:]}"


def ladder_alt(view: str, state: str, column: str) -> str:
    """The text alternative of what one observer got back."""
    return f"What {OBSERVERS[view]} got back with {column}: {state}"


def score(psnr: float, trivial: float | None) -> str:
    """The label at the pointer: the PSNR, and that of the trivial guess."""
    grey = "" if trivial is None else f"; {attack_texts.GREY}: {attack_texts.decibel(trivial)}"
    return f"PSNR {attack_texts.decibel(psnr)}{grey}"
