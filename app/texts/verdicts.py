"""The sentences about what attacks brought back: the verdict in four words, and the matching test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.texts import attacks as attack_texts
from engine.events import Judged
from engine.results.attack_summary import (
    SIGNIFICANT,
    AttackCell,
    ProtectionResult,
    protection_result,
    working_attacks,
)
from engine.results.verdict import COMES_BACK, KIND, LEAKS, NOT_RECOGNISED, OUTLINES, Verdict

NO_GUESS = "no guess of this picture"
READABLE = "readable though noisy"  # something comes back, and the upload is more noise than signal
NOT_A_PROMISE = "That is not a promise."
SAYS_NOTHING = "No attack brought the picture back even without protection, so this says nothing about protection."
ALONE = {
    COMES_BACK: "{it} comes back",
    OUTLINES: "outlines of {it} come back",
    KIND: "only the kind of thing shows",
    NOT_RECOGNISED: "{it} is not recognised",
}
PROMISED = "Only the ε of a column is one."
RESEMBLES = (
    "{title}: no picture is recognisable, but the guesses resemble the pictures of the upload: {hits} of {guesses} are "
    "nearest to one of them. Guessing gives {chance:g}."
)
TESTED = (
    "{title}: {hits} of {guesses} guesses are nearest to a picture of the upload, where guessing gives {chance:g} "
    "(p = {p:.2g}): {meaning}. Guesses resemble each other, so only p below {least:g} counts."
)
FOUND, MAY_BE_CHANCE, CHANCE = "the upload gives away what it holds", "that may be chance", "no better than guessing"
DOUBTFUL = 0.05  # above it, p is what chance gives often
OTHERS = "{title}: of the other {count} pictures {leaking} back, at least in outlines; {chance}."
BY_CHANCE = "of as many pictures that were never sent, {count} would count as well"
UNKNOWN_CHANCE = "some may fit by chance"
REMARKS = {
    "converged": "The attack converged",
    "not converged": "The attack did not converge",
    "diverged": "The attack diverged",
}
WITHOUT_LPIPS = "LPIPS is missing: PSNR and SSIM alone decided"


# --- one guess ---------------------------------------------------------------------------------------------


def caption(cell: AttackCell, picture: int) -> str:
    """The verdict on one guess; before the end, the progress of the attack."""
    if cell.judged is None:
        return attack_texts.state(cell)
    word = cell.verdict(picture)
    return NO_GUESS if word is None else with_noise(word, cell.loud)


def with_noise(word: Verdict, loud: bool) -> str:
    """A verdict, and that the picture is readable though its upload is more noise than signal."""
    return f"{word}: {READABLE}" if loud and word in LEAKS else word


def remark(judged: Judged | None) -> str:
    """Whether the attack converged, and why not. It says nothing about the picture."""
    if judged is None:
        return ""
    state = REMARKS.get(judged.state, judged.state)
    known = [f"{state}: {judged.reason}" if judged.reason else state]
    if not judged.numbers.get("lpips"):
        known.append(WITHOUT_LPIPS)
    return ". ".join(known)


def outcome(psnr: float | None, word: Verdict | None) -> str:
    """The result of an attack in the list of runs."""
    if psnr is None or word is None:
        return ""
    return f"{word}, {attack_texts.decibel(psnr)}"


def matching(result: ProtectionResult) -> str:
    """The matching test of an upload in a sentence, with its p."""
    test = result.matching
    assert test is not None
    meaning = MAY_BE_CHANCE if test.p < DOUBTFUL else CHANCE
    return TESTED.format(
        title=_capital(result.title), hits=test.hits, guesses=test.guesses, chance=test.chance, p=test.p,
        meaning=FOUND if test.p < SIGNIFICANT else meaning, least=SIGNIFICANT,
    )  # fmt: skip


def matchings(cells: Sequence[AttackCell], titles: Mapping[str, str]) -> list[str]:
    """The matching test of each protection that has one."""
    results = [protection_result(cells, key, title) for key, title in titles.items()]
    return [matching(result) for result in results if result.matching is not None]


# --- a grid ------------------------------------------------------------------------------------------------


def of_cells(cells: Sequence[AttackCell], titles: Mapping[str, str], control: str, promised: bool = False) -> str:
    """The results of all attacks in a few sentences. Empty while no attack is finished.

    `promised`: a column shows an ε that means something.
    """
    first = protection_result(cells, control, titles[control])
    others = [protection_result(cells, key, title) for key, title in titles.items() if key != control]
    return verdict(first, len(working_attacks(cells, control)), others, promised)


def alone(result: ProtectionResult) -> str:
    """The result against one protection, without a baseline beside it: it makes no claim about protection."""
    if result.verdict is None:
        return ""
    near = f"{attack_texts.decibel(result.psnr)}, where {attack_texts.GREY} reaches"
    sentences = [f"From {result.title} {_what(result)}: {near} {attack_texts.decibel(result.trivial)}."]
    if not result.leaks:
        sentences.append(NOT_A_PROMISE)
    tested = [matching(result)] if result.matching is not None else []
    return " ".join([*sentences, *_others([result]), *tested])


def verdict(control: ProtectionResult, counted: int, others: Sequence[ProtectionResult], promised: bool = False) -> str:
    """The grid in a few sentences. `counted`: the number of attacks that leak without protection."""
    if control.verdict is None:
        return ""
    measured = [result for result in others if result.verdict is not None]
    if not counted and not any(result.leaks for result in measured):
        return " ".join([SAYS_NOTHING, *_others([control, *measured]), *_resembling([control, *measured])])
    sentences = [f"Without protection {_what(control)}.", *_others([control])]
    for word in (COMES_BACK, OUTLINES, KIND, NOT_RECOGNISED):
        some = [result for result in measured if result.verdict == word]
        if some:
            comma = "," if word == NOT_RECOGNISED else ""
            sentences.append(f"{_with(some, measured)}{comma} {_fate(word, some[0], counted)}.")
    if any(not result.leaks for result in measured):
        sentences += [NOT_A_PROMISE, PROMISED] if promised else [NOT_A_PROMISE]
    return " ".join([*sentences, *_others(measured), *_resembling(measured)])


def _what(result: ProtectionResult) -> str:
    """What came back, as a clause."""
    word = result.verdict or NOT_RECOGNISED
    if result.others is not None:
        return ALONE[word].format(it="the chosen picture")
    if result.pictures == 1:
        return ALONE[word].format(it="the picture")
    if word == NOT_RECOGNISED:
        return f"none of {result.pictures} pictures is recognised"
    return ALONE[word].format(it=f"at least one of {result.pictures} pictures")


def _fate(word: Verdict, result: ProtectionResult, counted: int) -> str:
    """The same verdict on one or several protections, as the end of a sentence."""
    it = "it" if result.pictures == 1 or result.others is not None else "at least one"
    if word == COMES_BACK:
        return f"{it} comes back, too"
    if word == OUTLINES:
        return f"outlines of {it} come back"
    if word == KIND:
        return "only the kind of thing shows"
    if counted == 0:
        return "no attack brings anything back"
    if counted == 1:
        return "the attack that otherwise succeeds brings nothing back"
    return f"none of the {counted} attacks that otherwise succeed brings anything back"


def _resembling(results: Sequence[ProtectionResult]) -> list[str]:
    """The columns in which no picture leaks, although the guesses give away what the upload holds."""
    sentences = []
    for result in results:
        test = result.matching
        if test is not None and test.p < SIGNIFICANT and not result.leaks and not result.others:
            title = _capital(result.title)
            sentences.append(RESEMBLES.format(title=title, hits=test.hits, guesses=test.guesses, chance=test.chance))
    return sentences


def _others(results: Sequence[ProtectionResult]) -> list[str]:
    """How many of the other pictures of ordinary uploads come back."""
    sentences = []
    for result in results:
        if result.others:
            chance = UNKNOWN_CHANCE if result.chance is None else BY_CHANCE.format(count=result.chance)
            leaking = f"{result.others} {'comes' if result.others == 1 else 'come'}"
            title = _capital(result.title)
            sentences.append(OTHERS.format(title=title, count=result.pictures - 1, leaking=leaking, chance=chance))
    return sentences


def _capital(title: str) -> str:
    return f"{title[:1].upper()}{title[1:]}"


def _with(some: Sequence[ProtectionResult], measured: Sequence[ProtectionResult]) -> str:
    return "With every protection here" if len(some) == len(measured) > 3 else f"With {_listed(some)}"


def _listed(results: Sequence[ProtectionResult]) -> str:
    """The titles as a list. A method that all titles share is named once."""
    titles = [result.title.replace(attack_texts.NOISE, " at noise ") for result in results]
    budgets = {title.partition(attack_texts.BUDGETED)[2] for title in titles}
    if len(titles) > 1 and len(budgets) == 1 and "" not in budgets:  # all keep the same budget
        titles = [*(title.partition(attack_texts.BUDGETED)[0] for title in titles[:-1]), titles[-1]]
    shared = {title.partition(" at noise ")[0] for title in titles}
    if len(titles) > 1 and len(shared) == 1 and all(" at noise " in title for title in titles):
        titles = [titles[0], *(title.partition(" at noise ")[2] for title in titles[1:])]
    return titles[0] if len(titles) == 1 else f"{', '.join(titles[:-1])} and {titles[-1]}"
