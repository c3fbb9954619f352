"""The sentence that says how side B differs from side A."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.screens.try_it import texts as try_texts
from app.texts import numbers, privacy
from engine.epsilon import Epsilon
from engine.errors import plain_number
from engine.results.verdict import LEAKS, NOT_RECOGNISED, Verdict

EQUAL = 0.02  # ratio of two ε that count as equal
POINTS = 0.5  # accuracies nearer than this are about the same
SAME = "the same settings"
NO_COMPARISON = "which does not compare with that of A"
# Fields that the sentence names in its own words, or that are no setting.
NAMED_APART = ("method", "method.noise", "method.server-step", "target-epsilon", "format")


@dataclass(frozen=True)
class SideResult:
    """What is known of one side."""

    protection: str  # the title of its method
    epsilon: Epsilon | None  # against the chosen observer; None: no promise
    accuracy: float | None
    estimated: bool = False  # whether the accuracy is an estimate
    verdict: Verdict | None = None  # on the best guess of the picture; None: some attacks have not ended
    noise: float | None = None  # None: the method has none
    step: float | None = None  # of the server; None: the method has none


def changed(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[str, ...]:
    """The settings of B that differ from those of A, apart from its method and its budget."""
    words = []
    for path, value in b.items():
        ours = path in NAMED_APART or (path == "view" and b.get("budget") is None)
        of_method = path.startswith("method.") and a["method"] != b["method"]
        if not ours and not of_method and value != a.get(path):
            words.append(try_texts.setting(path, value, {}))
    return tuple(words)


def difference(a: SideResult, b: SideResult, changes: tuple[str, ...] = ()) -> str:
    """How B differs from A, in one or two sentences: first the cause, then what follows. `changes` are settings."""
    budget = _budget(a, b)
    causes = [_method(a, b), budget, "" if budget else _noise(a, b), _step(a, b), *changes]
    cause = numbers.joined([each for each in causes if each]) or SAME
    effects = [each for each in (_accuracy(a, b), _picture(a, b)) if each]
    sentences = [f"B has {cause}: {', and '.join(effects)}."] if effects else [f"B has {cause}."]
    unknown = _unknown(a, b)
    return " ".join([*sentences, *unknown])


def _method(a: SideResult, b: SideResult) -> str:
    return "" if a.protection == b.protection else f"{b.protection} in place of {a.protection}"


def _budget(a: SideResult, b: SideResult) -> str:
    """How the promise of B differs. Only ε of one kind are compared: of one unit, one adjacency and one δ."""
    sizes = [privacy.size_of(side.epsilon) if side.epsilon else privacy.NO_PROMISE for side in (a, b)]
    if a.epsilon and b.epsilon and a.epsilon.unit != b.epsilon.unit:
        return f"a promise {privacy.PER[b.epsilon.unit]} ({_size(b)}), {NO_COMPARISON}"
    if privacy.NO_PROMISE in sizes or privacy.APPROXIMATE in sizes:
        if sizes[0] == sizes[1]:
            return ""
        return _size(b)
    assert a.epsilon and b.epsilon
    if a.epsilon.adjacency != b.epsilon.adjacency:
        return f"a promise by another rule ({b.epsilon.adjacency}: {_size(b)}), {NO_COMPARISON}"
    if not math.isclose(a.epsilon.delta, b.epsilon.delta, rel_tol=1e-6):
        return f"a promise with δ = {numbers.tiny(b.epsilon.delta)} ({_size(b)}), {NO_COMPARISON}"
    first, second = a.epsilon.value or 0.0, b.epsilon.value or 0.0
    if first == second:
        return ""
    return _ratio(first, second, b) if first and second else _size(b)


def _ratio(first: float, second: float, b: SideResult) -> str:
    ratio = second / first
    if abs(ratio - 1) <= EQUAL:
        return ""
    for factor, word in ((0.5, "half the ε"), (2.0, "twice the ε")):
        if abs(ratio / factor - 1) <= 0.06:
            return word
    return f"{'a smaller' if ratio < 1 else 'a larger'} ε ({_size(b)})"


def _noise(a: SideResult, b: SideResult) -> str:
    """How the noise of B differs. Where the promises differ they say it better; two methods use noise differently."""
    if a.protection != b.protection or a.noise is None or b.noise is None or a.noise == b.noise:
        return ""
    if not a.noise or not b.noise:
        return f"{_noise_word(b.noise)} in place of {_noise_word(a.noise)}"
    factor = max(a.noise, b.noise) / min(a.noise, b.noise)
    more = b.noise > a.noise
    if abs(factor - round(factor)) > 1e-6 or round(factor) < 2:
        return f"noise {plain_number(b.noise)} in place of {plain_number(a.noise)}"
    if round(factor) == 2:
        return "twice the noise" if more else "half the noise"
    return f"{round(factor):,} times {'more' if more else 'less'} noise"


def _noise_word(noise: float) -> str:
    return f"noise {plain_number(noise)}" if noise else "no noise"


def _step(a: SideResult, b: SideResult) -> str:
    """How the server step of B differs. A step that goes with another noise is no cause of its own."""
    if a.protection != b.protection or a.noise != b.noise:
        return ""
    if a.step is None or b.step is None or a.step == b.step:
        return ""
    return f"server step {plain_number(b.step)} in place of {plain_number(a.step)}"


def _size(side: SideResult) -> str:
    """The size of a promise in words. Without a meaning it has no number."""
    if side.epsilon is None or side.epsilon.value is None:
        return privacy.NOTHING
    kind = privacy.size_of(side.epsilon)
    if kind in (privacy.NO_PROMISE, privacy.APPROXIMATE):
        return kind.word
    return f"ε {privacy.rounded_text(side.epsilon)}, a {kind.word}"


def _accuracy(a: SideResult, b: SideResult) -> str:
    if a.accuracy is None or b.accuracy is None:
        return ""
    points = 100 * (b.accuracy - a.accuracy)
    about = "about " if a.estimated or b.estimated else ""
    ending = " by estimate" if about else ""
    if abs(points) < POINTS:
        return f"about the same accuracy{ending}"
    count = f"{abs(points):.0f}"
    noun = "point" if count == "1" else "points"
    return f"{about}{count} {noun} {'less' if points < 0 else 'more'} accuracy{ending}"


def _picture(a: SideResult, b: SideResult) -> str:
    if a.verdict is None or b.verdict is None:
        return ""
    if a.verdict == b.verdict:
        return "the picture stays hidden" if a.verdict == NOT_RECOGNISED else f"the picture is as before: {a.verdict}"
    if b.verdict == NOT_RECOGNISED:
        return "the picture is no longer recognised"
    words = {"comes back": "the picture comes back", "outlines come back": "outlines of the picture come back"}
    return words.get(b.verdict, f"of the picture {b.verdict}") if b.verdict in LEAKS else str(b.verdict)


def _unknown(a: SideResult, b: SideResult) -> list[str]:
    """What is missing on a side."""
    sentences = []
    for name, side in (("A", a), ("B", b)):
        missing = []
        if side.accuracy is None:
            missing.append("accuracy")
        if side.verdict is None:
            missing.append("picture")
        if missing:
            sentences.append(
                f"The {numbers.joined(missing)} of {name} {'is' if len(missing) == 1 else 'are'} not known yet."
            )
    return sentences
