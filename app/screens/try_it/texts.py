"""The texts of the screen Try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TITLE = "What if?"
NO_RUN = "This link names a run that is not on this machine, and not its settings. Another run is shown."
NO_PINS = "This link pins runs that are not on this machine: {ids}. Unpin them under Details."
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


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
