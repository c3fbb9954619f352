"""The texts of the screen Try, and the sentence that says how side B differs from side A."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.texts import numbers, privacy
from engine.epsilon import Epsilon
from engine.results.verdict import LEAKS, NOT_RECOGNISED, Verdict

TITLE = "What if?"
NO_RUN = "This link names a run that is not on this machine. Press Run to compute it here."
IS_ATTACK = "This link names an attack, not a run. Find it on the screen Runs."
ADD, REMOVE = "+ B", "Remove B"
ADD_HELP = "Put a second side next to A. It starts as A with half the ε, and you change it as you like."
CHANGE, CLOSE, RUN, LIVE = "change", "close", "Run", "Run it live"
RESUME = "Go on"
NOUN = "runs and attacks"
FINISHED = "All runs finished."
FIX = "Fix the marked fields first."
ACCURACY, PICTURES, SCORES = "Accuracy", "What comes back", "Scores"
WITHOUT = "{percent} without protection"
TEXT = "Only pictures are attacked here, and this run learns from text."
NO_ATTACKER = "no attacker fits"
NOT_RUN, WAITING = "Not run yet. Press Run.", "The first round is under way."
BASELINE = "Without protection {what}."
NO_SCORES = "The scores appear when the first attack has ended."
ORIGINAL = "original"
ORIGINAL_ALT = "The picture that its owner never sent."
ATTACKERS = "{count}, {case}."
NONE_SUCCEEDED = "None of our {count} succeeded here. That is not a promise."
CASES = {
    "1": "easiest case: one picture in the upload",
    "8": "8 pictures in the upload",
    "ordinary": "an ordinary upload",
    "cheat": "an ordinary upload, and the server cheats",
}
ORDINARY, ONE_PICTURE = "An ordinary upload", "One picture"
EARLIER = "Result of an earlier question: {what}"
BACK, RUN_THIS = "Back to it", "Run this one"
CHANGE_ONE = "Change one thing:"
HALF, OTHER, CROWD = "half the ε", "another protection", "10 times the people"
MORE_NOISE, SOME_NOISE = "twice the noise", "noise by each phone"  # in place of half an ε where there is none
PIN, SHARE = "Pin", "Share"
PIN_HELP = "Keep this run in the table under Details."
SHARE_TEXT = "The address of this page holds every setting. Anyone who opens it sees the same question."
SAME_SIDES = "B would be the same as A."
PORTRAIT = "the portrait"
PICTURE, CONTENT, WHEN = "Whose picture?", "What is in the upload?", "Attacked round"
SEEDS = "Seeds, drawn as a band"
OF_SIDE = "Side {side}"
TARGET_OF = "This ε holds {against}. Enter a new value for another observer, whom you choose in the header."
STOPPED = {
    "cancelled": "Cancelled after round {done}. Everything up to there is kept.",
    "interrupted": "Interrupted after round {done}: the program that ran it has ended. Nothing is lost.",
}
NO_PROMISE = "This protection promises nothing against this observer."
EXPECTED = "Expected time of the training here: {seconds}. The first attack takes about a second."
TO_LEAK = "More attackers in Leak"
BUSY = ("another run of yours is still under way", "Wait for it, or cancel it")
# What people call the pictures and texts of a data set. Another data set has its own title.
SUBJECTS = {
    "fashion-mnist": "Clothes",
    "mnist": "Digits",
    "emnist": "Letters",
    "cifar10": "Animals and vehicles",
    "movie-reviews": "Movie reviews",
    "sentiment140": "Short messages",
}
NAMED = ("dataset", "clients", "sampled", "rounds")  # in the sentence about the settings


def settings(run: Mapping[str, Any], titles: Mapping[str, str], defaults: Mapping[str, Any]) -> str:
    """The settings of a run in one line: the common ones, and those that differ from their defaults."""
    words = [
        SUBJECTS.get(run["dataset"], titles["dataset"]),
        f"{run['clients']:,} people",
        f"{run['sampled']:,} a round",
        f"{run['rounds']:,} rounds",
    ]
    for path, value in run.items():
        ours = path in NAMED or path.partition(".")[0] == "method" or path in ("sampling", "format")
        if not ours and value is not None and value != defaults.get(path):
            words.append(setting(path, value, titles))
    return ", ".join(words)


def setting(path: str, value: Any, titles: Mapping[str, str]) -> str:
    """One setting in words."""
    if path in titles:
        return titles[path]
    if path == "clients":
        return f"{value:,} people"
    if path == "sampled":
        return f"{value:,} a round"
    if path == "rounds":
        return f"{value:,} rounds"
    return f"{path.rpartition('.')[2].replace('-', ' ')} {_plain(value)}"


def changed(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[str, ...]:
    """The settings of B that differ from those of A, apart from its method and its budget."""
    words = []
    for path, value in b.items():
        ours = path in ("method", "method.noise", "target-epsilon", "view", "format")
        of_method = path.startswith("method.") and a["method"] != b["method"]
        of_method = of_method or path == "method.server-step"  # it goes with the noise
        if not ours and not of_method and value != a.get(path):
            words.append(setting(path, value, {}))
    return tuple(words)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


# --- how B differs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SideResult:
    """What is known of one side."""

    protection: str  # the title of its method
    epsilon: Epsilon | None  # against the chosen observer; None: no promise
    accuracy: float | None
    estimated: bool = False  # whether the accuracy is an estimate
    verdict: Verdict | None = None  # on the best guess of the picture; None: some attacks have not ended


EQUAL = 0.02  # ratio of two ε that count as equal
POINTS = 0.5  # accuracies nearer than this are about the same


def difference(a: SideResult, b: SideResult, changes: tuple[str, ...] = ()) -> str:
    """How B differs from A, in one or two sentences: first the cause, then what follows. `changes` are settings."""
    causes = [_method(a, b), _budget(a, b), *changes]
    cause = numbers.joined([each for each in causes if each]) or "the same settings"
    effects = [each for each in (_accuracy(a, b), _picture(a, b)) if each]
    sentences = [f"B has {cause}: {', and '.join(effects)}."] if effects else [f"B has {cause}."]
    unknown = _unknown(a, b)
    return " ".join([*sentences, *unknown])


def _method(a: SideResult, b: SideResult) -> str:
    return "" if a.protection == b.protection else f"{b.protection} in place of {a.protection}"


def _budget(a: SideResult, b: SideResult) -> str:
    """How the promise of B differs. Two units are never compared as one number."""
    sizes = [privacy.size_of(side.epsilon) if side.epsilon else privacy.NO_PROMISE for side in (a, b)]
    if a.epsilon and b.epsilon and a.epsilon.unit != b.epsilon.unit:
        return f"a promise {privacy.PER[b.epsilon.unit]} ({_size(b)}), which does not compare with that of A"
    if privacy.NO_PROMISE in sizes or privacy.APPROXIMATE in sizes:
        if sizes[0] == sizes[1]:
            return ""
        return _size(b)
    assert a.epsilon and b.epsilon
    first, second = a.epsilon.value or 0.0, b.epsilon.value or 0.0
    return _ratio(first, second, b) if first and second else _size(b)


def _ratio(first: float, second: float, b: SideResult) -> str:
    ratio = second / first
    if abs(ratio - 1) <= EQUAL:
        return ""
    for factor, word in ((0.5, "half the ε"), (2.0, "twice the ε")):
        if abs(ratio / factor - 1) <= 0.06:
            return word
    return f"{'a smaller' if ratio < 1 else 'a larger'} ε ({_size(b)})"


def _size(side: SideResult) -> str:
    """The size of a promise in words. Without a meaning it has no number."""
    if side.epsilon is None or side.epsilon.value is None:
        return privacy.NOTHING
    kind = privacy.size_of(side.epsilon)
    if kind in (privacy.NO_PROMISE, privacy.APPROXIMATE):
        return kind.word
    return f"ε {numbers.epsilon(side.epsilon.value)}, a {kind.word}"


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
