"""Texts about ε: the observers, the protected units, the odds and the terms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.texts import numbers
from app.texts.numbers import percent, tiny
from engine.epsilon import Epsilon
from engine.odds import MOST_PERCENT, certainty

VIEWS = ("outsider", "client", "aggregate", "server")  # ordered by what they see, least first


OBSERVER_SEES = {
    "outsider": "sees only the published models",
    "client": "takes part and sees each round's model",
    "aggregate": "sees the sum of a round",
    "server": "sees every upload by itself",
}


SEEN_BY = {
    "outsider": "seen by an outsider",
    "client": "seen by a participant",
    "aggregate": "seen by an aggregator",
    "server": "seen by the server",
}


AGAINST = {
    "outsider": "against an outsider",
    "client": "against another participant",
    "aggregate": "against an aggregator",
    "server": "against the server",
}


# What an ε hides follows from its release, not from its view alone.
PARTICIPATION = "whether you took part"
UPLOAD = "whether what you sent was made from your data or from none"
RECORD = "whether this one record (a picture or a sentence) was among the data"
REPLACED = "whether it was this record (a picture or a sentence) or another one"


# The header of every screen: who must not learn it.
HEADER = "Who must not learn it?"
SHORT_HEADER = "hide from"  # where the screen has no room for the question
WHO = {
    "server": "the server",
    "client": "another participant",
    "outsider": "anyone outside",
    "aggregate": "a server that sees only sums",
}


OBSERVERS = {"outsider": "outsider", "client": "participant", "aggregate": "aggregator", "server": "server"}


# The titles of the noise splits, as their methods declare them: a page shows them before any method is loaded.
SPLITS = {
    "paper": "the clients share the noise",
    "full-local": "each client adds all the noise",
    "server": "the server adds the noise",
}


@dataclass(frozen=True)
class PromiseSize:
    """How much an ε promises, whatever kind of promise it is."""

    word: str
    side: str  # the colour: `private`, `ink`, `weak` or `leaking`
    sign: str


STRONG = PromiseSize("strong promise", "private", "✓")
LIMITED = PromiseSize("limited promise", "ink", "·")
WEAK_PROMISE = PromiseSize("weak promise", "weak", "!")
NO_PROMISE = PromiseSize("no meaningful promise", "leaking", "✗")
APPROXIMATE = PromiseSize("an approximation, which can be far too low", "ink", "≈")
NOTHING = "no promise"
SIZES = ((1.0, STRONG), (3.0, LIMITED), (10.0, WEAK_PROMISE))  # each up to this ε


def promise(epsilon: Epsilon | None) -> tuple[str, str]:
    """The size of a promise in words with its sign and unit, and its colour. A number above 10 means nothing."""
    if epsilon is None or epsilon.value is None:
        return NOTHING, NO_PROMISE.side
    kind = size_of(epsilon)
    if kind == NO_PROMISE:
        return f"{kind.sign} {kind.word}", kind.side
    return f"{kind.sign} ε {rounded_text(epsilon)} {PER[epsilon.unit]}: {kind.word}", kind.side


def rounded_text(epsilon: Epsilon) -> str:
    """The number of an ε as a page shows it, never smaller than it is."""
    return numbers.epsilon(epsilon.value)


def size_of(epsilon: Epsilon) -> PromiseSize:
    """The size of a promise. An approximation can be far too low, so it has none."""
    known = size(epsilon.value)
    if known != NO_PROMISE and "approximation" in epsilon.bound:
        return APPROXIMATE
    return known


def size(epsilon: float | None) -> PromiseSize:
    """The size of a promise; None is an infinite ε."""
    for most, promise in SIZES:
        if epsilon is not None and epsilon <= most:
            return promise
    return NO_PROMISE


OBSERVER = "server"  # whose view the screens show first
WEAK = math.log(99)  # above this ε, an observer with even odds can become more than 99 % sure
VACUOUS = 10.0  # above this ε, a guarantee is no meaningful promise


# The kind of a promise, by the status of its guarantee. Its size is another matter: a proven promise may be too large
# to mean anything, so a kind is never teal.
STATUSES = {
    "formal": ("Proven", "ink", "The promise is proven against the observer that the method names."),
    "formal-other-view": ("Proven for some observers", "ink", "The promise is proven, but not against every observer."),
    "claimed-refuted": ("Claim does not hold", "leaking", "What was claimed is not true; here is why."),
    "empirical": ("Not proven", "leaking", "It may help in practice, but nothing is proven."),
    "none": ("No promise", "leaking", "Nothing is promised."),
}
KIND = "kind of promise"
ALL_VACUOUS = "No ε here is below {limit:g}. As a worst case, such a promise means almost nothing."


NOT_COVERED = (
    "This run only. Sweeps, tuning, picking the best round and runs with other seeds on the same data add up, "
    "and are not counted.",
    "The accuracy and loss shown here are computed on private data; showing them is not counted.",
    "Floating-point effects and side channels, such as how long a step takes, are not covered.",
    "The noise of a run comes from its seed, and the seed is shown: anyone who knows it can subtract the noise. "
    "This is a simulation. A deployment needs secret cryptographic randomness.",
    "A server that breaks the rules is covered only where each client adds a whole portion of noise itself: all the "
    "noise on its update, or noise on every step. Where the clients of a round share one portion, the server says how "
    "large each part is, and a server that lies gets uploads that are nearly bare.",
)


PER = {"user": "per client", "record": "per record"}  # a record is a picture or a sentence


def noise_split(method: Mapping[str, Any]) -> str:
    """Who adds the noise of a method with these values; empty if it has no such option, or no noise.

    Equal noise means different protection: the server sees a shared noise divided by the root of the cohort.
    """
    return SPLITS.get(str(method.get("noise-split")), "") if method.get("noise") else ""


def secret(epsilon: Epsilon) -> str:
    """What this ε hides."""
    if epsilon.unit == "record":
        return REPLACED if epsilon.adjacency == "replace" else RECORD
    # Only the Poisson number of an outsider hides that a client took part. Elsewhere the roster shows it, or the
    # size of the noise.
    if epsilon.view == "outsider" and epsilon.sampling == "poisson":
        return PARTICIPATION
    return UPLOAD


def odds(epsilon: Epsilon) -> str:
    """The meaning of an ε for an observer who starts with even odds."""
    if epsilon.value is None:
        return "No finite ε: nothing is promised in this view."
    sees = OBSERVER_SEES[epsilon.view]
    if "approximation" in epsilon.bound:
        return f"An observer who {sees}: this ε is an approximation and can be too low, so it allows no odds."
    if epsilon.value == 0:
        rest = f", except in {_one_of(epsilon.delta)} cases" if epsilon.delta else ""
        return f"An observer who {sees} learns nothing about {secret(epsilon)}{rest}."
    if epsilon.value > VACUOUS:
        return f"An observer who {sees}: this ε is no meaningful promise."
    reached = certainty(epsilon)
    if reached.percent > MOST_PERCENT:
        return f"An observer who {sees}: in the worst case this promise rules out almost nothing."
    return (
        f"An observer who {sees} and starts at 50:50 {secret(epsilon)} can become at most {reached.percent} in 100 "
        f"sure, either way, except in {_one_of(reached.exception)} cases."
    )


def _one_of(chance: float) -> str:
    """`1 of 6,200`, rounded down to two digits."""
    cases = 1 / chance
    step = 10 ** max(0, math.floor(math.log10(cases)) - 1)
    return f"1 of {math.floor(cases / step + 1e-9) * step:,}"


def terms(epsilon: Epsilon) -> str:
    """The terms of an ε. Without them the number means nothing."""
    note = f", {epsilon.bound}" if epsilon.bound else ""
    per = PER[epsilon.unit].removeprefix("per ")
    sampled = f", {epsilon.sampling} sampling" if epsilon.sampling else ""
    start = f"per {per}, {SEEN_BY[epsilon.view]}, {epsilon.adjacency}, δ = {tiny(epsilon.delta)}"
    return f"{start}{sampled}, {epsilon.accountant}, worst {per}{note}"


def cost(accuracy: float | None, baseline: float | None) -> str:
    """The accuracy that protection costs, in one sentence."""
    if accuracy is None or baseline is None:
        return ""
    points = 100 * (baseline - accuracy)
    both = f"{percent(baseline)} without protection, {percent(accuracy)} with it"
    if points < 0.5:
        return f"Protection costs almost nothing here: {both}."
    return f"Protection costs {points:.0f} points of accuracy here: {both}."
